"""The door for the Responses API: the same conversations, written in items."""

import contextlib
import http.client
import json
import random
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from robustbench_tc.proxy import journal
from robustbench_tc.proxy.door import Door
from robustbench_tc.proxy.plan import Plan
from robustbench_tc.proxy.relay import serving
from robustbench_tc.result_faults import Fault
from robustbench_tc.taxonomy import injected_error

from ..conftest import NIGHTLY
from . import test_responses as items
from .agents import Client
from .scripted import chat_reply, in_pieces
from .test_door import ASKED, BUDGET, CHEAP, GET, PAY, TOOLS
from .wire import Answer, Seen, send, serving as server_of

Json = Any
FLAT = [{"type": "function", **one["function"]} for one in TOOLS]
KIND = {"Content-Type": "text/event-stream"}


def response(calls: list[tuple[str, str]], text: str | None = None, turn: int = 1) -> Json:
    output: list[Json] = [{"type": "reasoning", "id": f"rs_{turn}", "summary": [], "encrypted_content": "x"}]
    if text is not None:
        part = {"type": "output_text", "text": text, "annotations": []}
        output.append({"type": "message", "id": f"msg_{turn}", "role": "assistant", "status": "completed",
                       "content": [part]})  # fmt: skip
    output += [
        {"type": "function_call", "id": f"fc_{turn}_{n}", "call_id": f"call_{turn}_{n}", "name": name,
         "arguments": arguments, "status": "completed"}
        for n, (name, arguments) in enumerate(calls)
    ]  # fmt: skip
    usage = {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}
    return {
        "id": f"resp_{turn}",
        "object": "response",
        "status": "completed",
        "output": output,
        "usage": usage,
    }


def in_events(whole: Json) -> list[bytes]:
    """A response as its events; texts and arguments in fragments of three characters."""
    events: list[Json] = [{"type": "response.created", "response": {**whole, "output": [], "status": "x"}}]
    for at, item in enumerate(whole["output"]):
        here = {"output_index": at}
        empty: Json = (
            {"content": []} if item["type"] == "message" else {"arguments": ""} if "name" in item else {}
        )
        events.append({"type": "response.output_item.added", **here, "item": {**item, **empty}})
        if item["type"] == "function_call":
            text, kind = item["arguments"], "response.function_call_arguments"
            events += [{"type": f"{kind}.delta", **here, "item_id": item["id"], "delta": text[n : n + 3]}
                       for n in range(0, len(text), 3)]  # fmt: skip
            events.append({"type": f"{kind}.done", **here, "item_id": item["id"], "arguments": text})
        elif item["type"] == "message":
            part = {**here, "item_id": item["id"], "content_index": 0}
            whole_part = item["content"][0]
            text, kind = whole_part["text"], "response.output_text"
            events.append({"type": "response.content_part.added", **part, "part": {**whole_part, "text": ""}})
            events += [{"type": f"{kind}.delta", **part, "logprobs": [], "delta": text[n : n + 3]}
                       for n in range(0, len(text), 3)]  # fmt: skip
            events.append({"type": f"{kind}.done", **part, "logprobs": [], "text": text})
            events.append({"type": "response.content_part.done", **part, "part": whole_part})
        events.append({"type": "response.output_item.done", **here, "item": item})
    events.append({"type": "response.completed", "response": whole})
    return [
        f"event: {one['type']}\ndata: {json.dumps({**one, 'sequence_number': n})}\n\n".encode()
        for n, one in enumerate(events)
    ]


def assembled(stream: bytes) -> Json:
    """The response that a stream amounts to: its events are numbered in turn and tell the same as its end."""
    events = [json.loads(one.partition("data: ")[2]) for one in stream.decode().split("\n\n") if one.strip()]
    assert [one["sequence_number"] for one in events] == list(range(len(events)))
    items: dict[int, Json] = {}
    arguments: dict[int, str] = {}
    for event in events:
        at = event.get("output_index")
        if event["type"] == "response.output_item.added":
            assert at == len(items), "items are not numbered in turn"
            items[at] = event["item"]
        elif event["type"] == "response.function_call_arguments.delta":
            arguments[at] = arguments.get(at, "") + event["delta"]
        elif event["type"] == "response.output_item.done":
            assert items[at].get("name") == event["item"].get("name")
            assert arguments.get(at, "") == event["item"].get("arguments", "")
            items[at] = event["item"]
    last = events[-1]
    assert last["type"] == "response.completed"
    assert last["response"]["output"] == [items[at] for at in sorted(items)]
    assert len({one["response"]["id"] for one in events if "response" in one}) == 1
    whole: Json = last["response"]
    return whole


class Script:
    def __init__(self, *replies: tuple[list[tuple[str, str]], str | None]) -> None:
        self.replies = replies
        self.bodies: list[Json] = []

    def __call__(self, seen: Seen) -> Answer:
        assert seen.path.endswith("/responses")
        body = json.loads(seen.body)
        self.bodies.append(body)
        sound(body["input"])
        turn = len(self.bodies)
        whole = response(*self.replies[min(turn, len(self.replies)) - 1], turn=turn)
        if body.get("stream"):
            return Answer(in_events(whole), headers=KIND)
        return Answer([json.dumps(whole).encode()])


def sound(items: Json) -> None:
    """Every call has its result, and every result its call."""
    if isinstance(items, list):
        calls = [one["call_id"] for one in items if one.get("type") == "function_call"]
        results = [one["call_id"] for one in items if one.get("type") == "function_call_output"]
        assert sorted(calls) == sorted(results)


def calls(items: Json) -> list[tuple[str, str]]:
    return [(one["name"], one["arguments"]) for one in items if one.get("type") == "function_call"]


def results(items: Json, text: str = "true result") -> list[Json]:
    return [
        {"type": "function_call_output", "call_id": one["call_id"], "output": text}
        for one in items
        if one.get("type") == "function_call"
    ]


def ask(client: Client, items: Json, *, stream: bool) -> Json:
    body = {"model": "m", "instructions": "Be kind.", "input": items, "tools": FLAT, "stream": stream}
    status, said = client.post("case.0", body, "/responses")
    assert status == 200, said
    return assembled(said) if stream else json.loads(said)


@pytest.mark.parametrize("stream", [False, True])
def test_a_reply_of_both_kinds(stream: bool, tmp_path: Path) -> None:
    script = Script(([CHEAP, GET, PAY], "Let me see."), ([], "Done."))
    with (
        server_of(script) as server,
        serving(Door(server.url, BUDGET, journal=tmp_path / "j")) as url,
        Client(url) as client,
    ):
        first = ask(client, "Refund order 7.", stream=stream)["output"]
        assert calls(first) == [GET, PAY]
        assert [one["type"] for one in first] == ["reasoning", "message", "function_call", "function_call"]
        talk = [{"role": "user", "content": "Refund order 7."}, *first, *results(first)]
        last = ask(client, talk, stream=stream)["output"]
        assert last[1]["content"][0]["text"] == "Done."
        ask(client, [*talk, *last, {"role": "user", "content": "Thanks"}], stream=stream)
    one, two, three = script.bodies
    assert sorted(tool["name"] for tool in one["tools"]) == ["get_order", "refund", "refund_Budget"]
    assert one["instructions"] == "Be kind."
    assert one["input"][0]["content"].startswith("Refund order 7. ")
    assert calls(two["input"]) == [CHEAP, GET, PAY]
    assert [item["output"] for item in two["input"] if "output" in item] == [
        "true result",
        "true result",
        '{"status":"ok"}',
    ]
    assert two["input"][1] == response([], turn=1)["output"][0]
    assert three["input"][: len(two["input"])] == two["input"]
    assert [len(line.held) for line in journal.read_exchanges(tmp_path / "j")] == [1, 0, 0]


@pytest.mark.parametrize("stream", [False, True])
def test_a_reply_of_distractors_only(stream: bool) -> None:
    script = Script(([CHEAP], None), ([PAY], "Now."))
    with server_of(script) as server, serving(Door(server.url, BUDGET)) as url, Client(url) as client:
        found = ask(client, "Refund order 7.", stream=stream)
        assert calls(found["output"]) == [PAY]
        ask(client, [{"role": "user", "content": "Refund order 7."}, *found["output"],
                     *results(found["output"])], stream=stream)  # fmt: skip
    assert len(script.bodies) == 3
    assert calls(script.bodies[1]["input"]) == [CHEAP]
    assert calls(script.bodies[2]["input"]) == [CHEAP, PAY]
    if not stream:
        assert found["usage"]["total_tokens"] == 10


def test_results_are_replaced() -> None:
    script = Script(([GET, PAY], None), ([], "Done."))
    plan = Plan(types=("transient_timeout",), read_only=("get_order",))
    with server_of(script) as server, serving(Door(server.url, plan)) as url, Client(url) as client:
        first = ask(client, "Refund order 7.", stream=False)["output"]
        ask(client, [{"role": "user", "content": "Refund order 7."}, *first, *results(first)], stream=False)
    said = [item["output"] for item in script.bodies[1]["input"] if "output" in item]
    assert said == [injected_error("transient_timeout"), "true result"]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"input": "Hi", "previous_response_id": "resp_1"}, "'previous_response_id' is not supported"),
        ({"input": "Hi", "conversation": "conv_1"}, "'conversation' is not supported"),
        ({"input": [{"type": "item_reference", "id": "msg_1"}]}, "'item_reference' is not supported"),
        ({"input": "Hi", "background": True}, "'background' is not supported"),
        ({"input": 3}, "no 'input'"),
        ({}, "no 'input'"),
        ({"input": "Hi", "tools": 3}, "'tools' has to be a list"),
    ],
)
def test_what_the_door_cannot_know_is_refused_by_name(body: Json, said: str) -> None:
    with (
        server_of(Script(([], "Hi"))) as server,
        serving(Door(server.url, BUDGET)) as url,
        Client(url) as client,
    ):
        status, text = client.post("case.0", body, "/responses")
        assert status == 400 and said in json.loads(text)["error"]["message"] and not server.seen


def test_what_is_not_changed_passes_byte_by_byte(tmp_path: Path) -> None:
    text = b'{"input":  "Hi", "stream": true}'
    pieces = in_events(response([], "Hello."))
    with (
        server_of(lambda seen: Answer(pieces, headers=KIND)) as server,
        serving(Door(server.url, Plan(types=("clean",)), journal=tmp_path / "j")) as url,
    ):
        got = send(f"{url.replace('/v1', '/s/a.0/v1')}/responses", text)
        assert (got.body, server.seen[0].body) == (b"".join(pieces), text)
    assert journal.read_exchanges(tmp_path / "j")[0].replies[0]["text"] == "Hello."


@pytest.mark.parametrize("stream", [False, True])
def test_nonsense_ends_without_a_traceback(stream: bool) -> None:
    values: list[Json] = [
        None, 3, {}, {"output": 3}, {"output": [3]}, {"output": [{"type": "function_call"}]},
        {"output": [{"type": "message", "content": [3, {"text": 3}]}]},
        {"type": "response.output_item.done", "output_index": 0, "item": {"type": "function_call"}},
        {"type": "response.output_item.added", "output_index": "a", "item": 3},
        {"type": "response.completed", "response": 3}, {"type": "response.completed", "response": {}},
        {"type": "error", "message": "no"},
    ]  # fmt: skip
    answers = [Answer([json.dumps(one).encode()]) for one in values]
    answers += [Answer([b"data: " + json.dumps(one).encode() + b"\n\n", b""], headers=KIND) for one in values]
    inputs: list[Json] = [
        "Hi",
        [],
        [{}],
        [{"type": 3, "role": 3}],
        [{"role": "assistant", "content": 3}],
        [{"type": "function_call"}],
        [{"type": "function_call_output", "output": [3]}],
    ]
    now = [answers[0]]
    with server_of(lambda seen: now[0]) as server, serving(Door(server.url, BUDGET)) as url:
        for answer in answers:
            now[0] = answer
            for given in inputs:
                body = {"input": given, "tools": FLAT, "stream": stream}
                # A stream that has begun can only end.
                ended = suppress(ConnectionError, EOFError, http.client.HTTPException)
                with Client(url) as client, ended:
                    assert client.post("case.0", body, "/responses")[0] in (200, 502), (answer, given)


# --- Requests and replies with damage anywhere in them: an answer or one line, never a traceback


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
