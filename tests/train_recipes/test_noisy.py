"""Errors on part of a group: the settings, the draws, the rule, the state."""

import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from robustbench_tc.train_recipes.noisy import Noise, Schedule, Seen, met, next_rate, noise, seen

from ..refusals import refuses
from . import noisy_table

share = st.floats(0, 1)
hostile_noise = st.floats(allow_nan=True, allow_infinity=True)
SEEN = st.builds(Seen, hostile_noise, hostile_noise)


@st.composite
def settings(draw: st.DrawFn) -> Noise:
    least, rate, most = sorted(draw(st.tuples(share, share, share)))
    return Noise(rate, True, least, most, draw(st.floats(0.01, 1)), draw(share))


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


@given(share, st.none() | SEEN, st.none() | SEEN, settings())
def test_the_rate_stays_within_its_bounds_and_moves_by_one_step(
    rate: float, first: Seen | None, last: Seen | None, rule: Noise
) -> None:
    rate = min(max(rate, rule.least), rule.most)
    found = next_rate(rate, first, last, rule)
    assert rule.least <= found <= rule.most and abs(found - rate) <= rule.step + 1e-12


@given(share, share, st.floats(-1, 1), st.floats(-1, 1), settings())
def test_a_smaller_gap_never_lowers_the_rate(
    clean: float, first: float, one: float, two: float, rule: Noise
) -> None:
    low, high = sorted((one, two))
    rates = [next_rate(rule.rate, Seen(first, low), Seen(clean, gap), rule) for gap in (low, high)]
    assert rates[0] <= rates[1]
    # Nor do clean rows that are answered better.
    worse, better = sorted((clean, first))
    rates = [next_rate(rule.rate, Seen(first, low), Seen(value, one), rule) for value in (worse, better)]
    assert rates[0] <= rates[1]


def test_the_rule_as_it_is_written() -> None:
    rule = Noise(0.5, True)
    first = Seen(0.6, -0.4)
    assert next_rate(0.5, first, Seen(0.6, -0.05), rule) == 0.75
    assert next_rate(0.5, first, Seen(0.6, -0.06), rule) == 0.5
    assert next_rate(0.5, first, Seen(0.5, 0.0), rule) == 0.25  # the clean rows got worse: that goes first
    assert (
        next_rate(1.0, first, Seen(0.9, 0.0), rule) == 1.0
        and next_rate(0.25, first, Seen(0, 0), rule) == 0.25
    )
    assert next_rate(0.5, first, None, rule) == next_rate(0.5, first, Seen(math.nan, 0.0), rule) == 0.5


def test_a_validation_counts_once_and_at_the_beginning_of_an_epoch() -> None:
    plan = Schedule(Noise(0.25, True))
    plan.validated(0, Seen(0.5, 0.0))
    assert plan.begin(0) == 0.25
    plan.validated(5, Seen(0.5, -0.5))
    plan.validated(10, Seen(0.5, 0.0))
    plan.validated(10, Seen(0.0, -1.0))  # a resumed run sees its step again
    assert plan.begin(0) == 0.25 and plan.begin(1) == plan.begin(1) == 0.5
    assert plan.begin(2) == 0.5  # nothing was validated since
    plan.validated(20, Seen(0.7, -0.01))
    assert plan.begin(3) == 0.75


STEPS = st.lists(st.none() | st.tuples(st.floats(0, 1), st.floats(-1, 1)), max_size=12)


@given(STEPS, st.integers(0, 12), settings())
def test_a_run_that_is_put_back_goes_on_as_the_other_would_have(
    given: list[tuple[float, float] | None], at: int, rule: Noise
) -> None:
    def play(plan: Schedule, begin: int, end: int) -> list[Any]:
        found = []
        for step, values in list(enumerate(given))[begin:end]:
            rate = plan.begin(step // 3)
            found.append((rate, met(rate, 4, 1, step, "a")))
            if values is not None:
                plan.validated(step, Seen(*values))
        return found

    whole, first, second = Schedule(rule), Schedule(rule), Schedule(rule)
    begun = play(first, 0, at)
    second.restore(json.loads(json.dumps(first.state)))
    assert begun + play(second, at, 99) == play(whole, 0, 99) and second.state == whole.state


def test_a_fixed_rate_is_that_of_the_config_and_new_bounds_hold() -> None:
    state = Schedule(Noise(1.0, True)).state
    fixed = Schedule(Noise(0.5))
    fixed.restore(state)
    assert fixed.rate == 0.5
    bounded = Schedule(Noise(0.25, True, most=0.75))
    bounded.restore(state)
    assert bounded.rate == 0.75


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (0.5, "set its keys"),
        ({"rat": 0.5}, "unknown field `rat`"),
        ({"rate": 1.5}, "<= 1.0"),
        ({"rate": True}, "`float`, got `bool`"),
        ({"rate": "half"}, "got `str`"),
        ({"rate": math.nan}, ">= 0.0"),
        ({"slack": None}, "got `null`"),
        ({"adapt": "yes"}, "Expected `bool`"),
        ({"adapt": True, "rate": 0.1}, "not between least 0.25 and most 1.0"),
        ({"adapt": True, "least": 0.9, "most": 0.3}, "not between"),
        ({"adapt": True, "step": 0}, "never change"),
    ],
)
def test_wrong_settings_are_one_line(given: Any, said: str) -> None:
    refuses(said, noise, given)


@pytest.mark.parametrize(
    "state",
    [
        {},
        {"rate": "x"},
        [],
        {**Schedule(Noise()).state, "rate": math.nan},
        {**Schedule(Noise()).state, "first": [1.0]},
    ],
)
def test_a_broken_state_is_one_line(state: Any) -> None:
    refuses("checkpoint", Schedule(Noise()).restore, state)


def test_it_is_off_unless_asked_for() -> None:
    assert not noise(None).on and not noise({}).on and not noise({"rate": 1}).on
    assert noise({"rate": 0.5}).on and noise({"adapt": True}).on


def test_the_rule_reads_what_validation_says() -> None:
    assert seen({"val-core/clean/accuracy": 0.5, "val-core/retry/delta": -0.25}) == Seen(0.5, -0.25)
    assert seen({"val-core/clean/accuracy": 0.5}) is None


def test_the_advantages_of_a_group_of_one_are_0() -> None:
    found = noisy_table.advantages([4.0, -3.0, 2.0], ["a", "a", "b"])
    assert found == pytest.approx([0.7071, -0.7071, 0.0], abs=1e-4)


def test_one_mean_pays_for_the_draw_and_the_split_does_not() -> None:
    mixed, observed, drawn = (noisy_table.simulated(way, 0.5, 4) for way in noisy_table.NORMALISED)
    # The same right call: above the mean where no error was drawn, below it where one was.
    assert mixed.spared > 0 > mixed.drawn and drawn.spared == pytest.approx(drawn.drawn, abs=0.02)
    assert mixed.alike > 0.5 and drawn.alike == 0.0
    # What one mean has ahead is from prompts in which nobody who met the error did better than another.
    assert drawn.signal < observed.signal < mixed.signal
    assert drawn.compared == pytest.approx(mixed.compared, abs=0.05)
    # By the error that was met, a call and no call are never compared at rate 1: calling is not learnt.
    assert noisy_table.simulated("by error met", 1.0, 4, 500).silent == 0.0
    everywhere = [noisy_table.simulated(way, 1.0, 4, 500) for way in ("one mean", "by error drawn")]
    assert everywhere[0].silent == everywhere[1].silent < 0 < everywhere[0].drawn == everywhere[1].drawn


def test_the_page_has_the_table() -> None:
    page = (Path(__file__).parents[2] / "docs" / "training.md").read_text()
    assert noisy_table.table() in page
