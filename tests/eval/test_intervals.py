"""Intervals and the exact distributions behind them: against scipy, textbooks, enumeration and simulation."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats as scipy_stats

from robustbench_tc.eval.stats import intervals
from robustbench_tc.eval.stats.intervals import (
    PRIOR,
    Estimate,
    Z,
    apart_from,
    beta_lower,
    combined,
    difference,
    quotient,
    shares,
    t_upper,
)
from robustbench_tc.eval.stats.lattice import (
    Lattice,
    binomial,
    difference_quantiles,
    sign_flips,
    sum_of_draws,
)

from ..conftest import NIGHTLY


@pytest.mark.parametrize("q", [0.025, 0.05])
def test_beta_quantiles_are_scipys(q: float) -> None:
    random = np.random.default_rng(7)
    a = np.exp(random.uniform(math.log(0.02), math.log(20_000), 3_000))
    b = 1 + np.exp(random.uniform(math.log(0.001), math.log(20_000), 3_000))
    expected = scipy_stats.beta.ppf(q, a, b)
    there = expected > 1e-290
    assert there.sum() > 2_900
    assert beta_lower(q, a, b)[there] == pytest.approx(expected[there], rel=1e-8)


def test_t_quantiles_are_scipys() -> None:
    for df in (*range(1, 60), 147, 198, 1_193, 4_377, 100_000):
        for tail in (0.025, 0.05):
            assert t_upper(tail, df) == pytest.approx(scipy_stats.t.isf(tail, df), rel=1e-9)
    assert t_upper(0.025, 10**7) == pytest.approx(Z, rel=1e-5)


def oracle(right: np.ndarray, rows: np.ndarray) -> tuple[float, float]:
    """The hull as docs/statistics.md says it, clean_id by clean_id, with scipy's distributions."""
    used = [(s, m) for s, m in zip(right.tolist(), rows.tolist(), strict=True) if m]
    k, n = len(used), sum(m for _, m in used)
    p, largest = sum(s for s, _ in used) / n, sum(m * m for _, m in used) / n
    informative = min(sum(s > 0 for s, _ in used), sum(s < m for s, m in used))
    if informative == 0:
        effect, wilson = largest, Z * Z / (n / largest + Z * Z)
        other = (1 - wilson, 1.0) if p else (0.0, wilson)
    else:
        variance = k / (k - 1) * sum((s - p * m) ** 2 for s, m in used) / n**2
        effect = min(max(variance * n / (p * (1 - p)), 1), largest)
        reach = scipy_stats.t.isf(0.025, k - 1) * math.sqrt(variance) / (p * (1 - p))
        other = tuple(scipy_stats.logistic.cdf(math.log(p / (1 - p)) + side * reach) for side in (-1, 1))
    effect = (informative * effect + PRIOR * largest) / (informative + PRIOR)
    adjusted = 1 if k == n else (scipy_stats.t.isf(0.025, n - 1) / scipy_stats.t.isf(0.025, k - 1)) ** 2
    size = max(n / effect * adjusted, 1)
    x = p * size
    exact = (
        scipy_stats.beta.ppf(0.025, x, size - x + 1) if p > 0 else 0.0,
        scipy_stats.beta.ppf(0.975, x + 1, size - x) if p < 1 else 1.0,
    )
    return min(exact[0], other[0]), max(exact[1], other[1])


@given(st.integers(2, 40), st.integers(0, 2**32), st.floats(0, 1), st.integers(1, 22))
def test_an_accuracy_has_the_hull_of_both_intervals(k: int, seed: int, p: float, most: int) -> None:
    random = np.random.default_rng(seed)
    rows = random.integers(0, most + 1, k)
    rows[:2] = most
    right = random.binomial(rows, random.beta(0.1 + p, 1.1 - p, k))
    found = shares(right, rows)
    assert (float(found.low), float(found.high)) == pytest.approx(oracle(right, rows), abs=1e-9)
    assert float(found.value) == pytest.approx(right.sum() / rows.sum())


def test_clopper_pearsons_own_ends_for_independent_rows() -> None:
    """Of rows that are samples of their own nothing is estimated: textbook values of 15 of 20, 199 of 199."""
    found = shares(np.repeat([1, 0], [15, 5]), np.ones(20))
    # Clopper-Pearson: 0.5090, 0.9134; on the logit log 3 ± 2.0930 · 0.5298: 0.4974, 0.9009
    assert (round(float(found.low), 4), round(float(found.high), 4)) == (0.4974, 0.9134)
    sure = shares(np.ones(199), np.ones(199))
    assert float(sure.high) == 1.0
    assert float(sure.low) == pytest.approx(
        199 / (199 + Z**2)
    )  # Wilson's; Clopper-Pearson: 0.025 ** (1 / 199)
    assert float(sure.low) < 0.025 ** (1 / 199)
    none = shares(np.zeros(199), np.ones(199))
    assert (float(none.low), float(none.high)) == pytest.approx((0.0, 1 - float(sure.low)))


def test_whole_samples_that_are_all_right_or_all_wrong_count_as_rows_of_their_own() -> None:
    """The largest design effect: 22 rows of a sample say as much as one, but for the t adjustment."""
    one = shares(np.repeat([1, 0], [60, 40]), np.ones(100))
    many = shares(np.repeat([22, 0], [60, 40]), np.full(100, 22))
    assert float(many.low) == pytest.approx(float(one.low), abs=0.002)
    assert float(many.high) == pytest.approx(float(one.high), abs=0.002)
    assert float(many.low) <= float(one.low) and float(one.high) <= float(many.high)


def test_samples_without_a_row_take_no_part() -> None:
    right, rows = np.array([1, 3, 2, 0]), np.array([2, 3, 3, 1])
    alone = shares(right, rows)
    padded = shares(np.append(right, [0, 0]), np.append(rows, [0, 0]))
    assert (float(padded.low), float(padded.high)) == pytest.approx((float(alone.low), float(alone.high)))
    assert float(padded.clusters) == 4


def test_one_sample_says_as_much_as_one_row() -> None:
    found = shares(np.array([22]), np.array([22]))
    # Clopper-Pearson's of 1 of 1
    assert (float(found.low), float(found.high)) == pytest.approx((0.025, 1.0))
    half = shares(np.array([11]), np.array([22]))
    assert float(half.low) < 0.02 and float(half.high) > 0.98


def test_values_in_one_go_are_the_values_one_by_one() -> None:
    random = np.random.default_rng(3)
    rows = random.integers(0, 7, (12, 50)) + (np.arange(50) < 2)
    right = random.binomial(rows, random.random((12, 1)))
    together = shares(right, rows)
    for i in range(12):
        alone = shares(right[i], rows[i])
        assert (float(together.low[i]), float(together.high[i])) == pytest.approx(
            (float(alone.low), float(alone.high)), rel=1e-9
        )


# --- differences --------------------------------------------------------------------------------------


def wilson(right: np.ndarray) -> Estimate:
    """An accuracy of independent rows with Wilson's ends, which Newcombe's method 10 is made of."""
    n, p = len(right), right.mean()
    middle, reach = p + Z**2 / (2 * n), Z * math.sqrt(p * (1 - p) / n + Z**2 / (4 * n * n))
    low, high = ((middle + side * reach) / (1 + Z**2 / n) for side in (-1, 1))
    spread = (right - p) / n
    return Estimate(np.array(p), np.array(low), np.array(high), spread, np.array(float(n)))


def test_the_paired_difference_is_newcombes_method_10() -> None:
    """Newcombe 1998 (Statistics in Medicine 17, 2635-2650), table II: 36, 12, 2, 0 pairs, 0.0569 to
    0.3404."""
    a, b = (np.repeat(side, (36, 12, 2, 0)) for side in ([1.0, 1.0, 0.0, 0.0], [1.0, 0.0, 1.0, 0.0]))
    found = difference(wilson(a), wilson(b))
    assert (float(found.low), float(found.high)) == pytest.approx((0.0569, 0.3404), abs=6e-5)


def test_a_positive_correlation_has_newcombes_continuity_correction() -> None:
    """20, 10, 5, 15 pairs by his formula: phi = (20·15 − 10·5 − 50/2) / sqrt(30·20·25·25)."""
    a, b = (np.repeat(side, (20, 10, 5, 15)) for side in ([1.0, 1.0, 0.0, 0.0], [1.0, 0.0, 1.0, 0.0]))
    one, other = wilson(a), wilson(b)
    phi = (20 * 15 - 10 * 5 - 25) / math.sqrt(30 * 20 * 25 * 25)
    assert float(intervals.correlation(one, other)) == pytest.approx(phi)
    down, up = 0.6 - float(one.low), float(other.high) - 0.5
    low = 0.1 - math.sqrt(down**2 + up**2 - 2 * phi * down * up)
    assert float(difference(one, other).low) == pytest.approx(low)


def test_unpaired_differences_are_newcombes_method_10_of_independent_ones() -> None:
    """Newcombe 1998 (Statistics in Medicine 17, 873-890), example 56/70 and 48/80: 0.0524 to 0.3339."""
    a, b = (wilson(np.repeat([1.0, 0.0], [right, n - right])) for right, n in ((56, 70), (48, 80)))
    found = apart_from(a, b, 150)
    assert (found.value, found.low, found.high) == pytest.approx((0.2, 0.0524, 0.3339), abs=6e-5)


def test_no_difference_that_no_sample_shows_still_has_a_width() -> None:
    one = shares(np.repeat([1, 0], [60, 40]), np.ones(100))
    found = difference(one, one)
    assert float(found.value) == 0
    assert -0.05 < float(found.low) < -0.005 and 0.005 < float(found.high) < 0.05


def test_a_difference_stays_between_minus_1_and_1_and_turns_with_its_sides() -> None:
    sure, none = shares(np.ones(3), np.ones(3)), shares(np.zeros(3), np.ones(3))
    found, back = difference(sure, none), difference(none, sure)
    assert (float(found.value), float(found.high)) == (1.0, 1.0)
    assert (float(back.low), float(back.high)) == pytest.approx((-1.0, -float(found.low)))


def test_the_ends_of_a_mean_hold_the_ends_of_its_parts_where_these_move_together() -> None:
    one = shares(np.repeat([1, 0], [60, 40]), np.ones(100))
    same = combined((one, one, one), (1 / 3, 1 / 3, 1 / 3))
    assert (float(same.low), float(same.high)) == pytest.approx((float(one.low), float(one.high)))


def test_a_part_that_weighs_less_than_nothing_is_its_negative() -> None:
    one, other = (shares(np.repeat([1, 0], [n, 100 - n]), np.ones(100)) for n in (60, 85))
    negative = Estimate(-other.value, -other.high, -other.low, -other.spread, other.clusters)
    found, wanted = combined((one, other), (1.0, -0.5)), combined((one, negative), (1.0, 0.5))
    assert (float(found.low), float(found.high)) == pytest.approx((float(wanted.low), float(wanted.high)))


# --- shares of two values ------------------------------------------------------------------------------


def searched(above: Estimate, below: Estimate) -> tuple[float, float]:
    """Fieller's set by trying every R: where the MOVER interval of above − R · below holds 0."""
    shared = float(intervals.correlation(above, below))
    x, y = float(above.value), float(below.value)
    held = []
    for r in np.linspace(-30, 30, 240_001).tolist():
        low_y, high_y = sorted((r * float(below.low), r * float(below.high)))
        down = math.sqrt(
            max(
                0.0,
                (x - float(above.low)) ** 2
                + (high_y - r * y) ** 2
                - 2 * shared * math.copysign(1, r) * (x - float(above.low)) * (high_y - r * y),
            )
        )
        up = math.sqrt(
            max(
                0.0,
                (float(above.high) - x) ** 2
                + (r * y - low_y) ** 2
                - 2 * shared * math.copysign(1, r) * (float(above.high) - x) * (r * y - low_y),
            )
        )
        if x - r * y - down <= 0 <= x - r * y + up:
            held.append(r)
    return held[0], held[-1]


@pytest.mark.parametrize("seed", range(8 if NIGHTLY else 4))
def test_fiellers_set_is_what_a_search_finds(seed: int) -> None:
    random = np.random.default_rng(seed)
    ability = random.beta(2, 1, 120)
    clean = shares(random.random(120) < ability, np.ones(120))
    rows = np.full(120, 6)
    base = difference(clean, shares(random.binomial(rows, ability * 0.7), rows))
    kept = (0.72, 0.85, 1.0, 1.2)[seed % 4]
    new = difference(clean, shares(random.binomial(rows, np.minimum(ability * kept, 1)), rows))
    assert float(base.low) > 0
    found = quotient(new, base)
    assert found is not None
    low, high = searched(new, base)
    assert found[1:] == pytest.approx((low, high), abs=6e-4)
    assert found[0] == pytest.approx(float(new.value) / float(base.value))
    assert found[1] <= found[0] <= found[2]


def test_a_share_of_what_may_be_nothing_cannot_be_said() -> None:
    right = np.random.default_rng(1).random(50) < 0.7
    clean = shares(right, np.ones(50))
    assert quotient(clean, difference(clean, clean)) is None
    negative = difference(shares(np.zeros(50), np.ones(50)), clean)
    assert quotient(clean, negative) is None


# --- the exact distributions --------------------------------------------------------------------------


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
