"""Run folders and counts that no model made: the shape of a full build, verdicts from seeded coins."""

import itertools
import json
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from robustbench_tc import schema, taxonomy
from robustbench_tc.eval.record import FORMAT
from robustbench_tc.eval.stats import packs, runs, significance, summary
from robustbench_tc.eval.stats.outcomes import Outcomes

SIZES = {"bfcl_v3": 32, "apibank": 74, "rotbench": 21, "toolalpaca": 21, "tooleyes": 51}
"""Clean rows per source of the paper profile."""

FAILURES = [(stage, detail) for stage, details in schema.STAGES.items() for detail in details]

Verdict = Callable[[str, str], bool | None]
"""(clean_id, type code) → right, wrong, or no verdict."""


def mcnemar_p(only_a: int, only_b: int) -> float:
    """McNemar's exact two-sided p-value from the two kinds of discordant pairs."""
    return significance.paired_p(np.repeat(np.array([1, -1]), [only_a, only_b]))


def clean_ids(sizes: dict[str, int] = SIZES) -> list[str]:
    """Ids of our own making, in the form of the real ones; 14 of API-Bank's are of level 3."""
    return [
        f"{source}__level{3 if source == 'apibank' and i < 14 else 1}_{i}"
        for source, count in sizes.items()
        for i in range(count)
    ]


def pairs(ids: Iterable[str]) -> list[tuple[str, str]]:
    """The (clean_id, type code) rows of a full build: the same-name and reward types skip ToolEyes."""
    skipped = {t.code for t in taxonomy.types() if t.component == "reward" or t.code.startswith("same_name")}
    codes = (taxonomy.CLEAN, *taxonomy.codes())
    return [(c, t) for c in ids for t in codes if not (c.startswith("tooleyes") and t in skipped)]


def coin(seed: int, right: float = 0.7, kept: float = 0.8) -> Verdict:
    """A model: right on clean with `right`; perturbed rows lean on how hard their clean row is for it."""
    verdicts: dict[tuple[str, str], bool] = {}
    generator = np.random.default_rng(seed)
    for clean_id in clean_ids():
        ability = generator.beta(right * 3, (1 - right) * 3)
        for code in (taxonomy.CLEAN, *taxonomy.codes()):
            chance = ability if code == taxonomy.CLEAN else ability * kept
            verdicts[clean_id, code] = bool(generator.random() < chance)
    return lambda clean_id, code: verdicts[clean_id, code]


def counted(run: Path | runs.Run, subset: runs.Subset = "all") -> Outcomes:
    """The counts of one run."""
    return runs.align([run if isinstance(run, runs.Run) else runs.read_run(run)], subset=subset)[0]


def pack_input(folder: Path, *, allow_missing: bool = False) -> packs.Given:
    """What the tables of a pack are made of."""
    outcomes = counted(run := runs.read_run(folder))
    return packs.Given(run, outcomes, summary.summarise(outcomes, allow_missing=allow_missing), allow_missing)


def failure(clean_id: str, code: str) -> tuple[str, str]:
    """The stage at which a wrong answer of a row fails, and what is wrong there."""
    return FAILURES[zlib.crc32(f"{clean_id} {code}".encode()) % len(FAILURES)]


def write_run(
    folder: Path,
    verdict: Verdict,
    rows: Iterable[tuple[str, str]] | None = None,
    *,
    model: str = "model-3b",
    fingerprint: str = "f" * 32,
    version: str | None = "1.0.0",
    repeats: int = 1,
    record: dict[str, Any] | None = None,
    **fields: Any,
) -> Path:
    """A run folder as `rbtc score` leaves it. `fields` gives other columns from (clean_id, type code)."""
    features = schema.arrow_schema(schema.Prediction, schema.Verdict)
    out: dict[str, list[Any]] = {name: [] for name in features.names}
    rows = pairs(clean_ids()) if rows is None else list(rows)
    for (clean_id, code), repeat in itertools.product(rows, range(repeats)):
        right = verdict(clean_id, code)
        component = taxonomy.component_of(code)
        row: dict[str, Any] = {
            "id": f"{clean_id}::{code}",
            "clean_id": clean_id,
            "type_code": code,
            "component": component,
            "source": clean_id.split("__")[0],
            "category": "level1",
            "model": model,
            "mode": "prompt",
            "repeat": repeat,
            "sample_hash": "0" * 16,
            "status": "request_error" if right is None else "ok",
            "raw_output": None if right is None else "[f(a=1)]",
            "injected": True if component == "transition" else None,
            "first_output": "[f(a=1)]" if component == "transition" else None,
            "finish_reason": "stop",
            "prompt_tokens": 400,
            "completion_tokens": 40,
            "latency_s": 0.5,
            "retries": 0,
            "calls": None if right is None else '[{"name":"f","parameters":{"a":1}}]',
            "variant": "python_calls",
            "score": None if right is None else float(right),
            "correct": right,
            "error_mode": "wrong_parameters" if right is False else None,
            "reason": "value" if right is False else None,
            "flags": [],
        }
        if right is False:
            row["stage"], row["stage_detail"] = failure(clean_id, code)
        row |= {name: give(clean_id, code) for name, give in fields.items()}
        for name, column in out.items():
            column.append(row.get(name))
    table = pa.table([pa.array(out[f.name], f.type) for f in features], schema=features)
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, folder / "scores.parquet")
    made = {
        "format": FORMAT,
        "dataset": "robustbench-tc",
        "dataset_version": version,
        "dataset_revision": None,
        "settings": {
            "fingerprint": fingerprint,
            "model": model,
            "mode": "prompt",
            "backend": "openai",
            "decoding": {},
            "prompt_version": "1",
            "selection": {},
            "repeat": repeats,
        },
        "expected": len(rows) * repeats,
        "sessions": [],
        "totals": {},
    }
    (folder / "run.json").write_text(json.dumps(made | (record or {}), indent=1))
    return folder
