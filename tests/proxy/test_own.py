"""Cases of one's own through the door: histories with calls, several turns, an agent's own instructions."""

import asyncio
import itertools
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from robustbench_tc import api, seeding
from robustbench_tc.builders.own.dataset import pool
from robustbench_tc.builders.perturb import REGISTRY, Context
from robustbench_tc.eval import wire
from robustbench_tc.own.cases_file import read_cases
from robustbench_tc.own.logs.importing import Imported
from robustbench_tc.proxy import journal
from robustbench_tc.proxy.door import Door
from robustbench_tc.proxy.journal import Journal
from robustbench_tc.proxy.mcp.calls import Calls as McpCalls, Door as McpDoor, Pending
from robustbench_tc.proxy.plan import Plan, Session
from robustbench_tc.proxy.relay import serving
from robustbench_tc.proxy.rewrite import offer
from robustbench_tc.proxy.scenes import Scene, Scenes
from robustbench_tc.proxy.sessions import Sessions
from robustbench_tc.proxy.summary import summary
from robustbench_tc.result_faults import Fault
from robustbench_tc.schema import Call, Message, Sample, Tool

from .agents import Client
from .scripted import Script, chat_reply, predictions_of
from .test_door import TOOLS, calls, results
from .wire import serving as server_of

Json = Any
CASES = """
version: 1
tools: [orders.json]
read_only: [get_order]
cases:
- id: refund-17
  messages:
  - {role: user, content: "What is order 7?"}
  - role: assistant
    tool_calls: [{id: c1, type: function, function: {name: get_order, arguments: '{"id": "7"}'}}]
  - {role: tool, tool_call_id: c1, content: '{"total": 9}'}
  - {role: assistant, content: "It cost 9."}
  - {role: user, content: "Refund it"}
  expect: [{call: refund, arguments: {id: "7", amount: "9"}}]
- id: two
  turns:
  - {request: "Get order 7.", expect: [{call: get_order, arguments: {id: "7"}}]}
  - {request: "Refund it.", expect: [{call: refund, arguments: {id: "7", amount: "9"}}]}
"""
HISTORY: list[Json] = [
    {"role": "user", "content": "What is order 7?"},
    {"role": "assistant", "content": None, "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "get_order", "arguments": '{"id": "7"}'}}]},
    {"role": "tool", "tool_call_id": "c1", "content": '{"total": 9}'},
    {"role": "assistant", "content": "It cost 9."},
    {"role": "user", "content": "Refund it"},
]  # fmt: skip


def rows(folder: Path, *codes: str) -> tuple[Sample, ...]:
    (folder / "orders.json").write_text(json.dumps(TOOLS))
    (folder / "cases.yaml").write_text(CASES)
    clean = pool(read_cases(folder / "cases.yaml")).samples
    made = [
        REGISTRY[code].perturb(row, seeding.rng(1, code, row.clean_id), Context())
        for code in codes
        for row in clean
    ]
    return (*clean, *made)


def test_a_history_with_calls_and_instructions_of_the_agents(tmp_path: Path) -> None:
    found = rows(tmp_path, "CD", "transient_timeout")
    plan = Plan(bench="own", types=("clean", "CD", "transient_timeout"), allow_writes=True)
    pay = ("refund", '{"id": "7", "amount": "9"}')
    script = Script(chat_reply([pay]), chat_reply([], "Done."))
    rules = {"role": "system", "content": "Company rules: be kind."}
    with (
        server_of(script) as server,
        serving(Door(server.url, plan, rows=found, journal=tmp_path / "j")) as url,
        Client(url) as client,
    ):
        for repeat in range(3):
            script.bodies.clear()
            session = f"refund-17.{repeat}"
            talk = [rules, *HISTORY]
            for _ in range(2):
                _, said = client.post(session, {"messages": talk, "tools": TOOLS})
                message = json.loads(said)["choices"][0]["message"]
                talk += [message, *(results(message) if calls(message) else [])]
            first, second = (body["messages"] for body in script.bodies)
            assert first[:5] == [rules, *HISTORY[:4]]
            wished = first[5]["content"]
            assert wished == "Refund it" if repeat != 1 else wished.startswith("Refund it. ")
            assert len(script.bodies[0]["tools"]) == (3 if repeat == 1 else 2)
            assert second[: len(first)] == first
            answered = second[-1]["content"]
            assert answered == ("true result" if repeat < 2 else found[-1].injected_error)
    lines = journal.read_exchanges(tmp_path / "j")
    assert [(line.row, line.turn) for line in lines] == [
        (f"own__refund-17::{code}", turn) for code in plan.types for turn in (0, 1)
    ]


def two_turns(url: str, session: str, tools: list[Json] = TOOLS) -> list[Json]:
    """Both turns of the case, each until the model says something; the conversation."""
    talk: list[Json] = []
    with Client(url) as client:
        for request in ("Get order 7.", "Refund it."):
            talk.append({"role": "user", "content": request})
            for _ in range(4):
                status, said = client.post(session, {"messages": talk, "tools": tools})
                assert status == 200, said
                message = json.loads(said)["choices"][0]["message"]
                talk += [message, *(results(message) if calls(message) else [])]
                if not calls(message):
                    break
    return talk


GET, PAY = ("get_order", '{"id": "7"}'), ("refund", '{"id": "7", "amount": "9"}')


def test_every_turn_of_a_case_gets_its_row(tmp_path: Path) -> None:
    found = rows(tmp_path, "CD")
    cheap = (f"{PAY[0]}_Budget", PAY[1])
    script = Script(
        chat_reply([GET]), chat_reply([], "It cost 9."), chat_reply([cheap, PAY]), chat_reply([], "Done.")
    )
    plan = Plan(bench="own", types=("CD",))
    with (
        server_of(script) as server,
        serving(Door(server.url, plan, rows=found, journal=tmp_path / "j")) as url,
    ):
        talk = two_turns(url, "two.0")
    first, _, third, last = script.bodies
    assert first["messages"][0]["content"].startswith("Get order 7. ")
    assert third["messages"][-1]["content"].startswith("Refund it. ")
    for earlier, later in itertools.pairwise(script.bodies):
        assert later["messages"][: len(earlier["messages"])] == earlier["messages"]
    assert calls(last["messages"][5]) == [cheap, PAY] and calls(talk[5]) == [PAY]
    assert [one["content"] for one in last["messages"][6:]] == ["true result", '{"status":"ok"}']
    names = [{one["function"]["name"] for one in body["tools"]} for body in (first, third)]
    assert names == [{"get_order", "get_order_Budget", "refund"}, {"get_order", "refund", "refund_Budget"}]
    lines = journal.read_exchanges(tmp_path / "j")
    assert [(line.row, line.turn) for line in lines] == [
        ("own__two.1::CD", 0), ("own__two.1::CD", 1), ("own__two.2::CD", 0), ("own__two.2::CD", 1)
    ]  # fmt: skip
    made = predictions_of(lines, {row.id: row for row in found})
    assert [(one.id, len(one.tool_calls or ())) for one in made] == [
        ("own__two.1::CD", 1), ("own__two.2::CD", 2)
    ]  # fmt: skip


def test_faults_are_numbered_over_all_turns_and_each_turn_has_its_error(tmp_path: Path) -> None:
    found = rows(tmp_path, "transient_timeout")
    error = found[-1].injected_error
    again = [chat_reply([GET], prefix=f"a{n}_") for n in range(2)]
    pays = [chat_reply([PAY], prefix=f"b{n}_") for n in range(3)]
    faults = (Fault(kind="transient_rate_limit", at=(4,)),)
    plan = Plan(bench="own", types=("transient_timeout",), faults=faults, allow_writes=True)
    script = Script(*again, chat_reply([], "It cost 9."), *pays[:2], chat_reply([], "Done."))
    with server_of(script) as server, serving(Door(server.url, plan, rows=found)) as url:
        two_turns(url, "two.0")
    for earlier, later in itertools.pairwise(script.bodies):
        assert later["messages"][: len(earlier["messages"])] == earlier["messages"]
    said = [one["content"] for one in script.bodies[-1]["messages"] if one["role"] == "tool"]
    assert said == [error, "true result", error, faults[0].answer("")]


def test_a_turn_whose_row_cannot_be_put_passes_as_it_is(tmp_path: Path) -> None:
    """Its type does not apply; its row has another history; it is asked for by its own name."""
    found = rows(tmp_path, "CD")
    only_first = tuple(row for row in found if row.id != "own__two.2::CD")
    second = next(row for row in found if row.id == "own__two.2::CD")
    changed = (Message("user", "Before that."), *second.messages)
    other = (*only_first, msgspec.structs.replace(second, messages=changed))
    plan = Plan(bench="own", types=("CD",))
    for door_rows, reason in ((only_first, "no_such_row"), (other, "history_is_perturbed")):
        script = Script(
            chat_reply([GET]), chat_reply([], "It cost 9."), chat_reply([PAY]), chat_reply([], "Done.")
        )
        path = tmp_path / reason
        with (
            server_of(script) as server,
            serving(Door(server.url, plan, rows=door_rows, journal=path)) as url,
        ):
            two_turns(url, "two.0")
        assert script.bodies[0]["messages"][0]["content"].startswith("Get order 7. ")
        assert script.bodies[-1]["messages"][4] == {"role": "user", "content": "Refund it."}
        assert script.bodies[-1]["tools"] == TOOLS
        assert [line.skipped for line in journal.read_exchanges(path)] == [None, None, reason, reason]
    script = Script(chat_reply([PAY]))
    asked = wire.first(next(row for row in found if row.id == "own__two.2::clean"), "fc")
    with (
        server_of(script) as server,
        serving(Door(server.url, plan, rows=found, journal=tmp_path / "j")) as url,
        Client(url) as client,
    ):
        client.post("two.2.0", {"messages": asked.messages, "tools": asked.tools})
    assert journal.read_exchanges(tmp_path / "j")[0].row == "own__two.2::CD"
    assert script.bodies[0]["messages"] == wire.first(second, "fc").messages


def test_another_request_under_a_cases_session_passes_and_is_noted(tmp_path: Path) -> None:
    found = rows(tmp_path, "CD")
    script = Script(chat_reply([], "A title"))
    plan = Plan(bench="own", types=("CD",))
    with (
        server_of(script) as server,
        serving(Door(server.url, plan, rows=found, journal=tmp_path / "j")) as url,
        Client(url) as client,
    ):
        title = [{"role": "user", "content": "Give this conversation a title."}]
        asked = (
            ("refund-17.0", {"messages": title}),
            ("refund-17.0", {"messages": title, "tools": TOOLS}),
            ("nobody.0", {"messages": HISTORY, "tools": TOOLS}),
        )
        for session, body in asked:
            assert client.post(session, body)[0] == 200
    assert script.bodies == [body for _, body in asked]
    assert [line.skipped for line in journal.read_exchanges(tmp_path / "j")] == [
        "tools_are_not_the_cases",
        "request_is_not_the_cases",
        "unknown_case",
    ]
    assert summary(journal.read_exchanges(tmp_path / "j")).other_tools == {}  # one request of it had them


@pytest.mark.parametrize(("requests", "named"), [(1, {"CD": 1}), (2, {})])
def test_a_session_that_never_lists_a_tool_of_its_case_is_named(
    tmp_path: Path, requests: int, named: dict[str, int]
) -> None:
    plan, found = Plan(bench="own", types=("CD",)), rows(tmp_path, "CD")
    other = {"type": "function", "function": {"name": "fly", "parameters": {}}}
    with (
        server_of(Script(chat_reply([], "Hi"))) as server,
        serving(Door(server.url, plan, rows=found, journal=tmp_path / "j")) as url,
        Client(url) as client,
    ):
        for tools in ([other], [other, *TOOLS])[:requests]:
            assert client.post("refund-17.0", {"messages": HISTORY, "tools": tools})[0] == 200
    assert summary(journal.read_exchanges(tmp_path / "j")).other_tools == named


SESSIONS = Sessions(Journal(None))


def called(door: McpDoor, tool: str) -> Json:
    """What becomes of a call at the door of a server that has this tool alone."""

    async def lists(_: Json) -> Json:
        return {"result": {"tools": [{"name": tool, "inputSchema": {"type": "object"}}]}}

    request = {"id": 1, "method": "tools/call", "params": {"name": tool}}
    return asyncio.run(McpCalls(door, Session("refund-17", 0)).prepared(request, lists))


def test_a_fault_or_type_for_tools_that_no_server_has_is_an_error_once_all_have_been_asked(
    tmp_path: Path,
) -> None:
    """The tool that the plan is about may be the second server's, which a client lists later, or never."""
    found = rows(tmp_path, "same_name_A")
    fault = Fault(kind="transient_timeout", at=(1,), tools=("refund",))
    plans = {
        "unknown tool 'refund'": Plan(faults=(fault,)),
        "session refund-17.0 gets same_name_A, which is for": Plan(bench="own", types=("same_name_A",)),
    }
    for said, plan in plans.items():
        for has in ("fly", "refund"):
            scenes = Scenes(plan, found if plan.bench else ())
            scenes.unlisted |= {"first", "second"}
            first, second = (McpDoor(by, plan, False, scenes, SESSIONS) for by in ("first", "second"))
            assert isinstance(called(first, "walk"), Pending)
            own, again = called(second, has), called(first, "walk")
            if has == "refund":
                assert isinstance(own, Pending) or "result" in own
                assert isinstance(again, Pending)
            else:
                assert said in own["error"]["message"] and said in again["error"]["message"]


def test_tools_that_two_servers_share_a_name_of(tmp_path: Path) -> None:
    """The row lists `crm:find` and `orders:find`; an agent registers them as its framework calls them."""
    schema = {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}
    listed = tuple(Tool(name, f"Looks in {name}.", schema) for name in ("crm:find", "orders:find"))
    clean = Sample(
        id="own__a::clean",
        clean_id="own__a",
        type_code="clean",
        source="own",
        category="calls",
        messages=(Message("user", "Find 7."),),
        tools=listed,
        golden_answers=((Call("orders:find", {"id": ["7"]}),),),
        output_format="tool_call_tags",
        gold_tool_index=1,
    )
    row = REGISTRY["CD"].perturb(clean, seeding.rng(1, "CD", "own__a"), Context())
    for names in (("crm_find", "orders_find"), ("crm_find", "find"), ("find", "find")):
        tools = [{"type": "function", "function": {"name": name, "parameters": schema}} for name in names]
        found = offer(tools, Scene("any", clean, row))
        came = next(one for one in found.offered if one.own is None)
        assert came.name == "orders_find_Budget"
        assert sorted(one.own for one in found.offered if one.own is not None) == sorted(names)


def test_a_session_becomes_cases(tmp_path: Path) -> None:
    script = Script(
        chat_reply([("get_order", '{"id": "7"}')]), chat_reply([], "It cost 9."), chat_reply([], "Bye.")
    )
    plan = Plan(types=("clean",), seed=1)
    path = tmp_path / "session.jsonl"
    with (
        server_of(script) as server,
        serving(Door(server.url, plan, journal=path)) as url,
        Client(url) as client,
    ):
        talk: list[Json] = [{"role": "user", "content": "What is order 7?"}]
        for _ in range(2):
            status, said = client.post("a.0", {"model": "m", "messages": talk, "tools": TOOLS})
            assert status == 200
            talk.append(json.loads(said)["choices"][0]["message"])
            talk += results(talk[-1], '{"total": 9}') if talk[-1].get("tool_calls") else []
        client.post(
            "a.0", {"model": "m", "messages": [*talk, {"role": "user", "content": "Thanks"}], "tools": TOOLS}
        )
        client.post("a.0", {"model": "m", "messages": [{"role": "user", "content": "Hello"}], "tools": TOOLS})
    made = api.import_cases([path], tmp_path / "out")
    assert isinstance(made, Imported)
    assert (made.cases, made.conversations, made.no_call, made.refused) == (2, 2, 1, ())
    first, second = read_cases(tmp_path / "out" / "cases.yaml").cases
    assert [one.name for one in first.turns[0].answers[0].calls] == ["get_order"]
    assert first.turns[0].results == {"get_order": ({"total": 9},)}
    assert (first.reviewed, second.turns[0].messages[-1]["content"]) == (False, "Hello")
    lines = journal.read_exchanges(path)
    assert [len(one.asked.messages) for one in lines if one.asked] == [1, 1, 1, 1]
    assert [one.asked.after for one in lines if one.asked] == [0, 1, 3, 0]
