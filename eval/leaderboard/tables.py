"""The boards as files for programs: `data.parquet` with every figure, `data.json` with the headline ones."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from robustbench_tc import taxonomy
from robustbench_tc.eval.stats.packs.live import groups
from robustbench_tc.eval.stats.values import HEADS, METRICS

from .boards import Board, Row, defended
from .pages import page_of

HEADLINE = ("run", "model", "rank", "tier", "flags", "perturbed", "success_all", "clean")
"""What `data.json` says of a run."""

COLUMNS: dict[str, pa.DataType] = {
    **dict.fromkeys((
        "run", "kind", "dataset", "version", "fingerprint", "model", "submitter", "tier", "flags", "mode",
        "defended", "weights", "licence", "day", "superseded_by",
    ), pa.string()),
    "rank": pa.int32(),
    **{f"{of}_{name}": pa.int32() for name in (*HEADS, *taxonomy.codes()) for of in ("right", "n")},
    **dict.fromkeys((
        "p_leader", "params_b", "prompt_tokens", "completion_tokens", "latency_s",
    ), pa.float64()),
    **{f"{name}{end}": pa.float64() for name in (
        *METRICS, *(f"success_{one}" for one in groups()), *(f"accuracy_{one}" for one in taxonomy.codes()),
    ) for end in ("", "_low", "_high")},
}  # fmt: skip
"""The columns of `data.parquet`: one row a run, superseded ones included."""


def write(
    boards: Sequence[Board], left_out: Sequence[tuple[str, str]], page: Callable[[Board], str], folder: Path
) -> None:
    """Both files into `folder`. `page`: where a board is first seen."""
    flat = {row.run: _flat(row) for board in boards for row in (*board.rows, *board.past)}
    pq.write_table(
        pa.Table.from_pylist([*flat.values()], pa.schema(COLUMNS)),
        folder / "data.parquet",
        compression="zstd",
    )
    headlines = {
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
    folder.joinpath("data.json").write_bytes(msgspec.json.encode(headlines) + b"\n")


def _flat(row: Row) -> dict[str, Any]:
    """A run by column, with fields that are none."""
    entry, core = row.entry, row.entry.core
    found = {
        **msgspec.structs.asdict(entry.submission),
        **msgspec.structs.asdict(entry),
        **msgspec.structs.asdict(row),
        "flags": " ".join(flag.code for flag in row.flags),
        "defended": defended(entry),
        "day": row.day,
        "rank": row.rank or None,
    }
    if core is not None:
        found |= {"finding": core.sentence, **msgspec.structs.asdict(core.usage)}
        for name, (right, n) in core.counts.items():
            found |= {f"right_{name}": right, f"n_{name}": n}
    for name, value in row.values.items():
        if value is not None:
            found |= {name: value.value, f"{name}_low": value.low, f"{name}_high": value.high}
    return found
