"""What the door does to one conversation, case by case."""

import gzip
import http.client
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from robustbench_tc.proxy import journal, rewrite
from robustbench_tc.proxy.door import Door
from robustbench_tc.proxy.plan import Plan
from robustbench_tc.proxy.relay import serving
from robustbench_tc.proxy.scenes import Scene
from robustbench_tc.result_faults import Fault
from robustbench_tc.taxonomy import injected_error

from .agents import Client, assembled
from .scripted import Script, chat_reply, in_pieces
from .wire import Answer, Handler, Seen, Server, send, serving as server_of

Json = Any


def tool(name: str, *required: str) -> Json:
    properties = {one: {"type": "string"} for one in required}
    schema = {"type": "object", "properties": properties, "required": list(required)}
    function = {"name": name, "description": f"Does {name}.", "parameters": schema, "strict": True}
    return {"type": "function", "function": function}


TOOLS = [tool("get_order", "id"), tool("refund", "id", "amount")]
ASKED = [{"role": "user", "content": "Refund order 7."}]
GET, PAY = ("get_order", '{"id": "7"}'), ("refund", '{"id": "7", "amount": "9"}')


@contextmanager
def door(script: Handler, plan: Plan, path: Path | None = None) -> Iterator[tuple[Client, Server]]:
    with (
        server_of(script) as server,
        serving(Door(server.url, plan, journal=path)) as url,
        Client(url) as client,
    ):
        yield client, server


def ask(client: Client, messages: list[Json], *, stream: bool = False, **more: Json) -> Json:
    body = {"model": "m", "messages": messages, "tools": TOOLS, "stream": stream, **more}
    status, said = client.post("case.0", body)
    assert status == 200, said
    return assembled(said) if stream else json.loads(said)


def calls(message: Json) -> list[tuple[str, str]]:
    return [
        (one["function"]["name"], one["function"]["arguments"]) for one in message.get("tool_calls") or ()
    ]


def results(message: Json, text: str = "true result") -> list[Json]:
    return [{"role": "tool", "tool_call_id": one["id"], "content": text} for one in message["tool_calls"]]


BUDGET = Plan(types=("CD",), seed=1)
"""Draws `refund` as the tool that is meant: the distractor is `refund_Budget`."""
CHEAP = ("refund_Budget", PAY[1])


@pytest.mark.parametrize("stream", [False, True])
def test_a_reply_of_distractors_only_is_answered_at_most_three_times(stream: bool, tmp_path: Path) -> None:
    script = Script(chat_reply([CHEAP], "Let me see."))
    with door(script, BUDGET, tmp_path / "j") as (client, _):
        found = ask(client, ASKED, stream=stream)["choices"][0]
        assert not calls(found["message"]) and found["finish_reason"] == "stop"
        ask(client, [*ASKED, found["message"], {"role": "user", "content": "And?"}], stream=stream)
    assert len(script.bodies) == 8
    assert len(script.bodies[3]["messages"]) == 1 + 3 * 2
    assert script.bodies[4]["messages"][: len(script.bodies[3]["messages"])] == script.bodies[3]["messages"]
    lines = journal.read_exchanges(tmp_path / "j")
    assert [len(line.held) for line in lines] == [4, 4]
    assert [len(line.replies) for line in lines] == [4, 4]


def test_text_is_passed_on_while_a_calls_name_is_still_coming() -> None:
    pieces = in_pieces(chat_reply([PAY], "One moment."), 3)
    script = Script(Answer(pieces, headers={"Content-Type": "text/event-stream"}, pause_s=0.004))
    with server_of(script) as server, serving(Door(server.url, BUDGET)) as url:
        parts = urlsplit(url)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
        body = {"messages": ASKED, "tools": TOOLS, "stream": True}
        began = time.monotonic()
        connection.request("POST", "/s/case.0/v1/chat/completions", json.dumps(body))
        found = connection.getresponse()
        text = found.read(10)
        early = time.monotonic() - began
        text += found.read()
        whole = time.monotonic() - began
        connection.close()
    assert early < whole / 2
    assert calls(assembled(text)["choices"][0]["message"]) == [PAY]
    names = [
        one["function"]["name"]
        for event in text.decode().split("\n\n")
        if event.startswith("data: {")
        for choice in json.loads(event[6:])["choices"]
        for one in choice["delta"].get("tool_calls") or ()
        if "name" in one["function"]
    ]
    assert names == ["refund"]


TIMEOUT = injected_error("transient_timeout")


@pytest.mark.parametrize(
    ("plan", "contents", "spared"),
    [
        (Plan(faults=(Fault(kind="transient_timeout", at=(1, 2)),)), ["true result"] * 2, 2),
        (
            Plan(faults=(Fault(kind="transient_timeout", at=(1, 2)),), read_only=("get_order",)),
            [TIMEOUT, "true result"],
            1,
        ),
        (
            Plan(faults=(Fault(kind="transient_timeout", rate=1.0),), idempotent=("refund",)),
            ["true result", TIMEOUT],
            1,
        ),
        (
            Plan(faults=(Fault(kind="transient_timeout", at=(2,)),), allow_writes=True),
            ["true result", TIMEOUT],
            0,
        ),
        (Plan(types=("transient_timeout",), allow_writes=True), [TIMEOUT, TIMEOUT], 0),
        (Plan(types=("transient_timeout",)), ["true result"] * 2, 2),
    ],
)
def test_results_are_replaced_where_the_plan_allows_it(
    plan: Plan, contents: list[str], spared: int, tmp_path: Path
) -> None:
    script = Script(chat_reply([GET, PAY]), chat_reply([GET]), chat_reply([], "Done."))
    with door(script, plan, tmp_path / "j") as (client, _):
        first = ask(client, ASKED)["choices"][0]["message"]
        talk = [*ASKED, first, *results(first)]
        second = ask(client, talk)["choices"][0]["message"]
        ask(client, [*talk, second, *results(second)])
    said = [one["content"] for one in script.bodies[1]["messages"] if one["role"] == "tool"]
    assert said == contents
    again = [one["content"] for one in script.bodies[2]["messages"] if one["role"] == "tool"]
    assert again[:2] == contents
    line = journal.read_exchanges(tmp_path / "j")[1]
    assert len(line.spared) == spared
    assert [one.label for one in line.replaced] == ["after_effect"] * (2 - contents.count("true result"))


def test_only_a_plan_with_a_dataset_wants_a_name_of_the_session() -> None:
    plan = Plan(bench="own", faults=(Fault(kind="transient_timeout", rate=0.5),))
    with door(Script(chat_reply([], "Hi")), plan) as (client, server):
        status, said = client.post(None, {"messages": ASKED})
        assert status == 400 and b"<case>.<repeat>" in said and not server.seen
    with door(Script(chat_reply([], "Hi")), BUDGET) as (client, server):
        assert client.post(None, {"messages": ASKED, "tools": TOOLS})[0] == 200
        assert len(json.loads(server.seen[0].body)["tools"]) == 3


@pytest.mark.parametrize("stream", [False, True])
def test_a_provider_that_refuses_equal_names(stream: bool, tmp_path: Path) -> None:
    def refuses(seen: Seen) -> Answer:
        names = [one["function"]["name"] for one in json.loads(seen.body)["tools"]]
        if len(set(names)) < len(names):
            return Answer([b'{"error": {"message": "tools: Tool names must be unique."}}'], 400)
        return Script(chat_reply([GET]))(seen)

    plan = Plan(types=("same_name_D",))
    with (
        server_of(refuses) as server,
        serving(Door(server.url, plan, journal=tmp_path / "j")) as url,
        Client(url) as client,
    ):
        for _ in range(2):
            assert calls(ask(client, ASKED, stream=stream)["choices"][0]["message"]) == [GET]
        assert len(server.seen) == 3  # asked in vain once
        # Of an agent that itself sends two of one name the refusal goes back.
        body = {"messages": ASKED, "tools": [TOOLS[0], *TOOLS], "stream": stream}
        status, said = client.post("case.0", body)
        assert (status, len(server.seen)) == (400, 4) and b"must be unique" in said
    assert [line.skipped for line in journal.read_exchanges(tmp_path / "j")] == ["not_expressible"] * 3


def test_an_agent_that_rewrites_its_history_still_gets_replies() -> None:
    script = Script(chat_reply([CHEAP, PAY]), chat_reply([], "Done."))
    with door(script, BUDGET) as (client, _):
        first = ask(client, ASKED)["choices"][0]["message"]
        own = {**first, "tool_calls": [{**first["tool_calls"][0], "id": "mine"}]}
        ask(client, [*ASKED, own, {"role": "tool", "tool_call_id": "mine", "content": "ok"}])
        ask(client, [{"role": "user", "content": "Summary: all done."}])
    assert calls(script.bodies[1]["messages"][1]) == [PAY]


HOSTILE: list[Json] = [
    None,
    [],
    {},
    {"messages": 1},
    {"messages": [1]},
    {"messages": ASKED, "tools": 3},
    {"messages": ASKED, "n": 2},
    {"messages": ASKED, "functions": [{"name": "f"}]},
]
PASSES: list[Json] = [
    {"messages": []},
    {"messages": [{}], "tools": [None, 3, {}, {"type": "function"}, {"type": "function", "function": 3}]},
    {"messages": [{"role": 3, "content": {"a": 1}}], "tools": TOOLS},
    {"messages": [{"role": "user", "content": [{"type": "text"}, 3]}], "tools": TOOLS},
    {"messages": ASKED, "tools": [{"type": "function", "function": {"name": "f", "parameters": "no"}}]},
    {
        "messages": ASKED,
        "tools": [{"type": "function", "function": {"name": "f", "parameters": {"properties": 3}}}],
    },
    {"messages": ASKED, "tools": [tool("a", "x"), tool("a", "x")]},
    {"messages": [*ASKED, {"role": "assistant", "tool_calls": 7}], "tools": TOOLS},
    {
        "messages": [*ASKED, {"role": "assistant", "tool_calls": [3, {"function": {"name": 3}}]}],
        "tools": TOOLS,
    },
    {"messages": ASKED, "tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "refund"}}},
    {"messages": [{"role": "user", "content": "\ud800"}], "tools": TOOLS},
    {"messages": ASKED, "tools": [tool("x" * 5000, "y"), tool("", "y")]},
]


@pytest.mark.parametrize("code", ["same_name_D", "CD", "CD_NT", "flood_3", "transient_timeout"])
def test_hostile_requests_get_one_line_or_an_answer(code: str, tmp_path: Path) -> None:
    plan = Plan(types=(code,), allow_writes=True)
    with (
        server_of(lambda seen: Answer([json.dumps(chat_reply([PAY], "Hi")).encode()])) as server,
        serving(Door(server.url, plan, journal=tmp_path / "j")) as url,
        Client(url) as client,
    ):
        for body in HOSTILE:
            status, said = client.post("case.0", body)
            assert status == 400 and "\n" not in json.loads(said)["error"]["message"], body
        assert not server.seen
        for body in PASSES:
            status, said = client.post("case.0", body)
            assert status == 200, (body, said)


@pytest.mark.parametrize("plan", [BUDGET, Plan(faults=(Fault(kind="transient_timeout", at=(9,)),))])
def test_a_stream_that_breaks_off_says_so(plan: Plan, tmp_path: Path) -> None:
    kind = {"Content-Type": "text/event-stream"}
    pieces = in_pieces(chat_reply([PAY], "Some text"), 4)[:4]
    script = Script(Answer(pieces, headers=kind, break_off=True))
    broken = pytest.raises((ConnectionError, http.client.HTTPException))
    with door(script, plan, tmp_path / "journal.jsonl") as (client, _), broken:
        client.post("case.0", {"messages": ASKED, "tools": TOOLS, "stream": True})
    (line,) = map(json.loads, (tmp_path / "journal.jsonl").read_text().splitlines())
    assert "gave no complete reply" in line["error"] and "replies" not in line


def test_a_compressed_request_passes_and_is_not_perturbed() -> None:
    body = gzip.compress(json.dumps({"messages": ASKED, "tools": TOOLS}).encode())
    for plan, status in ((Plan(), 200), (BUDGET, 400)):
        with server_of(lambda seen: Answer()) as server, serving(Door(server.url, plan)) as url:
            place = f"{url.replace('/v1', '/s/a.0/v1')}/chat/completions"
            assert send(place, body, {"Content-Encoding": "gzip"}).status == status
            assert len(server.seen) == (status == 200)


def test_an_agent_that_shows_its_tools_otherwise_meets_the_same_distractor() -> None:
    script = Script(chat_reply([], "Done."))
    with door(script, BUDGET) as (client, _):
        for tools in (TOOLS, TOOLS[::-1], TOOLS[1:]):
            client.post("case.0", {"messages": ASKED, "tools": tools})
    for body in script.bodies:
        assert "refund_Budget" in {one["function"]["name"] for one in body["tools"]}


@pytest.mark.parametrize(("kept", "made"), [(2**18, [2, 1]), (0, [2, 2, 2, 1])])
def test_what_a_session_gets_is_made_again_where_its_tools_are_others(
    kept: int, made: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a short request; of a long one nothing is remembered."""
    seen = []

    def turns_of(tools: list[Json], scenes: list[Scene]) -> list[tuple[Scene, rewrite.Offer]]:
        seen.append(len(tools))
        return made_anew(tools, scenes)

    made_anew = rewrite.turns_of
    monkeypatch.setattr(rewrite, "turns_of", turns_of)
    monkeypatch.setattr("robustbench_tc.proxy.door.MOST_KEPT", kept)
    script = Script(chat_reply([PAY]), chat_reply([], "Done."))
    with door(script, BUDGET) as (client, _):
        first = ask(client, ASKED)["choices"][0]["message"]
        talk = [*ASKED, first, *results(first)]
        ask(client, talk)
        ask(client, [*talk, {"role": "user", "content": "And?"}])
        ask(client, ASKED, tools=TOOLS[1:])
    assert seen == made
    assert [len(body["tools"]) for body in script.bodies] == [3, 3, 3, 2]


def test_results_of_running_systems(tmp_path: Path) -> None:
    faults = (
        Fault(kind="truncated", at=(1,)),
        Fault(kind="latency", at=(2,), seconds=0.3),
        Fault(kind="empty_result", rate=1.0, arguments={"id": "7"}),
    )
    script = Script(chat_reply([CHEAP, GET]), chat_reply([PAY]), chat_reply([GET]), chat_reply([], "Done."))
    plan = Plan(types=("CD",), seed=1, faults=faults, allow_writes=True)
    with door(script, plan, tmp_path / "j") as (client, _):
        talk = [*ASKED]
        for _ in range(3):
            message = ask(client, talk)["choices"][0]["message"]
            talk += [message, *results(message, '{"ok": true}')]
        began = time.monotonic()
        ask(client, talk)
        assert time.monotonic() - began < 0.3  # the second call's result was waited for once
    said = [one["content"] for one in script.bodies[3]["messages"] if one["role"] == "tool"]
    # The distractor's call counts for none of them.
    assert said == ['{"ok":', '{"status":"ok"}', '{"ok": true}', "{}"]
    met = [
        (one.kind, one.seconds) for line in journal.read_exchanges(tmp_path / "j") for one in line.replaced
    ]
    assert met == [("truncated", 0.0), ("latency", 0.3), ("empty_result", 0.0)]


@pytest.mark.parametrize("stream", [False, True])
def test_a_dropped_tool_is_offered_no_more(stream: bool) -> None:
    script = Script(chat_reply([GET]), chat_reply([GET, PAY]), chat_reply([], "Done."))
    plan = Plan(faults=(Fault(kind="dropped_tool", at=(2,), tools=("get_order",)),))
    with door(script, plan) as (client, _):
        first = ask(client, ASKED, stream=stream)["choices"][0]["message"]
        talk = [*ASKED, first, *results(first)]
        second = ask(client, talk, stream=stream)["choices"][0]["message"]
        assert calls(first) == [GET] and calls(second) == [PAY]
        ask(client, [*talk, second, *results(second)], stream=stream)
    offered = [[one["function"]["name"] for one in body["tools"]] for body in script.bodies]
    assert offered == [["get_order", "refund"], ["refund"], ["refund"]]
    said = [one["content"] for one in script.bodies[2]["messages"] if one["role"] == "tool"]
    assert said == ["true result", "true result", '{"error": "there is no tool get_order"}']


def test_a_fault_for_a_tool_that_no_list_has_is_an_error() -> None:
    plan = Plan(faults=(Fault(kind="transient_timeout", at=(1,), tools=("get_ordr",)),))
    with door(Script(chat_reply([], "Hi")), plan) as (client, server):
        status, said = client.post("case.0", {"messages": ASKED, "tools": TOOLS})
        assert status == 400 and b"unknown tool 'get_ordr': did you mean get_order?" in said
        assert not server.seen
