"""The tests against the textbook, enumeration and each other."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from robustbench_tc.eval.stats.significance import (
    SIGNS,
    fisher_p,
    holm,
    log_linear,
    mcnemar_p,
    paired_p,
    signs_p,
    stars,
)


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


def test_holm_steps_down_and_keeps_the_order() -> None:
    found = holm({"a": 0.01, "b": 0.04, "c": 0.03, "d": 0.005})
    assert list(found) == ["a", "b", "c", "d"]
    assert found == pytest.approx({"a": 0.03, "b": 0.06, "c": 0.06, "d": 0.02})
    assert holm({"x": 0.7, "y": 0.9}) == {"x": 1.0, "y": 1.0}
    assert holm({}) == {}


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
