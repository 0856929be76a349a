"""No request of ours is one that a strict server refuses, whatever the replies before it were."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from robustbench_tc import api, schema
from robustbench_tc.eval import inputs, wire
from robustbench_tc.eval.live import prompts
from robustbench_tc.own.desk import desk as desk_files

from . import small
from .strict_server import refusal

BROKEN = [
    '{"order_id": 10',
    "",
    '"{\\"order_id\\": 1042}"',
    "[1042]",
    "null",
    "{'a': 1}",
    '{"a": NaN}',
    '{"a": "\\ud800"}',
    "[" * 5000,
]
WORDS = st.one_of(st.text(max_size=70), st.sampled_from(["", "call_0", "c0", "a" * 70, "name with spaces"]))
CALL = st.fixed_dictionaries(
    {"name": WORDS, "arguments": st.one_of(st.text(max_size=30), st.sampled_from(BROKEN))},
    optional={"id": st.one_of(st.none(), WORDS)},
)
REPLIES = st.lists(
    st.tuples(st.one_of(st.none(), st.text(max_size=20)), st.one_of(st.none(), st.lists(CALL, max_size=4))),
    min_size=1,
    max_size=3,
)


def body(ask: wire.Ask) -> dict[str, Any]:
    return {"messages": ask.messages, "tools": ask.tools}


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The support desk of `rbtc init`: its cases have earlier calls, sent as native ones."""
    folder = tmp_path_factory.mktemp("desk")
    for name in ("cases.yaml", "crm.json", "orders.json"):
        (folder / name).write_bytes(desk_files()[name])
    api.build(folder / "bench", cases=folder / "cases.yaml")
    return folder / "bench"


@pytest.mark.parametrize("which", ["paper", "desk"])
def test_every_first_request_is_valid(request: pytest.FixtureRequest, which: str) -> None:
    for row in inputs.load_samples(str(request.getfixturevalue(which))).rows:
        for mode in ("fc", "prompt"):
            assert refusal(body(wire.first(row, mode))) is None, row.id


@settings(max_examples=300)
@given(replies=REPLIES, mode=st.sampled_from(["fc", "prompt"]))
def test_a_request_after_hostile_replies_is_valid(replies: list[Any], mode: str) -> None:
    row = small.rows("transient_timeout")[-1]
    asked = wire.following(row, mode, replies)
    assert refusal(body(asked)) is None
    json.dumps(asked.messages)


@settings(max_examples=300)
@given(replies=REPLIES, mode=st.sampled_from(["fc", "prompt"]))
def test_a_live_request_after_hostile_replies_is_valid(replies: list[Any], mode: str) -> None:
    tools = small.rows("transient_timeout")[-1].tools
    messages: prompts.Messages = [{"role": "user", "content": "Go on."}]
    for text, calls in replies:
        results = [("f", "200")] * len(calls or [])
        found = schema.Reply(turn=0, text=text, tool_calls=calls or None, answered=True)
        messages += prompts.replied(found, results, wire.WireNames(tools), mode, messages)
    assert refusal({"messages": messages}) is None
