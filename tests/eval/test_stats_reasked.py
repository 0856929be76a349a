"""Rows asked again: the interval of the share of other verdicts, and the paired difference."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robustbench_tc.eval.stats.exact import clopper_pearson, share_interval
from robustbench_tc.eval.stats.reasked import Answered, reasked


def _tail(k: int, n: int, p: float) -> float:
    """P(X ≥ k) of a binomial."""
    return math.fsum(math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(k, n + 1))


@given(st.integers(1, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_an_exact_interval_ends_where_either_tail_is_a_fortieth(counts: tuple[int, int]) -> None:
    k, n = counts
    low, high = clopper_pearson(k, n)
    assert 0 <= low <= k / n <= high <= 1
    if k:
        assert _tail(k, n, low) == pytest.approx(0.025, rel=1e-6)
    if k < n:
        assert 1 - _tail(k + 1, n, high) == pytest.approx(0.025, rel=1e-6)


def test_none_in_n_bounds_the_share_at_three_in_n() -> None:
    assert share_interval(0, 300) == (0.0, 0.01)
    assert share_interval(0, 2) == (0.0, 1.0)
    assert share_interval(1, 300) == clopper_pearson(1, 300)
    assert clopper_pearson(0, 0) == (0.0, 1.0)
    # The bound that the rule stands for: 95 % of such shares show one at least.
    assert (1 - 3 / 300) ** 300 < 0.05
    with pytest.raises(ValueError, match="3 of 2"):
        clopper_pearson(3, 2)


def _rows(pairs: list[tuple[int, bool]], types: int = 4) -> list[Answered]:
    return [Answered(f"s{i // types}", f"t{i % types}", *pair) for i, pair in enumerate(pairs)]


def test_the_same_answers_fit_and_the_opposite_ones_do_not() -> None:
    found = reasked(_rows([(1, True), (0, False)] * 60), 1)
    assert (found.rows, found.mismatches, found.share_high) == (120, 0, 3 / 120)
    assert found.submitted == found.again == 0.5 and found.p == 1.0 and found.fits
    found = reasked(_rows([(1, False)] * 120), 1)
    assert (found.mismatches, found.again - found.submitted) == (120, -1.0)
    assert not found.fits and found.p < 0.001 and found.share_low > 0.9


def test_an_endpoint_that_knows_less_does_not_fit_and_noise_does() -> None:
    noise = [(1, True)] * 80 + [(1, False)] * 6 + [(0, True)] * 6 + [(0, False)] * 28
    assert reasked(_rows(noise), 1).fits
    less = [(1, True)] * 40 + [(1, False)] * 46 + [(0, True)] * 6 + [(0, False)] * 28
    found = reasked(_rows(less), 1)
    assert not found.fits and found.high < 0 and found.p < 0.05


def test_with_repeats_a_verdict_that_was_seen_once_is_no_mismatch() -> None:
    pairs = [(0, False), (1, False), (1, True), (2, True), (3, True)]
    assert reasked(_rows(pairs), 3).mismatches == 0
    found = reasked(_rows([(0, True), (3, False)]), 3)
    assert found.mismatches == 2 and found.submitted == found.again == 0.5


@given(st.lists(st.tuples(st.integers(0, 1), st.booleans()), min_size=1, max_size=40))
def test_the_order_of_rows_does_not_matter(pairs: list[tuple[int, bool]]) -> None:
    rows = _rows(pairs)
    assert reasked(rows, 1) == reasked(rows[::-1], 1)
