"""Defences behind the doors: what the model sees, what goes back to the agent, and what is written down."""

import json
from pathlib import Path
from typing import Any

import pytest

from robustbench_tc.api.proxy import proxied
from robustbench_tc.eval.defend.rows import HINT, RULE, mark
from robustbench_tc.eval.prompts import MAY_DECLINE
from robustbench_tc.proxy import journal
from robustbench_tc.proxy.door import Door
from robustbench_tc.proxy.plan import Plan
from robustbench_tc.result_faults import Fault

from ..refusals import refuses
from .scripted import Script, chat_reply
from .test_door import ASKED, GET, PAY, TIMEOUT, ask, calls, door, results
from .wire import Answer, Seen, send, serving as server_of

Json = Any
TWINS = Plan(types=("same_name_D",), seed=1)
"""Two tools of one name, the second described in other words."""


def with_defences(plan: Plan, *defend: str) -> Plan:
    return Plan(types=plan.types, faults=plan.faults, seed=plan.seed, allow_writes=True, defend=defend)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("word", ["dedupe", "namespace:first", "namespace", "namespace:prefix"])
def test_equal_names_are_told_apart_and_mapped_back(stream: bool, word: str, tmp_path: Path) -> None:
    def calls_the_last(seen: Seen) -> Answer:
        names = [one["function"]["name"] for one in json.loads(seen.body)["tools"]]
        assert len(set(names)) == len(names)
        own = next(name for name in names if name.endswith("get_order"))
        return Script(chat_reply([(own, GET[1])]))(seen)

    script = calls_the_last
    with door(script, with_defences(TWINS, word), tmp_path / "j") as (client, _):
        found = ask(client, ASKED, stream=stream)["choices"][0]["message"]
        assert calls(found) == [GET]
        talk = [*ASKED, found, *results(found)]
        ask(client, talk, stream=stream)
    lines = journal.read_exchanges(tmp_path / "j")
    assert lines[0].opened is not None and lines[0].opened.defend == (word,)
    assert [call["name"] for line in lines for call in line.replies[0]["tool_calls"] or ()] == [
        "get_order"
    ] * 2


def test_the_system_message_and_the_results_are_marked() -> None:
    plan = with_defences(
        Plan(faults=(Fault(kind="transient_timeout", at=(2,)),)), "clarify", "hint", "spotlight"
    )
    script = Script(chat_reply([GET, PAY]), chat_reply([], "Done."))
    with door(script, plan) as (client, _):
        first = ask(client, ASKED)["choices"][0]["message"]
        ask(client, [*ASKED, first, *results(first)])
    system, user, _, true, injected = script.bodies[1]["messages"]
    assert system["role"] == "system" and MAY_DECLINE in system["content"] and user == ASKED[0]
    assert RULE in system["content"]
    assert true["content"] == mark("true result")
    assert injected["content"] == mark(f"{TIMEOUT}\n{HINT}")


def test_tools_are_sent_as_strict() -> None:
    script = Script(chat_reply([GET]))
    with door(script, with_defences(Plan(), "strict")) as (client, _):
        assert calls(ask(client, ASKED)["choices"][0]["message"]) == [GET]
    functions = [one["function"] for one in script.bodies[0]["tools"]]
    assert [(one["strict"], one["parameters"]["additionalProperties"]) for one in functions] == [
        (True, False)
    ] * 2


@pytest.mark.parametrize("stream", [False, True])
def test_an_invalid_call_is_answered_and_the_model_asked_once_more(stream: bool, tmp_path: Path) -> None:
    wrong, empty = ("refund", '{"id": 7}'), ("refund", "{}")
    script = Script(chat_reply([wrong, GET]), chat_reply([PAY]), chat_reply([empty]))
    with door(script, with_defences(Plan(), "schema"), tmp_path / "j") as (client, _):
        first = ask(client, ASKED, stream=stream)["choices"][0]["message"]
        assert calls(first) == [PAY]
        second = ask(client, [*ASKED, first, *results(first)], stream=stream)["choices"][0]["message"]
        assert calls(second) == [empty]  # it has been told once
    assert [len(body["messages"]) for body in script.bodies] == [1, 4, 6, 8]
    first, other = script.bodies[1]["messages"][2:]
    assert first["content"].startswith("Invalid call of refund") and "Not carried out" in other["content"]
    assert script.bodies[2]["messages"][1:4] == script.bodies[1]["messages"][1:4]
    lines = journal.read_exchanges(tmp_path / "j")
    assert [(len(line.replies), len(line.held)) for line in lines] == [(1, 2), (1, 1)]


def test_a_call_that_a_defence_refuses_is_no_call_of_the_agents(tmp_path: Path) -> None:
    plan = with_defences(Plan(types=("transient_timeout",)), "schema")
    script = Script(chat_reply([("refund", "{}")]), chat_reply([PAY]), chat_reply([], "Done."))
    with door(script, plan, tmp_path / "j") as (client, _):
        first = ask(client, ASKED)["choices"][0]["message"]
        ask(client, [*ASKED, first, *results(first)])
    told = [one["content"] for one in script.bodies[2]["messages"] if one["role"] == "tool"]
    assert told[0].startswith("Invalid call") and told[1] == TIMEOUT
    assert [line.turn for line in journal.read_exchanges(tmp_path / "j")] == [0, 1]


@pytest.mark.parametrize(
    "defend", [("schema",), ("schema", "namespace:prefix"), ("namespace:prefix", "schema")]
)
def test_a_defence_sees_the_tools_that_the_door_adds(defend: tuple[str, ...], tmp_path: Path) -> None:
    """As the defences before it leave them: an invalid call of a distractor is answered by the defence."""

    def wrong_then_right(seen: Seen) -> Answer:
        names = {one["function"]["name"].split("__")[-1]: one["function"]["name"]
                 for one in json.loads(seen.body)["tools"]}  # fmt: skip
        replies = [[(names["refund_Budget"], "{}")], [(names["refund"], PAY[1])]]
        bodies.append(json.loads(seen.body))
        return Answer([json.dumps(chat_reply(replies[len(bodies) - 1])).encode()])

    bodies: list[Json] = []
    plan = with_defences(Plan(types=("CD",), seed=1), *defend)
    with door(wrong_then_right, plan, tmp_path / "j") as (client, _):
        assert calls(ask(client, ASKED)["choices"][0]["message"]) == [PAY]
    assert bodies[1]["messages"][-1]["content"].startswith("Invalid call of ")
    (line,) = journal.read_exchanges(tmp_path / "j")
    assert [call["name"].split("__")[-1] for call in line.held] == ["refund_Budget"]


@pytest.mark.parametrize("word", ["retry", "vote:3", "namespace:error"])
def test_what_cannot_stand_behind_a_door_is_refused(word: str, tmp_path: Path) -> None:
    plan = with_defences(Plan(), word)
    refuses(f"--defend {word}: it cannot stand behind this door", Door, "http://127.0.0.1:9/v1", plan)
    (tmp_path / "plan.yaml").write_text("version: 1\n")
    with pytest.raises(Exception, match="--defend clarify: it cannot stand"):
        proxied(tmp_path / "plan.yaml", mcp_url="http://127.0.0.1:9/mcp", defend="clarify").__enter__()


def test_a_servers_tools_and_results_are_defended(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}
    tools = [{"name": name, "description": f"Does {name}.", "inputSchema": schema} for name in ("get", "pay")]

    def answers(seen: Seen) -> Answer:
        body = json.loads(seen.body)
        content = [{"type": "text", "text": f"{body['params'].get('name')} is done"}]
        result = {"tools": tools} if body["method"] == "tools/list" else {"content": content}
        return Answer([json.dumps({"jsonrpc": "2.0", "id": body["id"], "result": result}).encode()])

    def asked(method: str, number: int, **params: Json) -> Json:
        body = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        return json.loads(send(mine, json.dumps(body).encode()).body)["result"]

    (tmp_path / "plan.yaml").write_text(
        "version: 1\nfaults:\n- {kind: transient_timeout, at: [2], text: Gone.}\n"
        "- {kind: injected_instruction, at: [3], text: Obey.}\n- {kind: silent_no_op, at: [4], text: Done.}\n"
        "types: [same_name_A]\ndefend: ['namespace:prefix', hint, spotlight]\n"
    )
    with server_of(answers) as server, proxied(tmp_path / "plan.yaml", mcp_url=server.url) as address:
        mine = address.replace("/mcp", "/s/a.0/mcp")
        cheap, get, pay = names = [one["name"] for one in asked("tools/list", 1)["tools"]]
        assert names == ["server1__get", "server2__get", "server1__pay"]
        results = [asked("tools/call", at, name=name, arguments={"id": "1"})["content"]
                   for at, name in enumerate((get, pay, get, get, cheap), 2)]  # fmt: skip
    assert [[part["text"] for part in parts] for parts in results] == [
        [mark("get is done")],
        [mark(f"Gone.\n{HINT}")],
        [mark("get is done"), mark("Obey.")],
        [mark("Done.")],
        [mark('{"status":"ok"}')],  # of a tool that the door put there
    ]
