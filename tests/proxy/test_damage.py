"""Nonsense of a server, and damage anywhere in requests and replies: an answer or one line, no traceback."""

import http.client
import json
import random
from contextlib import ExitStack, suppress
from typing import Any

import pytest

from robustbench_tc.proxy.door import Door
from robustbench_tc.proxy.plan import Plan
from robustbench_tc.proxy.relay import serving
from robustbench_tc.result_faults import Fault

from ..conftest import NIGHTLY
from .agents import Client
from .items_server import in_events, response
from .scripted import STREAM, chat_reply, in_pieces, whole
from .test_dialects import FLAT, LISTED, each, either_way
from .test_door import ASKED, BUDGET, CHEAP, GET, PAY, TOOLS
from .wire import Answer, serving as server_of

Json = Any
NONSENSE: dict[str, list[Json]] = {
    "/chat/completions": [
        None, 3, [], {}, {"choices": 3}, {"choices": []}, {"choices": [3]}, {"choices": [{"message": 3}]},
        {"choices": [{"message": {"tool_calls": 3}}]},
        {"choices": [{"message": {"tool_calls": [3, {}, {"function": 3}, {"function": {"name": 3}}]}}]},
        {"choices": [{"message": {"content": 3, "tool_calls": [{"function": {"name": "refund"}}]}}]},
        {"choices": [{"message": {"tool_calls": [{"function": {"name": "refund", "arguments": {}}}]}}]},
        {"choices": [{"message": {"tool_calls": [{"id": None, "function": {"name": "refund_Budget"}}]}}]},
        {"choices": [{"delta": {"tool_calls": [{"function": {"name": "refund", "arguments": 3}}]}}]},
        {"choices": [{"delta": {"tool_calls": [3, {"index": "a"}]}, "finish_reason": "stop"}]},
        {"error": {"message": "no"}},
    ],
    "/responses": [
        None, 3, {}, {"output": 3}, {"output": [3]}, {"output": [{"type": "function_call"}]},
        {"output": [{"type": "message", "content": [3, {"text": 3}]}]},
        {"type": "response.output_item.done", "output_index": 0, "item": {"type": "function_call"}},
        {"type": "response.output_item.added", "output_index": "a", "item": 3},
        {"type": "response.completed", "response": 3}, {"type": "response.completed", "response": {}},
        {"type": "error", "message": "no"},
    ],
    "/messages": [
        None, 3, {}, {"content": 3}, {"content": [3, {}, {"type": "tool_use"}, {"type": 3, "text": 3}]},
        {"content": [{"type": "tool_use", "id": 3, "name": "refund", "input": "x"}], "stop_reason": 3},
        {"type": "message_start", "message": 3}, {"type": "message_start", "message": {"usage": 3}},
        {"type": "content_block_start", "index": 0, "content_block": 3},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "citations_delta", "citation": 3}},
        {"type": "content_block_delta", "index": -1, "delta": {"partial_json": "["}},
        {"type": "content_block_stop", "index": "a"}, {"type": "message_delta", "delta": 3},
        {"type": "message_delta", "delta": {}, "usage": 3}, {"type": "error", "error": {"message": "no"}},
    ],
}  # fmt: skip
CONTENTS: list[Json] = [None, 3, [], [3, {}], [{"type": "tool_result"}], [{"type": "tool_use"}]]
INPUTS: list[Json] = [
    "Hi", [], [{}], [{"type": 3, "role": 3}], [{"role": "assistant", "content": 3}],
    [{"type": "function_call"}], [{"type": "function_call_output", "output": [3]}],
]  # fmt: skip
REQUESTS: dict[str, list[Json]] = {
    "/chat/completions": [{"messages": ASKED, "tools": TOOLS}],
    "/responses": [{"input": given, "tools": FLAT} for given in INPUTS],
    "/messages": [
        {
            "messages": [*ASKED, *({"role": role, "content": content} for role in ("assistant", "user"))],
            "tools": [*LISTED, 3, {"type": "bash_20250124", "name": "bash"}],
            "system": content,
        }
        for content in CONTENTS
    ],
}
DEEP = b"[" * 100_000


@each
@either_way
def test_nonsense_of_the_server_ends_without_a_traceback(
    path: str, stream: bool, caplog: pytest.LogCaptureFixture
) -> None:
    events = [b"data: " + json.dumps(one).encode() + b"\n\n" for one in NONSENSE[path]]
    streams = [
        *([one, b"data: [DONE]\n\n"] for one in events),
        events,
        [b"data: ", DEEP],
        [b"data: \xff\n\n", b""],
    ]
    answers = [*map(whole, NONSENSE[path]), *(Answer([body]) for body in (b"<html>", DEEP, b"\xff\xfe"))]
    answers += [Answer(parts, headers=STREAM) for parts in streams]
    now = [answers[0]]
    with server_of(lambda seen: now[0]) as server, serving(Door(server.url, BUDGET)) as url:
        for answer in answers:
            now[0] = answer
            for body in REQUESTS[path]:
                # A stream that has begun can only end.
                with Client(url) as client, suppress(ConnectionError, EOFError, http.client.HTTPException):
                    assert client.post("case.0", {**body, "stream": stream}, path)[0] in (200, 502), (
                        answer,
                        body,
                    )
    assert not [record for record in caplog.records if record.exc_info]


# --- Damage anywhere


JUNK: list[Json] = [
    None, 3, -1, 1.5, True, "", "x", "\ud800", [], {}, [None], {"a": 1}, [[]], "refund", "refund_Budget",
    "assistant", "tool", 10**30,
]  # fmt: skip
TRIES = 5_000 if NIGHTLY else 300


def damaged(value: Json, rng: random.Random) -> Json:
    """A copy in which values are replaced, left out, doubled and put in."""
    if rng.random() < 0.06:
        return rng.choice(JUNK)
    if isinstance(value, dict):
        return {key: damaged(inner, rng) for key, inner in value.items() if rng.random() > 0.03}
    if isinstance(value, list):
        out = [damaged(inner, rng) for inner in value]
        if out and rng.random() < 0.1:
            out.insert(rng.randrange(len(out)), rng.choice(JUNK))
        if out and rng.random() < 0.1:
            out.append(rng.choice(out))
        return out
    return value


REPLY = chat_reply([CHEAP, GET, PAY], "Let me see.")
CALLS = REPLY["choices"][0]["message"]["tool_calls"]
TALK = [
    {"role": "system", "content": "Be kind."},
    *ASKED,
    {"role": "assistant", "content": None, "tool_calls": CALLS},
    *({"role": "tool", "tool_call_id": call["id"], "content": "ok"} for call in CALLS),
    {"role": "user", "content": [{"type": "text", "text": "And?"}]},
]
RESPONSE = response([CHEAP, PAY], "Let me see.")
ITEMS = [
    {"role": "user", "content": "Refund order 7."},
    *RESPONSE["output"],
    *(
        {"type": "function_call_output", "call_id": one["call_id"], "output": "true result"}
        for one in RESPONSE["output"]
        if one["type"] == "function_call"
    ),
]
FORCED = {"type": "function", "function": {"name": "refund"}}
CHAT = {"model": "m", "messages": TALK, "tools": TOOLS, "tool_choice": FORCED}
RESPONSES = {"model": "m", "instructions": "Be kind.", "input": ITEMS, "tools": FLAT}


def answer(flat: bool, stream: bool, rng: random.Random) -> Answer:
    """A damaged reply."""
    if not stream:
        return whole(damaged(RESPONSE if flat else REPLY, rng))
    pieces = in_events(RESPONSE) if flat else b"".join(in_pieces(REPLY, 5)).split(b"\n\n")
    data = [piece.partition(b"data: ")[2].strip() for piece in pieces]
    events = [json.loads(one) for one in data if one.startswith(b"{")]
    lines = [b"data: " + json.dumps(damaged(event, rng)).encode() + b"\n\n" for event in events]
    return Answer([*lines, b"data: [DONE]\n\n"], headers=STREAM)


def test_damage_anywhere_ends_in_an_answer_or_in_one_line(caplog: pytest.LogCaptureFixture) -> None:
    rng = random.Random(TRIES)
    codes = ("CD", "same_name_D", "flood_3", "transient_timeout", "clean", "CD_NT", "TD")
    faults = (Fault(kind="transient_timeout", rate=0.5),)
    plans = [Plan(types=(code,), faults=faults, allow_writes=True) for code in codes]
    now = [Answer()]
    with ExitStack() as stack:
        server = stack.enter_context(server_of(lambda seen: now[0]))
        doors = [stack.enter_context(serving(Door(server.url, plan))) for plan in plans]
        for _ in range(TRIES):
            flat, stream = rng.random() < 0.4, rng.random() < 0.5
            now[0] = answer(flat, stream, rng)
            body = damaged({**(RESPONSES if flat else CHAT), "stream": stream}, rng)
            broken = suppress(ConnectionError, http.client.HTTPException)  # all that a stream can
            with Client(rng.choice(doors)) as client, broken:
                status, said = client.post("case.0", body, "/responses" if flat else "/chat/completions")
                assert status in (200, 400, 502), said
                if status != 200:
                    assert "\n" not in json.loads(said)["error"]["message"]
    assert [record.exc_text for record in caplog.records if record.exc_info] == []
