"""What is lost where, the sentence that leads a report, and ranks that the data allow."""

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from robustbench_tc import taxonomy
from robustbench_tc.eval.stats import significance, stages
from robustbench_tc.eval.stats.evidence import Answer, answer
from robustbench_tc.eval.stats.outcomes import Outcomes
from robustbench_tc.eval.stats.runs import Run, align, read
from robustbench_tc.eval.stats.significance import (
    Loss,
    holm,
    holm_of,
)
from robustbench_tc.eval.stats.summary import summarise
from robustbench_tc.eval.stats.values import codes_of

from .synthetic_runs import Verdict, clean_ids, coin, counted, mcnemar_p, pairs, write_run

SIZES = {"bfcl_v3": 12, "toolalpaca": 9}


def of_sample(run: Run) -> dict[str, str]:
    return dict(zip(run.rows["clean_id"].tolist(), run.rows["source"].tolist(), strict=True))


def made(folder: Path, verdict: Verdict, **fields: object) -> tuple[Run, Outcomes]:
    rows = pairs(clean_ids(SIZES))
    run = read(write_run(folder, verdict, rows, **fields))  # type: ignore[arg-type]
    return run, counted(run)


def test_cells_are_counted_and_tested_as_by_hand(tmp_path: Path) -> None:
    """Wrong under CD where BFCL is asked; under TD two more are wrong than on clean, everywhere."""

    def verdict(clean_id: str, code: str) -> bool:
        if code == "CD":
            return not clean_id.startswith("bfcl_v3")
        return not (code == "TD" and clean_id.endswith(("_1", "_2")))

    run, outcomes = made(tmp_path / "a", verdict)
    found = stages.by_source(outcomes, of_sample(run))
    assert set(found) == set(SIZES)
    cells = sum(len(row) for row in found.values())
    assert cells == 2 * len(taxonomy.codes())
    lost = found["bfcl_v3"]["CD"]
    p = mcnemar_p(12, 0)
    assert lost == Loss(12, 12, 0, 1.0, p, min(1.0, p * cells))
    assert lost.significant and not found["toolalpaca"]["CD"].significant
    assert (found["toolalpaca"]["TD"].lost, found["toolalpaca"]["TD"].pairs) == (2, 9)


def test_the_cells_of_a_type_add_up_to_the_type(tmp_path: Path) -> None:
    run, outcomes = made(tmp_path / "a", coin(4))
    table, summary = stages.by_source(outcomes, of_sample(run)), summarise(outcomes)
    for code, row in summary.types.items():
        assert row.flips is not None
        cells = [found[code] for found in table.values()]
        assert sum(one.lost for one in cells) == row.flips.lost
        assert sum(one.pairs for one in cells) == row.flips.pairs
    for name in taxonomy.COMPONENTS:
        shown = summary.values[f"delta_matched_{name}"]
        assert shown is not None
        assert answer(run, outcomes).lines[name].drop.value == pytest.approx(shown.value, abs=1e-12)


def test_a_cell_with_a_missing_row_is_left_out_unless_that_is_allowed(tmp_path: Path) -> None:
    hole = ("bfcl_v3__level1_3", "TD")
    run, outcomes = made(tmp_path / "a", lambda c, t: None if (c, t) == hole else True)
    strict, partial = (stages.by_source(outcomes, of_sample(run), allow_missing=on) for on in (False, True))
    assert strict == stages.by_source(outcomes, of_sample(run)), "nothing missing is allowed unasked"
    assert "TD" not in strict["bfcl_v3"] and strict["toolalpaca"]["TD"].pairs == 9
    assert partial["bfcl_v3"]["TD"].pairs == 11
    assert answer(run, outcomes).lines["reward"].drop.n == 6 * 21 - 1


def test_samples_that_no_run_answered_belong_to_the_source_of_their_id(tmp_path: Path) -> None:
    run = read(write_run(tmp_path / "a", lambda c, t: True, pairs(clean_ids(SIZES))))
    named = [*zip(run.rows["clean_id"], run.rows["type_code"], strict=True), ("rotbench__x_1", "clean")]
    [outcomes] = align([run], expected=named)
    assert set(stages.by_source(outcomes, of_sample(run))) == set(SIZES)


# --- the sentence ---------------------------------------------------------------------------------------


def says(folder: Path, verdict: Verdict, **fields: object) -> Answer:
    return answer(*made(folder, verdict, **fields))


def test_a_component_that_loses_is_named_with_what_happens(tmp_path: Path) -> None:
    found = says(tmp_path / "a", lambda c, t: taxonomy.component_of(t) != "reward")
    assert found.sentence.startswith(
        "Loses 100 points when tool names or prices mislead (reward). Cannot tell"
    )
    assert set(found.worst) == set(codes_of("reward"))
    two = says(tmp_path / "b", lambda c, t: taxonomy.component_of(t) not in ("reward", "action"))
    assert two.sentence.startswith("Loses 100 points in action, 100 in reward.")


def test_a_type_is_named_where_its_component_is_not_lost(tmp_path: Path) -> None:
    """Some are lost under one of six types: few points of the component."""
    rows = pairs(clean_ids({"bfcl_v3": 60}))
    run = read(write_run(tmp_path / "a", lambda c, t: not (t == "CD" and c.endswith("7")), rows))
    quiet = answer(run, counted(run))
    assert quiet.worst == () and quiet.lines["reward"].word == "holds"
    run = read(write_run(tmp_path / "b", lambda c, t: not (t == "CD" and c[-1] in "1357"), rows))
    found = answer(run, counted(run))
    assert found.worst == ("CD",) and found.lines["reward"].word == "holds"
    assert "Loses 40 points under CD. Keeps at least" in found.sentence


def test_at_a_low_clean_accuracy_a_loss_is_a_share_of_the_right_answers(tmp_path: Path) -> None:
    rows = pairs(clean_ids({"bfcl_v3": 60}))
    verdict = lambda c, t: c[-1] in "12" and taxonomy.component_of(t) != "reward"  # noqa: E731
    run = read(write_run(tmp_path / "a", verdict, rows))
    assert answer(run, counted(run)).sentence.startswith("Loses 100 % of its right answers when")


def test_what_could_be_chance_is_not_a_loss(tmp_path: Path) -> None:
    found = says(tmp_path / "a", lambda c, t: not (t == "CD" and c.endswith("_1")))
    assert found.worst == () and "Loses" not in found.sentence


def test_runs_without_pairs_cannot_tell(tmp_path: Path) -> None:
    wrong = says(tmp_path / "wrong", lambda c, t: False)
    assert wrong.sentence.startswith("Cannot tell: no clean row was correct")
    for name in ("CD", "clean"):
        only = [(c, t) for c, t in pairs(clean_ids(SIZES)) if t == name]
        run = read(write_run(tmp_path / name, lambda c, t: True, only))
        assert "no perturbed row and its clean row" in answer(run, counted(run)).sentence


def test_more_cases_are_asked_for_as_far_as_there_are_some(tmp_path: Path) -> None:
    figures = [{"type_code": "clean", "rows": 80, "chance": 0.5, "right": {}}]
    record = {"needs_no_reading": figures}
    found = says(tmp_path / "a", lambda c, t: True, record=record).lines["reward"]
    assert re.search(r"; ask more, --samples (30|40|50)$", found.why)
    assert says(tmp_path / "b", lambda c, t: True).lines["reward"].why.endswith("or another component")
    own = says(tmp_path / "own", lambda c, t: True, source=lambda *_: "own", record=record)
    assert re.search(r"; \d+ more cases$", own.lines["reward"].why)


def nulls(times: int, samples: int, right: float) -> Iterator[Outcomes]:
    """Models that lose nothing: every answer to a sample is right with the sample's own chance."""
    codes = (taxonomy.CLEAN, *taxonomy.codes())
    for seed in range(times):
        generator = np.random.default_rng(seed)
        ability = generator.beta(3 * right, 3 * (1 - right), size=(samples, 1))
        correct = (generator.random((samples, len(codes))) < ability).astype(np.int64)
        one, anchor = np.ones_like(correct), correct[:, :1]
        pair = one.copy()
        pair[:, 0] = 0
        yield Outcomes(
            clean_ids=tuple(map(str, range(samples))),
            types=codes,
            correct=correct,
            n=one,
            missing=0 * one,
            pairs=pair,
            kept=pair * (anchor & correct),
            lost=pair * (anchor > correct),
            gained=pair * (anchor < correct),
            unmet=0 * one,
            repeats=1,
        )


@pytest.mark.parametrize("right", [0.5, 0.9])
def test_a_model_that_loses_nothing_is_seldom_said_to_lose(right: float, tmp_path: Path) -> None:
    run = read(write_run(tmp_path / "any", lambda c, t: True, [("a", taxonomy.CLEAN)]))
    said = [answer(run, one) for one in nulls(60, 40, right)]
    assert sum("Loses" in one.sentence for one in said) <= 7  # components and types, 3 each at the level
    assert sum(bool(one.worst) for one in said) <= 5


# --- Ranks that the data allow


COUNTS = st.lists(st.lists(st.integers(0, 5), min_size=12, max_size=12), min_size=2, max_size=6)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_holm_steps_down(p_values: list[float]) -> None:
    adjusted = holm_of(np.array(p_values))
    assert holm({str(i): p for i, p in enumerate(p_values)}) == dict(
        zip(map(str, range(len(p_values))), adjusted.tolist(), strict=True)
    )
    running = 0.0
    for rank, at in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        running = max(running, min(1.0, (len(p_values) - rank) * p_values[at]))
        assert adjusted[at] == running


@settings(max_examples=25)
@given(COUNTS)
def test_a_model_s_own_rank_is_among_its_places(found: list[list[int]]) -> None:
    found.sort(key=sum, reverse=True)
    pairs = significance.told_apart([np.array(one) for one in found], [5] * len(found))
    assert np.array_equal(pairs.p, pairs.p.T) and not (pairs.better & pairs.better.T).any()
    upper = np.triu_indices(len(found), 1)
    assert np.array_equal(
        (pairs.better | pairs.better.T)[upper], holm_of(pairs.p[upper]) < significance.LEVEL
    )
    for rank, places in enumerate(significance.compatible_ranks(pairs), 1):
        assert 1 <= places.first <= rank <= places.last <= len(found)
    for few, more in zip(
        significance.compatible_ranks(pairs), significance.compatible_ranks(pairs, 50), strict=True
    ):
        assert more == (few.first, few.last + 50 - len(found))


def test_what_is_far_apart_has_one_place_and_what_is_equal_shares_them() -> None:
    strong, weak = np.ones(60, np.int64), np.zeros(60, np.int64)
    pairs = significance.told_apart([strong, strong, weak], [1, 1, 1])
    assert significance.compatible_ranks(pairs) == [(1, 2), (1, 2), (3, 3)]
    assert pairs.better.tolist() == [[False, False, True], [False, False, True], [False] * 3]
    # Twice as many repeats with the same shares is the same comparison.
    assert significance.compatible_ranks(
        significance.told_apart([2 * strong, strong, weak], [2, 1, 1])
    ) == significance.compatible_ranks(pairs)
    counted = significance.told_apart_by_counts([(60, 60), (59, 60), (3, 60)])
    assert significance.compatible_ranks(counted) == [(1, 2), (1, 2), (3, 3)]


def test_who_was_asked_twice_as_often_is_not_twice_as_good() -> None:
    found = np.array([[5, 4, 3, 1, 0, 2, 5, 5], [1, 4, 2, 1, 0, 0, 5, 3]])
    once = significance.told_apart(list(found), [5, 5])
    more = significance.told_apart([found[0], 2 * found[1]], [5, 10])
    assert np.array_equal(once.p, more.p) and once.p[0, 1] < 1
