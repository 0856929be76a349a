"""The exact distributions against enumeration, convolution, simulation and the paper's printed figures."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, strategies as st

from robustbench_tc.eval.stats import intervals
from robustbench_tc.eval.stats.lattice import (
    Lattice,
    binomial,
    difference_quantiles,
    sign_flips,
    sum_of_draws,
)

QS = (0.001, 0.025, 0.3, 0.5, 0.975)

values = st.lists(st.integers(-4, 6), min_size=2, max_size=5)


def enumerated(column: list[int], q: float) -> float:
    """The q-quantile over the mean of every resample of `column`, by listing them all."""
    found = sorted(sum(drawn) / len(column) for drawn in itertools.product(column, repeat=len(column)))
    return found[math.ceil(q * len(found) - 1e-9) - 1]


@given(values)
def test_a_resampled_sum_is_what_enumeration_gives(column: list[int]) -> None:
    found = sum_of_draws(np.array(column), len(column), len(column))
    assert found.p.sum() == pytest.approx(1.0)
    for q in QS:
        assert found.quantile(q) == pytest.approx(enumerated(column, q))


def assert_tails(found: Lattice, of: list[float]) -> None:
    share = [sum(v <= 0 for v in of) / len(of), sum(v >= 0 for v in of) / len(of)]
    assert found.tails() == pytest.approx(share, abs=1e-9)
    assert max(found.tails()) <= 1.0


@given(values)
def test_the_tails_of_a_resampled_sum_are_what_enumeration_gives(column: list[int]) -> None:
    resamples = itertools.product(column, repeat=len(column))
    assert_tails(sum_of_draws(np.array(column), len(column), len(column)), [sum(one) for one in resamples])


@given(values)
def test_the_papers_p_is_twice_the_smaller_tail(column: list[int]) -> None:
    resamples = [sum(one) for one in itertools.product(column, repeat=len(column))]
    smaller = min(sum(v <= 0 for v in resamples), sum(v >= 0 for v in resamples)) / len(resamples)
    found = intervals.resampled_mean(np.array(column), 1)
    assert found.p == pytest.approx(min(1.0, 2 * smaller), abs=1e-9)
    assert intervals.accuracy(3, 5).p is None, "an accuracy is tested against nothing"


def test_rounding_lifts_no_tail_above_one() -> None:
    sure = binomial(5, 1)
    assert sure.p.sum() > 1.0, "no example of rounding"
    below, above = sure.tails()
    assert below == pytest.approx(0.8**5) and above == 1.0


@given(st.integers(1, 40), st.integers(1, 40), st.data())
def test_independent_differences_are_the_convolution(na: int, nb: int, data: st.DataObject) -> None:
    a = binomial(na, data.draw(st.integers(0, na)))
    b = binomial(nb, data.draw(st.integers(0, nb)))
    written_out: Counter[int] = Counter()
    for i, j in itertools.product(range(na + 1), range(nb + 1)):
        written_out[i * nb - j * na] += a.p[i] * b.p[j]
    order = sorted(written_out)
    total = np.cumsum([written_out[key] for key in order])
    expected = [order[min(int(np.searchsorted(total, q - 1e-9)), len(order) - 1)] / (na * nb) for q in QS]
    assert difference_quantiles(a, b, QS) == pytest.approx(expected)


def test_the_difference_to_something_below_zero_lies_above() -> None:
    one, below = Lattice(0, np.array([0.5, 0.5]), 1), Lattice(-5, np.array([1.0]), 1)
    assert difference_quantiles(one, below, (0.25, 0.75)) == (5.0, 6.0)


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=8))
def test_sign_flips_are_what_enumeration_gives(column: list[int]) -> None:
    null = sign_flips(np.array(column))
    flips = itertools.product((1, -1), repeat=len(column))
    sums = Counter(sum(s * v for s, v in zip(signs, column, strict=True)) for signs in flips)
    found = {null.start + i: p for i, p in enumerate(null.p) if p > 0}
    assert found == pytest.approx({value: count / 2 ** len(column) for value, count in sums.items()})


def band(draws: np.ndarray, q: float) -> tuple[float, float]:
    """The order statistics that hold the true quantile with 99.9 % confidence, whatever the distribution."""
    size = len(draws)
    reach = 3.2905 * math.sqrt(size * q * (1 - q))
    ranks = [max(0, math.floor(size * q - reach) - 1), min(size - 1, math.ceil(size * q + reach))]
    low, high = np.partition(draws, ranks)[ranks]
    return float(low), float(high)


def assert_within_the_band(exact: Lattice, draws: np.ndarray) -> None:
    for q in intervals.QUANTILES:
        low, high = band(draws, q)
        assert low - 1e-12 <= exact.quantile(q) <= high + 1e-12


def test_exact_quantiles_lie_inside_the_band_of_a_million_draws() -> None:
    generator = np.random.default_rng(20261120)
    for _ in range(12):
        n = int(generator.integers(5, 1200))
        correct = int(generator.integers(0, n + 1))
        assert_within_the_band(binomial(n, correct), generator.binomial(n, correct / n, 1_000_000) / n)
    for _ in range(6):  # paired tables: (only a, only b, equal)
        n = int(generator.integers(5, 400))
        table = generator.multinomial(n, generator.dirichlet([1, 1, 2]))
        draws = generator.multinomial(n, table / n, 1_000_000)
        column = np.repeat([1, -1, 0], table)
        assert_within_the_band(sum_of_draws(column, n, n), (draws[:, 0] - draws[:, 1]) / n)


def test_rows_of_several_repeats_are_resampled_as_their_sums() -> None:
    """Two repeats that agree say as much as one."""
    once = intervals.resampled_mean(np.repeat([1, -1, 0], [12, 31, 101]), 1)
    twice = intervals.resampled_mean(np.repeat([2, -2, 0], [12, 31, 101]), 2)
    assert once == intervals.paired_difference(12, 31, 144)
    assert (twice.value, twice.low, twice.high) == (once.value, once.low, once.high)
    assert twice.p == pytest.approx(once.p)


def test_a_simulation_agrees_with_the_exact_interval_within_its_stated_error() -> None:
    exact = intervals.accuracy(80, 120)
    draws = np.random.default_rng(3).binomial(120, 80 / 120, 50_000) / 120
    simulated = intervals.simulated(draws, exact.value, exact.n)
    assert (exact.method, simulated.method) == ("exact", "simulated")
    assert 0 <= simulated.error < 0.01
    assert abs(simulated.low - exact.low) <= simulated.error
    assert abs(simulated.high - exact.high) <= simulated.error


def test_a_simulations_error_is_that_of_order_statistics_at_99_percent() -> None:
    """Which of the sorted draws is the quantile is binomial: 2.576 of its standard deviations either way."""
    for size in (2_000, 50_000):
        found = intervals.simulated(np.arange(size) / size, 0.5, size)
        reach = 2.576 * math.sqrt(size * 0.025 * 0.975)
        assert found.error * size == pytest.approx(reach, abs=1.0)
        assert (found.low * size, found.high * size) == (size * 0.025 - 1, size * 0.975 - 1)


def test_a_simulations_error_looks_to_both_sides_of_a_quantile() -> None:
    """Of 1,000 draws the 13th to the 38th may be the lower quantile: here the first of them is far below."""
    draws = np.concatenate([np.full(20, -1000.0), np.zeros(980)])
    found = intervals.simulated(draws, 0.0, 1000)
    assert (found.low, found.high, found.error) == (0.0, 0.0, 1000.0)
    assert intervals.simulated(-draws, 0.0, 1000).error == 1000.0


def test_no_interval_of_a_sure_thing_has_a_width_in_the_papers_convention() -> None:
    for correct in (0, 50):
        found = intervals.accuracy(correct, 50)
        assert (found.low, found.high) == (correct / 50, correct / 50)
