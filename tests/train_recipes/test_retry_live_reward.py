"""The reward of a trajectory in a world: the intended order, and that nothing cheaper beats it."""

import itertools
import json
from typing import Any

import pytest

from robustbench_tc.train_recipes.retry.reward import reply
from robustbench_tc.train_recipes.retry_live.reward import MAXIMUM, MINIMUM, compute_score

DONE = "<think> All is done. </think>\n<response> I have booked it. </response>"
ADMITS = "<think> It failed. </think>\n<response> I could not confirm that the refund was made. </response>"


def score(last: str, **outcome: Any) -> dict[str, float]:
    found: dict[str, Any] = {
        "reached": False, "share": 0.0, "met": 0, "unsafe_repeats": 0, "calls": 2, "gold_calls": 2,
        "label": "repair", "finished": True,
    }  # fmt: skip
    info = {"attempts": ["<tool_call>\n{}\n</tool_call>", last], "world": json.dumps(found | outcome)}
    return compute_score("live", last, "", info)


def test_what_is_right_earns_the_maximum() -> None:
    assert score(DONE, reached=True)["score"] == MAXIMUM
    assert score(DONE, reached=True, label=None, met=-1)["score"] == MAXIMUM
    assert score(ADMITS, label="report")["score"] == MAXIMUM


def test_the_intended_order_holds_strictly() -> None:
    ordered = [
        score(DONE, reached=True),
        score(DONE, reached=True, label="report"),
        score(ADMITS, share=0.9),
        score(ADMITS, share=0.2),
        score(DONE, share=0.9),
    ]
    values = [one["score"] for one in ordered]
    assert values == sorted(values, reverse=True) and len(set(values)) == len(values)


@pytest.mark.parametrize("reached", [True, False])
@pytest.mark.parametrize("last", [DONE, ADMITS])
def test_paying_twice_and_calling_at_random_never_pay(last: str, reached: bool) -> None:
    for label, share in itertools.product(("repair", "report", None), (0.0, 0.5, 1.0)):
        given: dict[str, Any] = {"reached": reached, "label": label, "share": share}
        plain = score(last, **given)["score"]
        for worse in ({"unsafe_repeats": 1}, {"calls": 5}, {"unsafe_repeats": 2, "calls": 40}):
            paid = score(last, **(given | worse))["score"]
            assert paid < plain or plain == paid == MINIMUM


def test_admitting_beats_silence_where_the_state_is_wrong() -> None:
    for label, share in itertools.product(("repair", "report", None), (0.1, 0.5, 1.0)):
        given: dict[str, Any] = {"label": label, "share": share}
        assert score(ADMITS, **given)["score"] > score(DONE, **given)["score"] == MINIMUM


def test_a_report_counts_only_once_the_fault_was_met() -> None:
    assert score(ADMITS, label="report", met=-1)["score"] == MINIMUM
    assert score(ADMITS, label="report", met=3)["score"] == MAXIMUM


def test_without_a_trajectory_nothing_was_reached_and_the_keys_are_the_same() -> None:
    empty = compute_score("live", DONE, "")
    assert empty["score"] == MINIMUM
    assert list(empty) == list(score(DONE, reached=True))
    assert compute_score("live", "", "", {"world": "{}", "attempts": []})["score"] == MINIMUM


def test_the_reply_is_what_the_user_reads() -> None:
    assert reply(DONE) == "I have booked it."
    assert reply("<think> I could not do it </think> All set.") == "All set."
    assert reply("<response> cut off") == "cut off"
