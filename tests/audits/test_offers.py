"""Offers: what a type says of them is what its rows are held to."""

import pytest

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
