"""pass@k and pass^k against drawing answers, and the variance within rows against its definition."""

import itertools
from pathlib import Path

import numpy as np
import pytest

from robustbench_tc.eval.stats import runs
from robustbench_tc.eval.stats.repeats import MOST, repeated

from .synthetic_runs import clean_ids, pairs, write_run

ROWS = pairs(clean_ids({"bfcl_v3": 12}))


Answers = dict[tuple[str, str], list[bool | None]]


def verdicts(seed: int, repeats: int) -> Answers:
    random = np.random.default_rng(seed)
    return {row: (random.random(repeats) < random.random()).tolist() for row in ROWS}


def outcomes_of(folder: Path, made: Answers, repeats: int) -> runs.Outcomes:
    """A run whose answers come in the order of the repeats."""
    turn = {row: iter(answers) for row, answers in made.items()}
    written = write_run(folder, lambda c, t: next(turn[c, t]), ROWS, repeats=repeats)
    return runs.align([runs.read(written)])[0]


def test_one_of_k_and_all_of_k_are_what_every_choice_of_k_answers_gives(tmp_path: Path) -> None:
    made = verdicts(1, 4)
    found = repeated(outcomes_of(tmp_path / "a", made, 4))
    assert found is not None and found.repeats == 4
    clean = [answers for (_, code), answers in made.items() if code == "clean"]
    line = found.lines["clean"]
    assert (line.rows, line.left_out) == (12, 0)
    for k in range(1, 5):
        chosen = [list(itertools.combinations(answers, k)) for answers in clean]
        some = np.mean([np.mean([any(one) for one in of]) for of in chosen])
        every = np.mean([np.mean([all(one) for one in of]) for of in chosen])
        assert line.at[k].value == pytest.approx(some)
        assert line.all[k].value == pytest.approx(every)
        assert line.at[k].low <= line.at[k].value <= line.at[k].high
    assert line.within == pytest.approx(
        np.mean([np.var(np.array(answers, float), ddof=1) for answers in clean])
    )
    assert line.at[1].value == line.all[1].value


def test_answers_that_repeat_have_no_variance_and_one_value(tmp_path: Path) -> None:
    made: Answers = {row: [row[0] < "bfcl_v3__level1_3"] * 3 for row in ROWS}
    found = repeated(outcomes_of(tmp_path / "a", made, 3))
    assert found is not None
    line = found.lines["perturbed"]
    assert line.within == 0 and line.within_share == 0
    assert len({one.value for one in (*line.at.values(), *line.all.values())}) == 1


def test_rows_without_every_verdict_are_left_out_and_counted(tmp_path: Path) -> None:
    made: Answers = {row: [True, False] for row in ROWS}
    made[ROWS[0]] = [True, None]
    assert ROWS[0][1] == "clean"
    found = repeated(outcomes_of(tmp_path / "a", made, 2))
    assert found is not None
    assert (found.lines["clean"].rows, found.lines["clean"].left_out) == (11, 1)
    assert found.lines["clean"].at[2].value == 1.0 and found.lines["clean"].all[2].value == 0.0


def test_rows_that_no_source_has_are_not_left_out(tmp_path: Path) -> None:
    """ToolEyes has no rows of the same-name and reward types."""
    rows = pairs(clean_ids({"bfcl_v3": 2, "tooleyes": 3}))
    folder = write_run(tmp_path / "a", lambda c, t: True, rows, repeats=2)
    found = repeated(runs.align([runs.read(folder)])[0])
    assert found is not None
    assert {line.left_out for line in found.lines.values()} == {0}
    assert found.lines["perturbed"].rows == sum(code != "clean" for _, code in rows)


def test_a_run_asked_once_says_nothing_of_repeats(tmp_path: Path) -> None:
    assert repeated(outcomes_of(tmp_path / "a", verdicts(1, 1), 1)) is None
    nothing: Answers = {row: [None, None] for row in ROWS}
    assert repeated(outcomes_of(tmp_path / "b", nothing, 2)) is None


def test_many_repeats_show_the_first_and_the_last(tmp_path: Path) -> None:
    found = repeated(outcomes_of(tmp_path / "a", verdicts(2, 25), 25))
    assert found is not None
    assert list(found.lines["clean"].at) == [*range(1, MOST + 1), 25]
