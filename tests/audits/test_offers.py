"""Offers: what a type says of them is what its rows are held to."""

import pytest

from robustbench_tc.audits.invariants import INVARIANTS, reward
from robustbench_tc.audits.invariants.reward import least_factor


@pytest.mark.parametrize(
    ("code", "times"),
    [
        ("factor_1_5", 1.5),
        ("factor_5", 5),
        ("factor_100", 100),
        ("CD", 4),
        ("abbreviated_3", 4),
        ("flood_3", 4),
    ],
)
def test_a_distractor_is_worse_by_the_factor_of_its_type(code: str, times: float) -> None:
    assert least_factor(code) == times


@pytest.mark.parametrize(
    ("code", "held"), [("CD", True), ("CD_swap", True), ("CD_inv", False), ("flood_3", False)]
)
def test_only_offers_between_equal_tools_are_held_to_what_makes_them_equal(code: str, held: bool) -> None:
    named = {name: check for name, check in INVARIANTS.items() if check.holds.__module__ == reward.__name__}
    assert set(named) == {
        "exactly_one_counterpart",
        "annotations_in_order",
        "counterpart_is_named_as_its_type_says",
        "other_tools_look_no_better",
        "gold_is_the_unique_best",
    }
    assert {check.of_type(code) for check in named.values()} == {held}
