"""The boards as files for programs: `data.parquet` with every figure, `data.json` with the headline ones."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from robustbench_tc import taxonomy
from robustbench_tc.eval.stats.live import groups
from robustbench_tc.eval.stats.values import HEADS, METRICS
from robustbench_tc.io import parquet

from .boards import Board, Row, defended
from .pages import page_of

HEADLINE = ("run", "model", "rank", "tier", "flags", "perturbed", "success_all", "clean")
"""What `data.json` says of a run."""

_TEXTS = ("run", "kind", "dataset", "version", "fingerprint", "model", "submitter", "tier", "flags", "mode",
          "defended", "weights", "licence", "day", "superseded_by")  # fmt: skip
_VALUES = (
    *METRICS,
    *(f"success_{name}" for name in groups()),
    *(f"accuracy_{one}" for one in taxonomy.codes()),
)
_FLOATS = ("p_leader", "params_b", "prompt_tokens", "completion_tokens", "latency_s",
           *(f"{name}{end}" for name in _VALUES for end in ("", "_low", "_high")))  # fmt: skip
_WHOLE = ("rank", *(f"{kind}_{name}" for name in (*HEADS, *taxonomy.codes()) for kind in ("right", "n")))
_TYPES = {pa.string(): _TEXTS, pa.int32(): _WHOLE, pa.float64(): _FLOATS}
SCHEMA = pa.schema([pa.field(name, kind) for kind, names in _TYPES.items() for name in names])
"""The columns of `data.parquet`: one row a run, superseded ones included."""


def write(
    boards: Sequence[Board], left_out: Sequence[tuple[str, str]], page: Callable[[Board], str], folder: Path
) -> None:
    """Both files into `folder`. `page`: where a board is first seen."""
    flat = {row.run: _flat(row) for board in boards for row in (*board.rows, *board.past)}
    columns = {name: [one.get(name) for one in flat.values()] for name in SCHEMA.names}
    pq.write_table(parquet.table(columns, SCHEMA), folder / "data.parquet", compression="zstd")
    said = {
        "boards": [
            {
                "kind": board.kind,
                "dataset": board.dataset,
                "version": board.version,
                "fingerprint": board.fingerprint,
                "page": page(board),
                "runs": [
                    {name: flat[row.run].get(name) for name in HEADLINE} | {"page": page_of(row)}
                    for row in board.rows
                ],
            }
            for board in boards
        ],
        "left_out": dict(left_out),
    }
    folder.joinpath("data.json").write_bytes(msgspec.json.encode(said) + b"\n")


def _flat(row: Row) -> dict[str, Any]:
    entry, submission = row.entry, row.entry.submission
    found: dict[str, Any] = {
        "run": entry.run,
        "kind": entry.kind,
        "dataset": entry.dataset,
        "version": entry.version,
        "fingerprint": entry.fingerprint,
        "model": submission.model,
        "submitter": entry.submitter,
        "tier": row.tier,
        "flags": " ".join(flag.code for flag in row.flags),
        "mode": entry.mode,
        "defended": defended(row.entry),
        "weights": submission.weights,
        "licence": submission.licence,
        "day": row.day,
        "superseded_by": row.superseded_by,
        "rank": row.rank or None,
        "p_leader": row.p_leader,
        "params_b": submission.params_b,
    }
    values = dict(entry.core.metrics) if entry.core else {taxonomy.CLEAN: row.value(taxonomy.CLEAN)}
    if entry.core is not None:
        values |= {f"accuracy_{code}": one.accuracy for code, one in entry.core.types.items()}
        found |= msgspec.structs.asdict(entry.core.usage)
        for name, (right, n) in entry.core.counts.items():
            found |= {f"right_{name}": right, f"n_{name}": n}
    for one in entry.live.lines if entry.live else ():
        values[f"success_{one.name}"] = one.success
    for name, value in values.items():
        if value is not None:
            found |= {name: value.value, f"{name}_low": value.low, f"{name}_high": value.high}
    return found
