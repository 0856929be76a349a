"""What `rbtc summary` says of a scored run, by hand on a dozen rows."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from robustbench_tc.eval.stats import runs
from robustbench_tc.eval.stats.runs import Subset
from robustbench_tc.eval.stats.screen import Overview, overview

from ..refusals import refuses
from .synthetic_runs import write_run

A, B, C = "apibank__level1_1", "bfcl_v3__x", "tooleyes__y"

Row = tuple[str, str, bool | None, dict[str, Any]]


def row(clean_id: str, code: str, correct: bool | None, **fields: Any) -> Row:
    return clean_id, code, correct, fields


ROWS = [
    row(A, "clean", True),
    row(B, "clean", True),
    row(C, "clean", False, score=0.5),
    row(A, "realistic_typos", True),
    row(B, "realistic_typos", False),
    row(C, "realistic_typos", True),
    row(A, "same_name_A", False),
    row(B, "same_name_A", True),
    row(A, "CD", False, error_mode="name_bias"),
    row(B, "CD", True),
    row(A, "transient_timeout", False, status="too_long", error_mode="other", finish_reason=None),
    row(B, "transient_timeout", False, finish_reason="length"),
]


def overview_of(
    folder: Path, rows: Iterable[Row], expected: int, *, subset: Subset = "all", allow_missing: bool = False
) -> Overview:
    """The overview of a run folder that holds these rows."""
    rows = list(rows)
    verdicts = {(clean_id, code): correct for clean_id, code, correct, _ in rows}
    made = write_run(folder, lambda c, t: verdicts[c, t], [row[:2] for row in rows])
    table = pq.read_table(made / "scores.parquet")
    changed = table.to_pylist()
    for line, (*_, fields) in zip(changed, rows, strict=True):
        line |= {"error_mode": "wrong_name" if line["correct"] is False else None} | fields
    pq.write_table(pa.Table.from_pylist(changed, schema=table.schema), made / "scores.parquet")
    return overview(runs.read(made), expected, {}, subset=subset, allow_missing=allow_missing)


def retention_of(found: Overview) -> float | None:
    one = found.summary.values["retention"]
    return None if one is None else one.value


def test_accuracies_gaps_and_retention(tmp_path: Path) -> None:
    found = overview_of(tmp_path / "run", ROWS, len(ROWS))
    assert (found.summary.lines["clean"].of, found.summary.lines["clean"].accuracy) == ((2, 3), 2 / 3)
    assert (found.summary.lines["perturbed"].of, found.summary.lines["perturbed"].accuracy) == ((4, 9), 4 / 9)
    observation, action = found.summary.lines["observation"], found.summary.lines["action"]
    assert observation.delta == pytest.approx(0)
    assert observation.delta_matched == pytest.approx((0 + 1 - 1) / 3)
    # Over all clean rows 2/3 − 1/2; over the two anchored pairs one in two.
    assert action.delta == pytest.approx(1 / 6)
    assert action.delta_matched == pytest.approx(1 / 2)
    assert found.summary.lines["transition"].delta_matched == 1.0
    assert retention_of(found) == pytest.approx(1 - (0 + 1 / 6 + 1 / 6) / 3 / (2 / 3))
    assert found.mean_scores["tooleyes"] == pytest.approx(0.75)
    assert (found.length, found.too_long, found.rejected, found.missing) == (1, 1, 0, 0)
    assert [found.error_modes[name] for name in ("clean", "action", "transition")] == [
        {"wrong_name": 1},
        {"wrong_name": 1},
        {"wrong_name": 1, "other": 1},
    ]
    assert found.error_modes["CD"] == {"name_bias": 1}
    assert found.summary.gaps[0].startswith("no rows of query_paraphrase")


def test_rows_that_nobody_could_answer_are_counted_apart(tmp_path: Path) -> None:
    """Sample A is flagged: its rows are in no number of `verified`, and no honest model has them right."""
    flagged = [
        (*one[:3], one[3] | {"flags": ["x", "gold_not_stated"]}) if one[0] == A else one for one in ROWS
    ]
    found = overview_of(tmp_path / "run", flagged, len(ROWS))
    assert found.summary.lines["clean"].of == (2, 3) and found.summary.lines["perturbed"].of == (4, 9)
    clean, perturbed = found.verified["clean"], found.verified["perturbed"]
    assert (clean.correct, clean.n, clean.left_out) == (1, 2, 1)
    assert (clean.accuracy, clean.best) == (1 / 2, 2 / 3)
    assert (perturbed.correct, perturbed.n, perturbed.left_out) == (3, 5, 4)
    assert (perturbed.accuracy, perturbed.best) == (3 / 5, 5 / 9)
    asked = overview_of(tmp_path / "asked", flagged, len(ROWS), subset="verified")
    assert (asked.summary.lines["clean"].of, asked.summary.lines["perturbed"].of) == ((1, 2), (3, 5))
    assert (asked.verified["perturbed"].left_out, asked.verified["perturbed"].best) == (0, 1.0)
    assert found.error_modes["CD"] == {"name_bias": 1} and "CD" not in asked.error_modes
    plain = overview_of(tmp_path / "plain", ROWS, len(ROWS), subset="verified")
    assert plain.summary.lines["perturbed"].of == (4, 9) and plain.verified["clean"].best == 1.0


def test_there_is_no_headline_while_an_answer_is_missing(tmp_path: Path) -> None:
    rows = [*ROWS[:-1], row(B, "transient_timeout", None)]
    refuses(
        r"2 of 13 rows have no answer \(1 request_error, 1 not asked\)",
        overview_of,
        tmp_path / "run",
        rows,
        13,
    )
    found = overview_of(tmp_path / "run", rows, 13, allow_missing=True)
    assert (found.expected, found.missing) == (13, 2)
    assert found.summary.lines["transition"].n == 1


def test_a_run_without_clean_rows_has_no_gaps(tmp_path: Path) -> None:
    found = overview_of(tmp_path / "run", [row(A, "CD", True)], 1)
    assert (found.summary.lines["clean"].accuracy, retention_of(found)) == (None, None)
    assert found.summary.lines["reward"].accuracy == 1.0
    assert found.summary.lines["reward"].delta is None
    assert found.summary.lines["reward"].delta_matched is None


def test_a_damaged_column_is_one_line(tmp_path: Path) -> None:
    made = write_run(tmp_path / "run", lambda c, t: True, [(A, "clean")])
    table = pq.read_table(made / "scores.parquet")
    at = table.schema.get_field_index("correct")
    pq.write_table(table.set_column(at, "correct", pa.array([["yes"]])), made / "scores.parquet")
    refuses(r"scores\.parquet is damaged: ", runs.read, made)
