"""What `rbtc summary` says of a scored run, by hand on a dozen rows."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from robustbench_tc.eval.stats import runs
from robustbench_tc.eval.stats.overview import Overview, overview
from robustbench_tc.eval.stats.runs import Subset

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


def test_accuracies_gaps_and_retention(tmp_path: Path) -> None:
    found = overview_of(tmp_path / "run", ROWS, len(ROWS))
    assert (found.clean.of, found.clean.accuracy) == ((2, 3), 2 / 3)
    assert (found.perturbed.of, found.perturbed.accuracy) == ((4, 9), 4 / 9)
    observation, action = found.components["observation"], found.components["action"]
    assert observation.delta == pytest.approx(0)
    assert observation.delta_matched == pytest.approx((0 + 1 - 1) / 3)
    # Over all clean rows 2/3 − 1/2; over the two anchored pairs one in two.
    assert action.delta == pytest.approx(1 / 6)
    assert action.delta_matched == pytest.approx(1 / 2)
    assert found.components["transition"].delta_matched == 1.0
    assert found.retention == pytest.approx(1 - (0 + 1 / 6 + 1 / 6) / 3 / (2 / 3))
    assert found.tooleyes_score == pytest.approx(0.75)
    assert (found.length, found.too_long, found.rejected, found.missing) == (1, 1, 0, 0)
    assert found.error_modes == {"wrong_name": 4, "name_bias": 1, "other": 1}
    lines = {line.type_code: line for line in found.types}
    assert lines["CD"].error_modes == {"name_bias": 1}
    assert (lines["transient_timeout"].injected, lines["CD"].injected) == (2, None)
    assert found.gaps[0].startswith("no rows of query_paraphrase")


def test_rows_that_nobody_could_answer_are_counted_apart(tmp_path: Path) -> None:
    """Sample A is flagged: its rows are in no number of `verified`, and no honest model has them right."""
    flagged = [
        (*one[:3], one[3] | {"flags": ["x", "gold_not_stated"]}) if one[0] == A else one for one in ROWS
    ]
    found = overview_of(tmp_path / "run", flagged, len(ROWS))
    assert found.clean.of == (2, 3) and found.perturbed.of == (4, 9)
    clean, perturbed = found.verified["clean"], found.verified["perturbed"]
    assert (clean.correct, clean.n, clean.left_out) == (1, 2, 1)
    assert (clean.accuracy, clean.best) == (1 / 2, 2 / 3)
    assert (perturbed.correct, perturbed.n, perturbed.left_out) == (3, 5, 4)
    assert (perturbed.accuracy, perturbed.best) == (3 / 5, 5 / 9)
    asked = overview_of(tmp_path / "asked", flagged, len(ROWS), subset="verified")
    assert (asked.clean.of, asked.perturbed.of) == ((1, 2), (3, 5))
    assert (asked.verified["perturbed"].left_out, asked.verified["perturbed"].best) == (0, 1.0)
    assert "name_bias" in found.error_modes and "name_bias" not in asked.error_modes
    plain = overview_of(tmp_path / "plain", ROWS, len(ROWS), subset="verified")
    assert plain.perturbed.of == (4, 9) and plain.verified["clean"].best == 1.0


def test_the_papers_subset_leaves_out_kinds_that_the_paper_has_not(tmp_path: Path) -> None:
    more = [row("apibank__level3_9", "CD", True), row(A, "CD_AB_pref", True)]
    found = overview_of(tmp_path / "run", [*ROWS, *more], len(ROWS) + 2, subset="paper")
    assert {line.type_code: line.n for line in found.types} == {
        "clean": 3,
        "realistic_typos": 3,
        "same_name_A": 1,
        "CD": 1,
        "transient_timeout": 2,
    }


def test_extensions_are_listed_and_do_not_enter_the_headline(tmp_path: Path) -> None:
    found = overview_of(tmp_path / "run", [*ROWS, row(A, "CD_AB_pref", False)], len(ROWS) + 1)
    assert found.perturbed.n == 9
    assert "CD_AB_pref" in {line.type_code for line in found.types}
    assert found.error_modes["wrong_name"] == 5


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
    assert (found.answered, found.missing) == (11, 2)
    assert found.components["transition"].n == 1


def test_repeats_pair_with_their_own_clean_answer(tmp_path: Path) -> None:
    answers = iter([True, False, True, False])
    made = write_run(tmp_path / "run", lambda c, t: next(answers), [(A, "clean"), (A, "CD")], repeats=2)
    found = overview(runs.read(made), 4, {}).components["reward"]
    assert (found.pairs, found.kept, found.lost, found.gained) == (2, 1, 0, 0)
    assert found.delta_matched == 0.0


def test_a_run_without_clean_rows_has_no_gaps(tmp_path: Path) -> None:
    found = overview_of(tmp_path / "run", [row(A, "CD", True)], 1)
    assert (found.clean.accuracy, found.retention) == (None, None)
    assert found.components["reward"].accuracy == 1.0
    assert found.components["reward"].delta is None
    assert found.components["reward"].delta_matched is None


def test_a_damaged_column_is_one_line(tmp_path: Path) -> None:
    made = write_run(tmp_path / "run", lambda c, t: True, [(A, "clean")])
    table = pq.read_table(made / "scores.parquet")
    at = table.schema.get_field_index("correct")
    pq.write_table(table.set_column(at, "correct", pa.array([["yes"]])), made / "scores.parquet")
    refuses(r"scores\.parquet is damaged: ", runs.read, made)


def test_every_value_comes_with_its_interval(tmp_path: Path) -> None:
    found = overview_of(tmp_path / "run", ROWS, len(ROWS))
    assert {"clean", "perturbed", "retention", "delta_reward", "delta_matched_action"} <= set(found.intervals)
    for name, line in (("clean", found.clean), ("perturbed", found.perturbed)):
        one = found.intervals[name]
        assert one.value == line.accuracy and one.low < one.value < one.high
