"""Tests, repeats, losses, the sentence that leads a report, and ranks that the data allow."""

import itertools
import math
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats as scipy_stats

from robustbench_tc import taxonomy
from robustbench_tc.eval.stats import intervals, runs, significance, stages
from robustbench_tc.eval.stats.evidence import Answer, answer
from robustbench_tc.eval.stats.outcomes import Outcomes
from robustbench_tc.eval.stats.paired import reasked
from robustbench_tc.eval.stats.significance import (
    SIGNS,
    Loss,
    fisher_p,
    holm,
    holm_of,
    log_linear,
    paired_p,
    signs_p,
    stars,
)
from robustbench_tc.eval.stats.summary import MOST, Repeated, repeated, summarise
from robustbench_tc.eval.stats.values import codes_of

from .synthetic_runs import Verdict, clean_ids, coin, counted, mcnemar_p, pairs, write_run


@given(st.integers(0, 60), st.integers(0, 60))
def test_mcnemar_is_the_two_sided_binomial_test(only_a: int, only_b: int) -> None:
    n, low = only_a + only_b, min(only_a, only_b)
    tail = sum(math.comb(n, k) for k in range(low + 1)) / 2**n
    assert mcnemar_p(only_a, only_b) == pytest.approx(min(1.0, 2 * tail))


@given(st.lists(st.integers(-6, 6), min_size=1, max_size=9))
def test_the_paired_test_counts_sign_patterns_at_least_as_extreme(column: list[int]) -> None:
    observed = abs(sum(column))
    patterns = list(itertools.product((1, -1), repeat=len(column)))
    extreme = sum(
        abs(sum(s * v for s, v in zip(signs, column, strict=True))) >= observed for signs in patterns
    )
    assert paired_p(np.array(column)) == pytest.approx(extreme / len(patterns))


def test_a_tiny_p_value_keeps_its_digits() -> None:
    assert mcnemar_p(60, 0) == pytest.approx(2 / 2**60)


@given(st.integers(1, 15), st.integers(1, 15), st.data())
def test_fisher_is_the_sum_over_tables_no_more_likely(na: int, nb: int, data: st.DataObject) -> None:
    a, b = data.draw(st.integers(0, na)), data.draw(st.integers(0, nb))
    right = a + b
    likely = {
        k: math.comb(na, k) * math.comb(nb, right - k) for k in range(max(0, right - nb), min(na, right) + 1)
    }
    expected = sum(w for w in likely.values() if w <= likely[a]) / math.comb(na + nb, right)
    assert fisher_p((a, na), (b, nb)) == pytest.approx(expected)


def test_stars_follow_the_papers_levels() -> None:
    assert [stars(p) for p in (None, 0.05, 0.049, 0.0099, 0.0009)] == [0, 0, 1, 2, 3]


def test_the_trend_is_linear_in_the_logarithm_of_size() -> None:
    exact = log_linear([1, 10, 100, 1000, 10_000], [0.1, 0.3, 0.5, 0.7, 0.9])
    assert exact is not None and exact == pytest.approx((0.1, 0.2, 0.2, 0.2, 5))
    assert log_linear([1, 10, 100, 1000], [0.1, 0.3, 0.5, 0.7]) is None
    assert log_linear([3] * 5, [0.1, 0.3, 0.2, 0.4, 0.3]) is None


def test_the_interval_of_a_trend_is_that_of_the_regression() -> None:
    """scipy.stats.linregress and Student's t on n − 2 degrees of freedom."""
    sizes, values = [0.5, 1.5, 3, 7, 8, 32, 70], [0.31, 0.42, 0.40, 0.55, 0.52, 0.61, 0.66]
    fit = scipy_stats.linregress([math.log10(size) for size in sizes], values)
    reach = scipy_stats.t.isf(0.025, 5) * fit.stderr
    expected = (fit.intercept, fit.slope, fit.slope - reach, fit.slope + reach, 7)
    assert log_linear(sizes, values) == pytest.approx(expected)


@given(st.lists(st.integers(-9, 9), min_size=3, max_size=12))
def test_sign_patterns_by_chance_are_those_of_the_exact_test(column: list[int]) -> None:
    """20,000 patterns: within 0.014 of the exact p, at 99.99 % confidence."""
    [found] = signs_p([np.array(column)])
    assert found == pytest.approx(paired_p(np.array(column)), abs=0.015)


def test_sign_patterns_of_many_clusters_are_normal() -> None:
    column = np.repeat([1, -1, 0], [330, 270, 5_000])
    many, none = signs_p([column, np.zeros_like(column)])
    assert many == pytest.approx(math.erfc(60 / math.sqrt(2 * 600)))
    assert many == pytest.approx(paired_p(column), abs=0.002)
    assert none == 1.0
    for differing in (500, 501):  # up to here patterns are drawn, so that p is a number of them
        column = np.repeat([1, -1], [270, differing - 270])
        [p] = signs_p([column])
        drawn = (p * (SIGNS + 1)) % 1 in (pytest.approx(0, abs=1e-6), pytest.approx(1, abs=1e-6))
        assert drawn is (differing == 500)


# --- pass@k and pass^k against drawing answers, and the variance within rows against its definition


ROWS = pairs(clean_ids({"bfcl_v3": 12}))


Answers = dict[tuple[str, str], list[bool | None]]


def verdicts(seed: int, repeats: int) -> Answers:
    random = np.random.default_rng(seed)
    return {row: (random.random(repeats) < random.random()).tolist() for row in ROWS}


def asked_often(folder: Path, made: Answers, repeats: int) -> Repeated | None:
    """What repeats say of a run whose answers come in their order."""
    turn = {row: iter(answers) for row, answers in made.items()}
    return repeated(counted(write_run(folder, lambda c, t: next(turn[c, t]), ROWS, repeats=repeats)))


def test_one_of_k_and_all_of_k_are_what_every_choice_of_k_answers_gives(tmp_path: Path) -> None:
    made = verdicts(1, 4)
    found = asked_often(tmp_path / "a", made, 4)
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
    found = asked_often(tmp_path / "a", made, 3)
    assert found is not None
    line = found.lines["perturbed"]
    assert line.within == 0 and line.within_share == 0
    assert len({one.value for one in (*line.at.values(), *line.all.values())}) == 1


def test_rows_without_every_verdict_are_left_out_and_counted(tmp_path: Path) -> None:
    made: Answers = {row: [True, False] for row in ROWS}
    made[ROWS[0]] = [True, None]
    assert ROWS[0][1] == "clean"
    found = asked_often(tmp_path / "a", made, 2)
    assert found is not None
    assert (found.lines["clean"].rows, found.lines["clean"].left_out) == (11, 1)
    assert found.lines["clean"].at[2].value == 1.0 and found.lines["clean"].all[2].value == 0.0


def test_rows_that_no_source_has_are_not_left_out(tmp_path: Path) -> None:
    """ToolEyes has no rows of the same-name and reward types."""
    rows = pairs(clean_ids({"bfcl_v3": 2, "tooleyes": 3}))
    found = repeated(counted(write_run(tmp_path / "a", lambda c, t: True, rows, repeats=2)))
    assert found is not None
    assert {line.left_out for line in found.lines.values()} == {0}
    assert found.lines["perturbed"].rows == sum(code != "clean" for _, code in rows)


def test_a_run_asked_once_says_nothing_of_repeats(tmp_path: Path) -> None:
    assert asked_often(tmp_path / "a", verdicts(1, 1), 1) is None
    nothing: Answers = {row: [None, None] for row in ROWS}
    assert asked_often(tmp_path / "b", nothing, 2) is None


def test_many_repeats_show_the_first_and_the_last(tmp_path: Path) -> None:
    found = asked_often(tmp_path / "a", verdicts(2, 25), 25)
    assert found is not None
    assert list(found.lines["clean"].at) == [*range(1, MOST + 1), 25]


# --- Rows asked again: the interval of the share of other verdicts, and the paired difference


def _tail(k: int, n: int, p: float) -> float:
    """P(X ≥ k) of a binomial."""
    return math.fsum(math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(k, n + 1))


@given(st.integers(1, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_an_exact_interval_ends_where_either_tail_is_a_fortieth(counts: tuple[int, int]) -> None:
    k, n = counts
    low, high = intervals.clopper_pearson(k, n)
    assert 0 <= low <= k / n <= high <= 1
    if k:
        assert _tail(k, n, low) == pytest.approx(0.025, rel=1e-6)
    if k < n:
        assert 1 - _tail(k + 1, n, high) == pytest.approx(0.025, rel=1e-6)


def _rows(pairs: list[tuple[int, bool]], types: int = 4) -> list[tuple[str, int, bool]]:
    return [(f"s{i // types}", *pair) for i, pair in enumerate(pairs)]


@pytest.mark.parametrize(
    ("pairs", "repeats", "accuracies", "most"),
    [
        pytest.param([(1, True), (0, False)] * 60, 1, (1 / 2, 1 / 2), 1.0, id="the same answers"),
        pytest.param([(1, False)] * 120, 1, (1.0, 0.0), 0.001, id="the opposite ones"),
        pytest.param(
            [(1, True)] * 80 + [(1, False)] * 6 + [(0, True)] * 6 + [(0, False)] * 28,
            1,
            (86 / 120, 86 / 120),
            1.0,
            id="noise",
        ),
        pytest.param(
            [(1, True)] * 40 + [(1, False)] * 46 + [(0, True)] * 6 + [(0, False)] * 28,
            1,
            (86 / 120, 46 / 120),
            0.05,
            id="an endpoint that knows less",
        ),
        pytest.param([(0, True), (3, False)], 3, (1 / 2, 1 / 2), 1.0, id="shares of several answers"),
    ],
)
def test_what_is_asked_again_fits_unless_it_knows_less(
    pairs: list[tuple[int, bool]], repeats: int, accuracies: tuple[float, float], most: float
) -> None:
    before, again, change = reasked(_rows(pairs), repeats)
    assert (before, again) == accuracies and change.n == len(pairs)
    assert change.value == pytest.approx(again - before)
    assert change.p is not None and (change.p == 1.0 if most == 1 else change.p < most)
    assert change.low <= 0 <= change.high if before == again else change.high < 0


@given(st.lists(st.tuples(st.integers(0, 1), st.booleans()), min_size=1, max_size=40))
def test_the_order_of_rows_does_not_matter(pairs: list[tuple[int, bool]]) -> None:
    rows = _rows(pairs)
    assert reasked(rows, 1) == reasked(rows[::-1], 1)


# --- losses by source ---------------------------------------------------------------------------------


SIZES = {"bfcl_v3": 12, "toolalpaca": 9}


def of_sample(run: runs.Run) -> dict[str, str]:
    return dict(zip(run.rows["clean_id"].tolist(), run.rows["source"].tolist(), strict=True))


def made(
    folder: Path, verdict: Verdict, sizes: dict[str, int] = SIZES, **fields: object
) -> tuple[runs.Run, Outcomes]:
    run = runs.read_run(write_run(folder, verdict, pairs(clean_ids(sizes)), **fields))  # type: ignore[arg-type]
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
    run, _ = made(tmp_path / "a", lambda c, t: True)
    named = [*zip(run.rows["clean_id"], run.rows["type_code"], strict=True), ("rotbench__x_1", "clean")]
    [outcomes] = runs.align([run], expected=named)
    assert set(stages.by_source(outcomes, of_sample(run))) == set(SIZES)


# --- the sentence ---------------------------------------------------------------------------------------


def says(folder: Path, verdict: Verdict, sizes: dict[str, int] = SIZES, **fields: object) -> Answer:
    return answer(*made(folder, verdict, sizes, **fields))


MANY = {"bfcl_v3": 60}


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
    quiet = says(tmp_path / "a", lambda c, t: not (t == "CD" and c.endswith("7")), MANY)
    assert quiet.worst == () and quiet.lines["reward"].word == "holds"
    found = says(tmp_path / "b", lambda c, t: not (t == "CD" and c[-1] in "1357"), MANY)
    assert found.worst == ("CD",) and found.lines["reward"].word == "holds"
    assert "Loses 40 points under CD. Keeps at least" in found.sentence


def test_at_a_low_clean_accuracy_a_loss_is_a_share_of_the_right_answers(tmp_path: Path) -> None:
    found = says(tmp_path / "a", lambda c, t: c[-1] in "12" and taxonomy.component_of(t) != "reward", MANY)
    assert found.sentence.startswith("Loses 100 % of its right answers when")


def test_what_could_be_chance_is_not_a_loss(tmp_path: Path) -> None:
    found = says(tmp_path / "a", lambda c, t: not (t == "CD" and c.endswith("_1")))
    assert found.worst == () and "Loses" not in found.sentence


def test_runs_without_pairs_cannot_tell(tmp_path: Path) -> None:
    wrong = says(tmp_path / "wrong", lambda c, t: False)
    assert wrong.sentence.startswith("Cannot tell: no clean row was correct")
    for name in ("CD", "clean"):
        only = [(c, t) for c, t in pairs(clean_ids(SIZES)) if t == name]
        run = runs.read_run(write_run(tmp_path / name, lambda c, t: True, only))
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
    run = runs.read_run(write_run(tmp_path / "any", lambda c, t: True, [("a", taxonomy.CLEAN)]))
    said = [answer(run, one) for one in nulls(60, 40, right)]
    assert sum("Loses" in one.sentence for one in said) <= 7  # components and types, 3 each at the level
    assert sum(bool(one.worst) for one in said) <= 5


# --- Ranks that the data allow


COUNTS = st.lists(st.lists(st.integers(0, 5), min_size=12, max_size=12), min_size=2, max_size=6)


@given(st.lists(st.floats(0, 1), max_size=20))
def test_holm_steps_down_and_keeps_the_order(p_values: list[float]) -> None:
    adjusted = holm_of(np.array(p_values))
    found = holm({str(i): p for i, p in enumerate(p_values)})
    assert [*found.items()] == [*zip(map(str, range(len(p_values))), adjusted.tolist(), strict=True)]
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
    among = [(one.first, one.last + 50 - len(found)) for one in significance.compatible_ranks(pairs)]
    assert significance.compatible_ranks(pairs, 50) == among


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
