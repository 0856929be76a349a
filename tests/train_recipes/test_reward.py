"""The training reward against ToolRL's recorded verdicts, and its own laws."""

import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from robustbench_tc.eval.score import reward
from robustbench_tc.train_recipes import reward as rewards

THOUGHT = "<think> The forecast tool answers this. </think>"
CALLS = [
    {"name": "forecast", "parameters": {"city": "Turku", "days": 3}},
    {"name": "tides", "parameters": {"harbour": "Turku"}},
]
GOLD = f"{THOUGHT}\n<tool_call>\n" + "\n".join(json.dumps(call) for call in CALLS) + "\n</tool_call>"
REPLY = f"{THOUGHT}\n<response> It will rain. </response>"
FLAGS = (
    "with_length schedule_length correct_max_1 max1_step30_max3 schedule_reward coarse refined intermediate"
).split()


def score(text: str, gold: str = GOLD, **variant: Any) -> dict[str, float]:
    return reward.compute_score("rlla", text, gold, **variant)


def answer(calls: list[Any]) -> str:
    return f"{THOUGHT}\n<tool_call>\n" + "\n".join(json.dumps(call) for call in calls) + "\n</tool_call>"


def test_the_gold_itself_earns_the_maximum() -> None:
    assert score(GOLD)["score"] == 4.0
    assert score(REPLY, REPLY)["score"] == 1.0


def test_the_parts_add_up_and_are_always_the_same_keys() -> None:
    for text in (GOLD, "", "<tool_call>\n[]\n</tool_call>", answer(CALLS[:1])):
        parts = score(text, with_length=True)
        assert list(parts) == ["score", "format_score", "correctness_score", "length_score"]
        assert parts["score"] == sum(list(parts.values())[1:])


def test_a_half_right_answer_lies_between() -> None:
    # names 1/2, and of the first call the keys and one of two values: s = 0.5 + 2, d = 1 + 3 + 2
    half = [CALLS[0] | {"parameters": {"city": "Turku", "days": 4}}]
    assert score(answer(half))["correctness_score"] == pytest.approx(-3 + 6 * 2.5 / 6)


def test_matching_is_greedy_and_uses_each_call_once() -> None:
    gold = answer([{"name": "a", "parameters": {"x": 1}}, {"name": "a", "parameters": {"x": 2}}])
    once = answer([{"name": "a", "parameters": {"x": 1}}])
    twice = answer([{"name": "a", "parameters": {"x": 1}}] * 2)
    assert score(once, gold)["correctness_score"] == pytest.approx(-3 + 6 * (0.5 + 2) / 5)
    assert score(twice, gold)["correctness_score"] == pytest.approx(-3 + 6 * (1 + 2 + 1) / 5)


@pytest.mark.parametrize(
    "block",
    [
        "",
        "not json",
        "null",
        "3",
        '"text"',
        "[[[[",
        "{}",
        '{"name": "forecast"}',
        '{"name": ["forecast"], "parameters": {}}',
        '{"name": "forecast", "parameters": null}',
        '{"name": "forecast", "parameters": [1]}',
        '{"name": "forecast", "parameters": {"days": ' + "9" * 6000 + "}}",
        "[" * 100_000,
    ],
)
def test_a_malformed_block_earns_the_minimum(block: str) -> None:
    variants: list[dict[str, Any]] = [{}, {"refined": True}, {"intermediate": True}, {"coarse": True}]
    for variant in variants:
        parts = score(f"{THOUGHT}\n<tool_call>\n{block}\n</tool_call>", **variant)
        # with `intermediate`, parameters of a call are never looked at; with `refined`, a list is not a name
        assert parts["correctness_score"] <= -3 + 6 * 1 / 3


def test_an_undecodable_gold_earns_the_minimum_of_the_range() -> None:
    broken = f"{THOUGHT}\n<tool_call>\nnothing\n</tool_call>"
    assert score(broken, broken)["score"] == -3.0
    assert score(broken, broken, schedule_reward=True, step=0)["score"] == -4.0


def test_an_unknown_data_source_or_family_is_an_error() -> None:
    with pytest.raises(ValueError, match="gsm8k"):
        reward.compute_score("gsm8k", GOLD, GOLD)
    with pytest.raises(ValueError, match="mistral"):
        score(GOLD, family="mistral")


def test_an_unknown_variant_is_an_error() -> None:
    with pytest.raises(TypeError, match="corse"):
        score(GOLD, corse=True)


def test_the_step_is_read_from_the_rollout_where_none_is_given() -> None:
    wrong = "no answer"
    early = reward.compute_score("rlla", wrong, GOLD, {"max_global_steps": 10}, max1_step30_max3=True)
    late = reward.compute_score("rlla", wrong, GOLD, {"max_global_steps": 30}, max1_step30_max3=True)
    none = reward.compute_score("rlla", wrong, GOLD, {"max_global_steps": None}, max1_step30_max3=True)
    assert (early["score"], late["score"], none["score"]) == (-1.0, -3.0, -1.0)


def test_environment_variables_are_on_only_when_exactly_one() -> None:
    assert reward.variant_from_env({"EXPERIMENT_NAME": "grpo-llama-qwen", "WITHLENGTH": "true"}) == {
        "family": "llama",
        **dict.fromkeys(FLAGS, False),
    }
    assert reward.variant_from_env({"COARSEREWARD": "1", "STRICTMATCH": "1"})["coarse"] is True


def test_chat_markers_are_cut_for_the_family_only() -> None:
    qwen = f"<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n{GOLD}<|im_end|>"
    llama = f"<|start_header_id|>assistant<|end_header_id|>\n\n{GOLD}<|eot_id|>"
    assert score(qwen)["score"] == score(llama, family="llama")["score"] == 4.0
    assert score(llama)["format_score"] == 0.0


def test_the_file_works_alone_as_verl_loads_it_by_path(tmp_path: Path) -> None:
    copy = tmp_path / "anywhere.py"
    copy.write_text(Path(reward.__file__).read_text())
    spec = importlib.util.spec_from_file_location("copied_reward", copy)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.compute_score("rlla", GOLD, GOLD)["score"] == 4.0


def test_nothing_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(200):
        score(GOLD)
    assert capsys.readouterr().out == ""


TAGS = ["<think>", "</think>", "<tool_call>", "</tool_call>", "<response>", "</response>", "\n", " ", "x"]
SOUP = st.lists(st.sampled_from(TAGS), max_size=14).map("".join)


@given(SOUP, st.booleans(), st.booleans())
def test_the_format_is_the_grammar_of_the_specification(text: str, calls: bool, reply: bool) -> None:
    text = text.strip()
    grammar = "<think>.*</think>"
    grammar += "\n<tool_call>\n.*\n</tool_call>" if calls else ""
    grammar += "\n<response>.*</response>" if reply else ""
    wanted = ["tool_call"] * calls + ["response"] * reply
    once = all(text.count(f"<{tag}>") == text.count(f"</{tag}>") == 1 for tag in wanted)
    expected = once and re.fullmatch(grammar, text, re.DOTALL) is not None
    assert reward.has_format(text, calls, reply) is expected


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)
CALL = st.fixed_dictionaries(
    {"name": st.sampled_from(["f", "g"]), "parameters": st.dictionaries(st.sampled_from("abc"), JSON)}
)


@given(st.lists(CALL, min_size=1, max_size=3), st.lists(CALL | JSON, max_size=4), st.data())
def test_no_answer_earns_more_than_the_gold(
    gold: list[Any], predicted: list[Any], data: st.DataObject
) -> None:
    flags = {flag: data.draw(st.booleans(), label=flag) for flag in FLAGS}
    # Beyond step 300 upstream's schedule turns the range of `correct_max_1` upside down; ours follows it.
    step = data.draw(st.integers(0, 300))
    best = score(answer(gold), answer(gold), step=step, **flags)
    other = score(answer(predicted), answer(gold), step=step, **flags)
    assert other["score"] <= best["score"] + 1e-9
    assert other["correctness_score"] >= -3 - 1e-9


@given(st.text(max_size=60) | SOUP, st.sampled_from([GOLD, REPLY, THOUGHT]))
def test_no_text_of_a_model_makes_it_raise(text: str, gold: str) -> None:
    for flag in FLAGS:
        assert -4.0 <= score(text, gold, **{flag: True})["score"] <= 5.0


# --- ToolRL's reward with the hidden cost of the chosen tools


OFFERS = [{"find_ferry": 0.005, "find_ferry_Budget": 0.025}]


def priced(*names: str) -> str:
    lines = "\n".join(json.dumps({"name": name, "parameters": {"q": 1}}) for name in names)
    return f"<think> x </think>\n<tool_call>\n{lines}\n</tool_call>"


PRICED = priced("find_ferry")


def shaped(text: str, offers: object = OFFERS, weight: float = 0.25) -> float:
    info = {"rollout": "single", "offers": offers}
    return rewards.compute_score("rlla", text, PRICED, info, shaping=weight)["score"]


def test_the_better_tool_earns_the_bonus_and_the_distractor_its_overprice() -> None:
    assert shaped(PRICED) == 4.25
    plain = reward.compute_score("rlla", priced("find_ferry_Budget"), PRICED)["score"]
    assert shaped(priced("find_ferry_Budget")) == pytest.approx(plain - 0.25 * 0.8)


def test_the_mean_over_offered_calls_counts() -> None:
    both = priced("find_ferry", "find_ferry_Budget", "unrelated")
    plain = reward.compute_score("rlla", both, PRICED)["score"]
    assert shaped(both) == pytest.approx(plain + 0.25 * (1 - 0.8) / 2)


@pytest.mark.parametrize("text", [PRICED, "", "<tool_call>\n[]\n</tool_call>", priced("unrelated")])
def test_without_an_offer_nothing_changes(text: str) -> None:
    assert shaped(text, []) == shaped(text, None) == reward.compute_score("rlla", text, PRICED)["score"]


@pytest.mark.parametrize("block", ["[1]", '"x"', "null", '{"name": ["find_ferry"]}', '{"name": null}', "no"])
def test_no_answer_makes_it_raise(block: str) -> None:
    text = f"<think> x </think>\n<tool_call>\n{block}\n</tool_call>"
    parts = rewards.compute_score("rlla", text, PRICED, {"rollout": "single", "offers": OFFERS}, shaping=0.25)
    assert parts["shaping_score"] == 0.0 and parts["score"] == sum(
        parts[name] for name in ("format_score", "correctness_score", "length_score", "shaping_score")
    )
