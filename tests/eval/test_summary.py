"""The summary of a scored run, by hand on a dozen rows."""

import pytest

from robustbench_tc import taxonomy
from robustbench_tc.errors import UserError
from robustbench_tc.eval.summary import ScoredRow, summarise


def row(clean_id: str, code: str, correct: bool | None, **fields: object) -> ScoredRow:
    plain: dict[str, object] = {
        "id": f"{clean_id}::{code}",
        "clean_id": clean_id,
        "type_code": code,
        "component": taxonomy.component_of(code),
        "source": clean_id.split("__")[0],
        "category": "level1",
        "repeat": 0,
        "status": "ok" if correct is not None else "request_error",
        "injected": True if taxonomy.component_of(code) == "transition" else None,
        "finish_reason": "stop",
        "score": None if correct is None else float(correct),
        "correct": correct,
        "error_mode": None if correct in (True, None) else "wrong_name",
    }
    return ScoredRow(**(plain | fields))  # type: ignore[arg-type]


A, B, C = "apibank__level1_1", "bfcl_v3__x", "tooleyes__y"
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
    row(A, "transient_timeout", False, status="too_long", error_mode="other"),
    row(B, "transient_timeout", False, finish_reason="length"),
]


def test_accuracies_gaps_and_retention() -> None:
    found = summarise(ROWS, len(ROWS))
    assert found.clean == {"correct": 2, "n": 3, "accuracy": 2 / 3}
    assert found.perturbed == {"correct": 4, "n": 9, "accuracy": 4 / 9}
    observation, action = found.components["observation"], found.components["action"]
    assert observation["delta"] == pytest.approx(0)
    assert observation["delta_matched"] == pytest.approx((0 + 1 - 1) / 3)
    # Over all clean rows 2/3 − 1/2; over the two anchored pairs one in two.
    assert action["delta"] == pytest.approx(1 / 6)
    assert action["delta_matched"] == pytest.approx(1 / 2)
    assert found.components["transition"]["delta_matched"] == 1.0
    assert found.retention == pytest.approx(1 - (0 + 1 / 6 + 1 / 6) / 3 / (2 / 3))
    assert found.tooleyes_score == pytest.approx(0.75)
    assert (found.length, found.too_long, found.rejected, found.missing) == (1, 1, 0, 0)
    assert found.error_modes == {"wrong_name": 4, "name_bias": 1, "other": 1}
    lines = {line.type_code: line for line in found.types}
    assert lines["CD"].error_modes == {"name_bias": 1}
    assert (lines["transient_timeout"].injected, lines["CD"].injected) == (2, None)


def test_the_papers_subset_leaves_out_kinds_that_the_paper_has_not() -> None:
    third = row("apibank__level3_9", "CD", True, category="level3")
    found = summarise([*ROWS, third], len(ROWS) + 1, subset="paper")
    counts = {line.type_code: line.n for line in found.types}
    assert counts == {
        "clean": 3,
        "realistic_typos": 3,
        "same_name_A": 1,
        "CD": 1,
        "transient_timeout": 2,
    }


def test_extensions_are_listed_and_do_not_enter_the_headline() -> None:
    found = summarise([*ROWS, row(A, "CD_AB_pref", False)], len(ROWS) + 1)
    assert found.perturbed["n"] == 9
    assert "CD_AB_pref" in {line.type_code for line in found.types}


def test_there_is_no_headline_while_an_answer_is_missing() -> None:
    rows = [*ROWS[:-1], row(B, "transient_timeout", None)]
    with pytest.raises(UserError, match=r"2 of 13 rows have no answer \(1 request_error, 1 not asked\)"):
        summarise(rows, 13)
    found = summarise(rows, 13, allow_missing=True)
    assert (found.answered, found.missing) == (11, 2)
    assert found.components["transition"]["n"] == 1


def test_repeats_pair_with_their_own_clean_answer() -> None:
    rows = [
        row(A, "clean", True),
        row(A, "clean", False, repeat=1),
        row(A, "CD", True),
        row(A, "CD", False, repeat=1),
    ]
    assert summarise(rows, 4).components["reward"]["delta_matched"] == 0.0


def test_a_run_without_clean_rows_has_no_gaps() -> None:
    found = summarise([row(A, "CD", True)], 1)
    assert (found.clean["accuracy"], found.retention) == (None, None)
    assert found.components["reward"]["delta"] is None
    assert found.components["reward"]["delta_matched"] is None


def test_an_unknown_subset_is_named() -> None:
    with pytest.raises(UserError, match="unknown subset 'papr': did you mean paper"):
        summarise(ROWS, 12, subset="papr")
