"""Ranks that the data allow, and the efficient frontier."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robustbench_tc.eval.stats import frontier, ranks
from robustbench_tc.eval.stats.significance import (
    holm,
    holm_below,
    holm_of,
    paired_p,
    paired_p_at_most,
)

COUNTS = st.lists(st.lists(st.integers(0, 5), min_size=12, max_size=12), min_size=2, max_size=6)


@given(COUNTS)
def test_the_bound_is_never_below_the_exact_p(found: list[list[int]]) -> None:
    scores = np.array(found)
    bound = paired_p_at_most(scores)
    for i, j in itertools.product(range(len(scores)), repeat=2):
        assert bound[i, j] >= paired_p(scores[i] - scores[j]) - 1e-12
        assert bound[i, j] == bound[j, i]


def test_the_bound_is_of_use() -> None:
    """A hundred samples, of which one model has forty more right: surely apart without any exact test."""
    scores = np.array([[1] * 90 + [0] * 10, [1] * 50 + [0] * 50])
    assert paired_p(scores[0] - scores[1]) < paired_p_at_most(scores)[0, 1] < 1e-8


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
    for level in (ranks.LEVEL, 0.5, running):
        assert holm_below(np.array(p_values), level).tolist() == (adjusted < level).tolist()


@settings(max_examples=25)
@given(COUNTS)
def test_a_model_s_own_rank_is_among_its_places(found: list[list[int]]) -> None:
    found.sort(key=sum, reverse=True)
    pairs = ranks.of_samples([np.array(one) for one in found], [5] * len(found))
    assert np.array_equal(pairs.p, pairs.p.T) and not (pairs.better & pairs.better.T).any()
    adjusted = pairs.adjusted()
    assert (adjusted >= pairs.p).all() and np.array_equal(adjusted, adjusted.T)
    assert np.array_equal(pairs.better | pairs.better.T, adjusted < ranks.LEVEL)
    for rank, places in enumerate(ranks.places(pairs), 1):
        assert 1 <= places.first <= rank <= places.last <= len(found)
    for few, more in zip(ranks.places(pairs), ranks.places(pairs, 50), strict=True):
        assert more == (few.first, few.last + 50 - len(found))


def test_what_is_far_apart_has_one_place_and_what_is_equal_shares_them() -> None:
    strong, weak = np.ones(60, np.int64), np.zeros(60, np.int64)
    pairs = ranks.of_samples([strong, strong, weak], [1, 1, 1])
    assert ranks.places(pairs) == [(1, 2), (1, 2), (3, 3)]
    assert pairs.better.tolist() == [[False, False, True], [False, False, True], [False] * 3]
    # Twice as many repeats with the same shares is the same comparison.
    assert ranks.places(ranks.of_samples([2 * strong, strong, weak], [2, 1, 1])) == ranks.places(pairs)
    counted = ranks.of_counts([(60, 60), (59, 60), (3, 60)])
    assert ranks.places(counted) == [(1, 2), (1, 2), (3, 3)]


def test_more_models_than_are_tested_exactly_are_told_apart_by_the_bound() -> None:
    generator = np.random.default_rng(1)
    shares = np.linspace(0.95, 0.05, ranks.EXACT + 5)
    right = [generator.binomial(10, share, size=80).astype(np.int64) for share in shares]
    right.sort(key=lambda one: -int(one.sum()))
    pairs = ranks.of_samples(right, [10] * len(right))
    exact = holm({f"{i} {j}": paired_p(right[i] - right[j]) for i in range(len(right)) for j in range(i)})
    told = {f"{i} {j}" for i in range(len(right)) for j in range(i) if pairs.better[j, i]}
    sure = {pair for pair, p in exact.items() if p < ranks.LEVEL}
    assert told <= sure and len(told) > 0.9 * len(sure)


def test_who_was_asked_twice_as_often_is_not_twice_as_good() -> None:
    found = np.array([[5, 4, 3, 1, 0, 2, 5, 5], [1, 4, 2, 1, 0, 0, 5, 3]])
    once = ranks.of_samples(list(found), [5, 5])
    more = ranks.of_samples([found[0], 2 * found[1]], [5, 10])
    assert np.array_equal(once.p, more.p) and once.p[0, 1] < 1


POINTS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=12)


@given(POINTS, st.sampled_from([1, -1]), st.sampled_from([1, -1]))
def test_the_frontier_is_what_nothing_dominates(
    points: list[tuple[int, int]], x: frontier.Sign, y: frontier.Sign
) -> None:
    def dominated(one: tuple[int, int]) -> bool:
        return any(
            x * other[0] >= x * one[0] and y * other[1] >= y * one[1] and other != one for other in points
        )

    found = frontier.efficient(points, x, y)
    assert sorted(found) == [i for i, one in enumerate(points) if not dominated(one)]


def test_the_outline_goes_in_steps() -> None:
    assert frontier.outline([(3, 1), (2, 2)]) == [(3, 1), (2, 1), (2, 2)]
    assert frontier.outline([]) == []
    assert frontier.outline([(0.5, 0.5)]) == [(0.5, 0.5)]


@pytest.mark.parametrize("signs", [(1, 1), (-1, 1), (1, -1)])
def test_equal_points_all_stand_on_the_frontier(signs: tuple[frontier.Sign, frontier.Sign]) -> None:
    assert frontier.efficient([(1, 1), (1, 1)], *signs) == [0, 1]
