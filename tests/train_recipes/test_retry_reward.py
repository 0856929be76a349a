"""The reward of a rollout whose first call met an error."""

import json
from typing import Any

import pytest

from robustbench_tc.train_recipes.retry.reward import compute_score

THOUGHT = "<think> Try. </think>"


def call(name: str = "find_ferry", **parameters: Any) -> str:
    line = json.dumps({"name": name, "parameters": parameters})
    return f"{THOUGHT}\n<tool_call>\n{line}\n</tool_call>"


GOLD = call(harbour="Turku")
WRONG = call(harbour="Oslo")
OTHER = call("find_bus", harbour="Oslo")
REPLY = f"{THOUGHT}\n<response> It does not work. </response>"


def score(
    attempts: list[str], error_attempt: int = 0, kind: str = "transient_timeout", **options: Any
) -> Any:
    info = {
        "attempts": attempts,
        "error_attempt": error_attempt,
        "retry": {"type_code": kind, "error": "x", "position": 1},
    }
    return compute_score("rlla", "".join(attempts), GOLD, info, **options)


def test_a_right_call_after_the_error_earns_all() -> None:
    parts = score([WRONG, GOLD, REPLY])
    assert (parts["score"], parts["charged"], parts["met_error"], parts["retries"]) == (4.0, 0.0, 1.0, 1.0)


def test_the_call_after_the_error_counts_not_the_one_before() -> None:
    assert score([GOLD, OTHER])["score"] < score([OTHER, GOLD])["score"] == 4.0


def test_repeating_a_right_call_is_free_except_after_a_401() -> None:
    assert score([GOLD, GOLD, REPLY])["score"] == 4.0
    parts = score([GOLD, GOLD, REPLY], kind="transient_auth_error")
    assert (parts["score"], parts["charged"]) == (3.5, 0.5)


def test_repeating_a_wrong_call_unchanged_costs() -> None:
    changed = score([OTHER, WRONG])
    repeated = score([WRONG, WRONG])
    assert changed["charged"] == 0.0 and repeated["charged"] == 0.5
    assert repeated["score"] == changed["score"] - 0.5


@pytest.mark.parametrize("attempts", [[GOLD], [GOLD, REPLY], [GOLD, ""], [GOLD, REPLY, GOLD]])
def test_giving_up_earns_the_minimum(attempts: list[str]) -> None:
    parts = score(attempts)
    assert (parts["score"], parts["gave_up"]) == (-3.0, 1.0)


def test_more_than_two_retries_cost_once() -> None:
    assert score([GOLD, GOLD, GOLD])["charged"] == 0.0
    assert score([GOLD, GOLD, GOLD, GOLD])["charged"] == 0.5
    assert score([GOLD, GOLD, GOLD, GOLD], max_retries=3)["charged"] == 0.0


def test_charges_never_go_below_the_minimum() -> None:
    broken = "no thought <tool_call>\nnothing\n</tool_call>"
    parts = score([broken, broken, GOLD, GOLD], penalty=9.0)
    assert (parts["score"], parts["charged"]) == (-3.0, 0.0)


def test_without_an_error_the_first_attempt_counts() -> None:
    assert score([GOLD, REPLY], error_attempt=-1)["score"] == 4.0
    assert compute_score("rlla", GOLD, GOLD, {})["score"] == 4.0
    assert compute_score("rlla", GOLD, GOLD)["met_error"] == 0.0


def test_the_keys_are_the_same_for_every_rollout() -> None:
    keys = [list(score(a, e)) for a, e in (([GOLD], -1), ([GOLD], 0), ([GOLD, GOLD], 0), ([], -1))]
    assert all(k == keys[0] for k in keys)


def test_variants_reach_toolrls_reward() -> None:
    assert score([WRONG, GOLD], correct_max_1=True)["score"] == 2.0
    with pytest.raises(TypeError):
        score([WRONG, GOLD], corse=True)
