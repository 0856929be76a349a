"""Checks and decode-and-checks per second on BFCL's Python vectors, one core, and the slowest hostile text.

    python -m benchmarks.scoring [--vectors ../shared/vectors] [--peer FOLDER]

The yardstick is upstream's own checker and decoder where a copy is at hand: the package `bfcl-eval`,
installed or unpacked into FOLDER (`pip download bfcl-eval --no-deps`, then unzip). Ours and theirs take turns
on the same rows; the best turn of each counts.
"""

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import typer
from tests.eval.texts import TOOLS, hostile

from robustbench_tc.eval.parse import ORDERS, parse
from robustbench_tc.eval.prompts.calls import python_calls
from robustbench_tc.eval.prompts.json_schema import normalise
from robustbench_tc.eval.score import score
from robustbench_tc.schema import Call, Json, Tool

FILES = ("bfcl_nonlive.jsonl", "bfcl_live.jsonl")
SECONDS = 2.0
"""How long each side is measured at least."""

TARGETS = {"checks": 56_000, "decode_and_checks": 23_000}
"""Per second on one core, as measured for upstream's programs on a machine like this."""


def main(vectors: Path = Path("../shared/vectors"), peer: Path | None = None) -> None:
    """Print the figures; PEER: the folder of an unpacked bfcl-eval."""
    rows = [
        msgspec.json.decode(line)
        for name in FILES
        for line in (vectors / name).read_bytes().splitlines()
        if b'"underscore_to_dot":true' not in line.replace(b" ", b"")
    ]
    ours, theirs = _ours(rows), _peer(rows, peer)
    turns = {f"ours {name}": work for name, work in ours.items()}
    turns |= {f"peer {name}": work for name, work in (theirs or {}).items()}
    speed = _per_second(turns, len(rows))
    found: dict[str, Any] = {"rows": len(rows), "peer": "bfcl-eval" if theirs else "peer not at hand"}
    for name in ours:
        mine, other = speed[f"ours {name}"], speed.get(f"peer {name}")
        found[name] = {
            "per_second": round(mine),
            "peer_per_second": round(other) if other else None,
            "ratio": round(mine / other, 2) if other else None,
            "target_per_second": TARGETS[name],
        }
    found["slowest_hostile_ms"] = _slowest()
    print(json.dumps(found, indent=2))  # noqa: T201 - it is the output


def _per_second(turns: dict[str, Callable[[], None]], rows: int) -> dict[str, float]:
    """Rows per second of the best turn of each, the sides taking turns."""
    best = dict.fromkeys(turns, float("inf"))
    spent = dict.fromkeys(turns, 0.0)
    while min(spent.values()) < SECONDS:
        for name, work in turns.items():
            started = time.perf_counter()
            work()
            took = time.perf_counter() - started
            best[name] = min(best[name], took)
            spent[name] += took
    return {name: rows / seconds for name, seconds in best.items()}


def _slowest() -> dict[str, float]:
    """The three slowest hostile texts of 1 MB, in milliseconds of processor time (best of three each)."""
    found: dict[str, float] = {}
    for kind, text in hostile().items():
        for source in ORDERS:
            best = float("inf")
            for _ in range(3):
                started = time.thread_time()
                parse(text, source=source, tools=TOOLS)
                best = min(best, time.thread_time() - started)
            found[kind] = max(found.get(kind, 0.0), round(best * 1_000, 1))
    return dict(sorted(found.items(), key=lambda item: -item[1])[:3])


# --- ours -----------------------------------------------------------------------------------------------


def _ours(rows: Sequence[dict[str, Any]]) -> dict[str, Callable[[], None]]:
    prepared = [
        (
            [Call(item["name"], item["parameters"]) for item in row["prediction"]],
            row["category"],
            (tuple(Call(name, values) for item in row["ground_truth"] for name, values in item.items()),),
            tuple(Tool(tool["name"], "", normalise(tool["parameters"])) for tool in row["tools"]),
        )
        for row in rows
    ]
    texts = [python_calls(calls) for calls, _, _, _ in prepared]

    def checks() -> None:
        for calls, category, golden, tools in prepared:
            score(calls, source="bfcl_v3", category=category, golden_answers=golden, tools=tools)

    def decode_and_checks() -> None:
        for text, (_, category, golden, tools) in zip(texts, prepared, strict=True):
            calls = parse(text, source="bfcl_v3", tools=tools).calls
            score(calls, source="bfcl_v3", category=category, golden_answers=golden, tools=tools)

    return {"checks": checks, "decode_and_checks": decode_and_checks}


# --- upstream's -----------------------------------------------------------------------------------------


class _Blank(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Empty modules for what upstream imports (every vendor's client) and its checker never uses."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> Any:
        if name == "tornado":  # tenacity does without it, and not with an empty one
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        module = ModuleType(spec.name)
        module.__path__ = []
        module.__getattr__ = lambda name: type(name, (), {})  # type: ignore[method-assign]
        return module

    def exec_module(self, module: ModuleType) -> None:
        pass


class _AnyModel(dict[str, Any]):
    """Upstream looks up its model's configuration; ours stands in for every one."""

    underscore_to_dot = False

    def __missing__(self, name: str) -> "_AnyModel":
        return self

    def __contains__(self, name: object) -> bool:
        return True


def _peer(rows: Sequence[dict[str, Any]], folder: Path | None) -> dict[str, Callable[[], None]] | None:
    """Upstream's checker and decoder on the same rows, or None where there is no copy."""
    if folder is not None:
        sys.path.insert(0, str(folder.resolve()))
    if importlib.util.find_spec("bfcl_eval") is None:
        return None
    config = ModuleType("bfcl_eval.constants.model_config")
    config.MODEL_CONFIG_MAPPING = _AnyModel()  # type: ignore[attr-defined]
    sys.modules[config.__name__] = config
    blank = _Blank()
    for language in ("java", "js"):
        name = f"bfcl_eval.model_handler.parser.{language}_parser"
        sys.modules[name] = blank.create_module(importlib.machinery.ModuleSpec(name, blank))
    sys.meta_path.append(blank)
    try:
        checker = importlib.import_module("bfcl_eval.eval_checker.ast_eval.ast_checker").ast_checker
        enums = importlib.import_module("bfcl_eval.constants.enums")
        decode = importlib.import_module("bfcl_eval.model_handler.utils").default_decode_ast_prompting
    finally:
        sys.meta_path.remove(blank)
    python = enums.Language.PYTHON
    prepared: list[tuple[Json, Json, Json, str]] = [
        (
            row["tools"],
            [{item["name"]: item["parameters"]} for item in row["prediction"]],
            row["ground_truth"],
            row["category"],
        )
        for row in rows
    ]
    texts = [
        python_calls([Call(item["name"], item["parameters"]) for item in row["prediction"]]) for row in rows
    ]

    def checks() -> None:
        for tools, calls, golden, category in prepared:
            checker(tools, calls, golden, python, category, "any")

    def decode_and_checks() -> None:
        for text, (tools, _, golden, category) in zip(texts, prepared, strict=True):
            try:
                calls = decode(text, enums.ReturnFormat.PYTHON, False)
            except Exception:  # upstream raises on what it cannot read
                continue
            checker(tools, calls, golden, python, category, "any")

    return {"checks": checks, "decode_and_checks": decode_and_checks}


if __name__ == "__main__":
    typer.run(main)
