"""What a client gets of what a reply means."""

import json
from typing import Any, get_args

import pytest
from hypothesis import given, strategies as st

from robustbench_tc.eval.parse import parse
from robustbench_tc.eval.score.delivery import Delivery, Reason, delivery, row_delivered
from robustbench_tc.schema import Json, Tool

from . import texts

ASK = Tool("ping", "", {"type": "object", "properties": {"host": {"type": "string"}}, "required": ["host"]})
BARE = Tool("now", "", {"type": "object", "properties": {}})
TOOLS = (ASK, BARE)
RIGHT = '{"host": "a"}'


def native(arguments: Json = RIGHT, name: str = "ping", call_id: str = "a1") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def of(calls: list[Any], text: str = "", **more: Any) -> Delivery:
    finish = more.pop("finish_reason", None)
    parsed = parse(text, source="bfcl_v3", tools=TOOLS, tool_calls=calls, finish_reason=finish, **more)
    return delivery(parsed, calls, TOOLS, finish_reason=finish)


SAID = '<tool_call>{"name": "ping", "arguments": {"host": "a"}}</tool_call>'
FAULTS: list[tuple[Reason, Delivery]] = [
    ("in_text", of([], SAID)),
    ("in_reasoning", of([], "I ask.", reasoning=SAID)),
    ("no_json", of([native("{'host': 'a'}")])),
    ("not_an_object", of([native('[{"host": "a"}]')])),
    ("double_encoded", of([native(json.dumps(RIGHT))])),
    ("arguments_not_text", of([native({"host": "a"})])),
    ("unknown_name", of([native(name="pong")])),
    ("markup_in_name", of([native(name="functions.ping")])),
    ("bad_id", of([native(), native(RIGHT.replace("a", "b"))])),
    ("empty_arguments", of([native("")])),
    ("merged_calls", of([native(RIGHT + RIGHT)])),
    ("cut", of([native('{"host": "a')], finish_reason="length")),
    ("leaked_tokens", of([native(RIGHT + "<|im_end|>")])),
]


@pytest.mark.parametrize(("reason", "found"), FAULTS)
def test_every_fault_of_a_server_has_its_name(reason: Reason, found: Delivery) -> None:
    assert found == Delivery(reason == "in_reasoning", reason)


def test_no_reason_is_without_a_fault() -> None:
    assert [reason for reason, _ in FAULTS] == list(get_args(Reason))


@pytest.mark.parametrize("arguments", [None, "", "{}"])
def test_no_arguments_are_delivered_where_none_is_required(arguments: Json) -> None:
    assert of([native(arguments, "now")]) == Delivery(True)


def test_right_calls_are_delivered_beside_text_and_beside_none() -> None:
    assert of([native()]) == of([native()], "I ask it.") == of([]) == Delivery(True)
    assert of([native(), native("{}", "now", "b2")]) == Delivery(True)


entries = st.lists(
    st.builds(
        native,
        st.sampled_from(
            [RIGHT, "{}", "", None, "{", "[1]", '{"host": "a",}', {"host": "a"}, json.dumps(RIGHT)]
        ),
        st.sampled_from(["ping", "now", "pong", "functions.now"]),
        st.sampled_from(["a1", "b2", ""]),
    )
    | texts.values,
    max_size=3,
)


@given(entries, texts.replies, st.sampled_from([None, "stop", "length"]), st.booleans())
def test_what_is_delivered_is_meant(
    calls: list[Any], text: str, finish_reason: str | None, right: bool
) -> None:
    """And where it is delivered, the strict calls are the calls meant, so no verdict on them is another."""
    found = of(calls, text, finish_reason=finish_reason)
    assert row_delivered(right, [found]) <= right
    if found.delivered:
        parsed = parse(text, source="bfcl_v3", tools=TOOLS, tool_calls=calls, finish_reason=finish_reason)
        assert len(parsed.calls) == len(calls) and found.reason in (None, "in_reasoning")
    else:
        assert found.reason is not None
