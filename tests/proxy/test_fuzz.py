"""Requests and replies with damage anywhere in them: an answer or one line, never a traceback."""

import contextlib
import http.client
import json
import os
import random
from typing import Any

import pytest

from robustbench_tc.proxy.door import Door
from robustbench_tc.proxy.plan import Fault, Plan
from robustbench_tc.proxy.relay import serving

from . import test_responses as items
from .agents import Client
from .scripted import chat_reply, in_pieces
from .test_door import ASKED, CHEAP, GET, PAY, TOOLS
from .wire import Answer
from .wire import serving as server_of

Json = Any
JUNK: list[Json] = [
    None, 3, -1, 1.5, True, "", "x", "\ud800", [], {}, [None], {"a": 1}, [[]], "refund", "refund_Budget",
    "assistant", "tool", 10**30,
]  # fmt: skip
TRIES = 5_000 if os.environ.get("RBTC_NIGHTLY") == "1" else 300


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
RESPONSE = items.response([CHEAP, PAY], "Let me see.")
ITEMS = [
    {"role": "user", "content": "Refund order 7."},
    *RESPONSE["output"],
    *items.results(RESPONSE["output"]),
]
FORCED = {"type": "function", "function": {"name": "refund"}}
CHAT = {"model": "m", "messages": TALK, "tools": TOOLS, "tool_choice": FORCED}
RESPONSES = {"model": "m", "instructions": "Be kind.", "input": ITEMS, "tools": items.FLAT}


def answer(flat: bool, stream: bool, rng: random.Random) -> Answer:
    """A damaged reply."""
    if not stream:
        return Answer([json.dumps(damaged(RESPONSE if flat else REPLY, rng)).encode()])
    pieces = items.in_events(RESPONSE) if flat else b"".join(in_pieces(REPLY, 5)).split(b"\n\n")
    data = [piece.partition(b"data: ")[2].strip() for piece in pieces]
    events = [json.loads(one) for one in data if one.startswith(b"{")]
    lines = [b"data: " + json.dumps(damaged(event, rng)).encode() + b"\n\n" for event in events]
    return Answer([*lines, b"data: [DONE]\n\n"], headers=items.KIND)


def test_damage_anywhere_ends_in_an_answer_or_in_one_line(caplog: pytest.LogCaptureFixture) -> None:
    rng = random.Random(TRIES)
    codes = ("CD", "same_name_D", "flood_3", "transient_timeout", "clean", "CD_NT", "TD")
    faults = (Fault(kind="transient_timeout", rate=0.5),)
    plans = [Plan(types=(code,), faults=faults, allow_writes=True) for code in codes]
    now = [Answer()]
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(server_of(lambda seen: now[0]))
        doors = [stack.enter_context(serving(Door(server.url, plan))) for plan in plans]
        for _ in range(TRIES):
            flat, stream = rng.random() < 0.4, rng.random() < 0.5
            now[0] = answer(flat, stream, rng)
            body = damaged({**(RESPONSES if flat else CHAT), "stream": stream}, rng)
            broken = contextlib.suppress(ConnectionError, http.client.HTTPException)  # all that a stream can
            with Client(rng.choice(doors)) as client, broken:
                status, said = client.post("case.0", body, "/responses" if flat else "/chat/completions")
                assert status in (200, 400, 502), said
                if status != 200:
                    assert "\n" not in json.loads(said)["error"]["message"]
    assert [record.exc_text for record in caplog.records if record.exc_info] == []
