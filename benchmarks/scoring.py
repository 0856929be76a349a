"""Checks and decode-and-checks per second on BFCL's Python vectors, one core, and the slowest hostile text.

    python -m benchmarks.scoring [--vectors ../shared/vectors]

The yardstick is upstream's own checker and decoder, the `bfcl-eval` of `.venv-live` (`make env-live`). Both
take turns on the same rows; the best turn of each counts.
"""

import importlib
import importlib.abc
import importlib.machinery
import json
import sys
import time
import timeit
from collections.abc import Callable, Sequence
from functools import partial
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
from robustbench_tc.schema import Call, Tool

FILES = ("bfcl_nonlive.jsonl", "bfcl_live.jsonl")
SECONDS = 2.0
"""How long each is measured at least."""

PEER = Path(__file__).parents[1] / ".venv-live"


def main(vectors: Path = Path("../shared/vectors")) -> None:
    """Print the figures."""
    rows = [
        msgspec.json.decode(line)
        for name in FILES
        for line in (vectors / name).read_bytes().splitlines()
        if b'"underscore_to_dot":true' not in line.replace(b" ", b"")
    ]
    found: dict[str, Any] = {"rows": len(rows), "peer": "bfcl-eval"}
    peer = _peer(rows)
    for name, work in _ours(rows).items():
        ours, theirs = (len(rows) / seconds for seconds in _best(work, peer[name]))
        ratio = round(ours / theirs, 2)
        found[name] = {"per_second": round(ours), "peer_per_second": round(theirs), "ratio": ratio}
    found["slowest_hostile_ms"] = _slowest()
    print(json.dumps(found, indent=2))  # noqa: T201 - it is the output


def _best(*works: Callable[[], None]) -> list[float]:
    """Seconds of the best turn of each."""
    turns: list[list[float]] = [[] for _ in works]
    while min(map(sum, turns)) < SECONDS:
        for work, taken in zip(works, turns, strict=True):
            taken.append(timeit.timeit(work, number=1))
    return [min(taken) for taken in turns]


def _slowest() -> dict[str, float]:
    """The three slowest hostile texts of 1 MB, in milliseconds of processor time (best of three each)."""
    found: dict[str, float] = {}
    for kind, text in hostile().items():
        for source in ORDERS:
            read = partial(parse, text, source=source, tools=TOOLS)
            best = min(timeit.repeat(read, timer=time.thread_time, number=1, repeat=3))
            found[kind] = max(found.get(kind, 0.0), round(best * 1_000, 1))
    return dict(sorted(found.items(), key=lambda item: -item[1])[:3])


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


class _Blank(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Stands for every package that bfcl-eval imports and its Python checker does not use."""

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
        """There is nothing in it."""


class _AnyModel(dict[str, Any]):
    """bfcl-eval's table of models, in which every model is, without the renaming of dots."""

    underscore_to_dot = False

    def __missing__(self, name: str) -> "_AnyModel":
        return self

    def __contains__(self, name: object) -> bool:
        return True


def _peer(rows: Sequence[dict[str, Any]]) -> dict[str, Callable[[], None]]:
    """Upstream's functions over the same rows."""
    folder = next(PEER.glob("lib/python*/site-packages/bfcl_eval"), None)
    if folder is None:
        sys.exit(f"no bfcl-eval in {PEER.name}: make env-live")
    sys.path.append(str(folder.parent))
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

    def check(row: dict[str, Any], calls: object) -> None:
        checker(row["tools"], calls, row["ground_truth"], enums.Language.PYTHON, row["category"], "any")

    called = [[{item["name"]: item["parameters"]} for item in row["prediction"]] for row in rows]
    texts = [
        python_calls([Call(item["name"], item["parameters"]) for item in row["prediction"]]) for row in rows
    ]

    def checks() -> None:
        for row, calls in zip(rows, called, strict=True):
            check(row, calls)

    def decode_and_checks() -> None:
        for row, text in zip(rows, texts, strict=True):
            try:
                calls = decode(text, enums.ReturnFormat.PYTHON, False)
            except Exception:  # upstream raises on what it cannot read
                continue
            check(row, calls)

    return {"checks": checks, "decode_and_checks": decode_and_checks}


if __name__ == "__main__":
    typer.run(main)
