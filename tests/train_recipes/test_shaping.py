"""ToolRL's reward with the hidden cost of the chosen tools."""

import json

import pytest

from robustbench_tc.train_recipes.toolrl_dr import reward, shaping

OFFERS = [{"find_ferry": 0.005, "find_ferry_Budget": 0.025}]


def answer(*names: str) -> str:
    lines = "\n".join(json.dumps({"name": name, "parameters": {"q": 1}}) for name in names)
    return f"<think> x </think>\n<tool_call>\n{lines}\n</tool_call>"


GOLD = answer("find_ferry")


def shaped(text: str, offers: object = OFFERS, weight: float = 0.25) -> float:
    return shaping.compute_score("rlla", text, GOLD, {"offers": offers}, weight=weight)["score"]


def test_the_better_tool_earns_the_bonus_and_the_distractor_its_overprice() -> None:
    assert shaped(GOLD) == 4.25
    plain = reward.compute_score("rlla", answer("find_ferry_Budget"), GOLD)["score"]
    assert shaped(answer("find_ferry_Budget")) == pytest.approx(plain - 0.25 * 0.8)


def test_the_mean_over_offered_calls_counts() -> None:
    both = answer("find_ferry", "find_ferry_Budget", "unrelated")
    plain = reward.compute_score("rlla", both, GOLD)["score"]
    assert shaped(both) == pytest.approx(plain + 0.25 * (1 - 0.8) / 2)


@pytest.mark.parametrize("text", [GOLD, "", "<tool_call>\n[]\n</tool_call>", answer("unrelated")])
def test_without_an_offer_nothing_changes(text: str) -> None:
    assert shaped(text, []) == shaped(text, None) == reward.compute_score("rlla", text, GOLD)["score"]


@pytest.mark.parametrize("block", ["[1]", '"x"', "null", '{"name": ["find_ferry"]}', '{"name": null}', "no"])
def test_no_answer_makes_it_raise(block: str) -> None:
    text = f"<think> x </think>\n<tool_call>\n{block}\n</tool_call>"
    parts = shaping.compute_score("rlla", text, GOLD, {"offers": OFFERS})
    assert parts["shaping_score"] == 0.0 and parts["score"] == sum(
        parts[name] for name in ("format_score", "correctness_score", "length_score", "shaping_score")
    )
