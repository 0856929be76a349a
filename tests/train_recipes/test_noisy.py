"""Errors on part of a group: the draws."""

from collections import Counter

import pytest
from hypothesis import given, strategies as st

from robustbench_tc.train_recipes.verl_noisy import met

share = st.floats(0, 1)


@given(share, st.integers(1, 16), st.integers(0, 9), st.integers(1, 500), st.text(max_size=8))
def test_draws_depend_on_their_arguments_alone(rate: float, n: int, seed: int, step: int, name: str) -> None:
    found = met(rate, n, seed, step, name, "3")
    assert found == met(rate, n, seed, step, name, "3")
    assert list(found) == sorted(set(found)) and set(found) <= set(range(n))
    # Nobody is alone in his world, and the number is next to what was asked for.
    assert len(found) in (0, n) or 1 < len(found) < n - 1
    assert abs(len(found) - rate * n) < max(2.0, n if n < 4 else 0) + 1e-9


@pytest.mark.parametrize(("rate", "n"), [(0.5, 4), (0.3, 4), (0.9, 8), (0.05, 8), (0.5, 3)])
def test_the_share_is_the_rate_in_the_mean_and_every_rollout_has_its_turn(rate: float, n: int) -> None:
    prompts = 4_000
    counts = Counter(index for number in range(prompts) for index in met(rate, n, 1, 7, str(number)))
    assert sum(counts.values()) / (prompts * n) == pytest.approx(rate, abs=0.02)
    assert all(counts[index] / prompts == pytest.approx(rate, abs=0.04) for index in range(n))


def test_the_ends_are_all_and_none() -> None:
    for n in (1, 2, 4, 8):
        assert met(1.0, n, 0, 1, "a") == tuple(range(n)) and met(0.0, n, 0, 1, "a") == ()


def test_other_steps_and_prompts_draw_otherwise() -> None:
    by_step = {met(0.5, 8, 0, step, "a") for step in range(30)}
    by_prompt = {met(0.5, 8, 0, 1, str(name)) for name in range(30)}
    assert len(by_step) > 10 and len(by_prompt) > 10
