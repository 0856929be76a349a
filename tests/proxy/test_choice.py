"""`tool_choice` in the model's names, tokens of several replies as one, and a door that starts again."""

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from robustbench_tc.proxy import journal
from robustbench_tc.proxy.door import Door
from robustbench_tc.proxy.plan import Plan
from robustbench_tc.proxy.relay import serving
from robustbench_tc.schema import Call, Change, Sample

from .agents import Client
from .items_server import response
from .scripted import Script, chat_reply
from .test_dialects import FLAT
from .test_door import ASKED, BUDGET, CHEAP, GET, PAY, TOOLS, ask, calls, door, results
from .test_own import rows
from .wire import serving as server_of

Json = Any


def renamed(folder: Path) -> tuple[Sample, ...]:
    """The case `refund-17` and a row in which `refund` has another name."""
    clean = next(row for row in rows(folder) if row.clean_id == "own__refund-17")
    tools = (clean.tools[0], msgspec.structs.replace(clean.tools[1], name="pay_back"))
    row = msgspec.structs.replace(
        clean,
        id=f"{clean.clean_id}::CD",
        type_code="CD",
        tools=tools,
        golden_answers=((Call("pay_back", clean.golden_answers[0][0].parameters),),),
        changes=(Change(path="/tools/1/name", before="refund", after="pay_back"),),
    )
    return clean, row


def named(*names: str, nested: bool = True) -> list[Json]:
    if nested:
        return [{"type": "function", "function": {"name": name}} for name in names]
    return [{"type": "function", "name": name} for name in names]


CHAT: list[tuple[Json, Json]] = [
    ("required", "required"),
    (named("refund")[0], named("pay_back")[0]),
    (named("get_order")[0], named("get_order")[0]),
    (
        {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": named("refund", "get_order")}},
        {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": named("pay_back", "get_order")}},
    ),
    ({"type": "allowed_tools", "allowed_tools": {"tools": [3, {}]}},) * 2,
    ({"type": "custom", "custom": {"name": "refund"}},) * 2,
]
RESPONSES: list[tuple[Json, Json]] = [
    (named("refund", nested=False)[0], named("pay_back", nested=False)[0]),
    (
        {"type": "allowed_tools", "mode": "required", "tools": named("refund", "get_order", nested=False)},
        {"type": "allowed_tools", "mode": "required", "tools": named("pay_back", "get_order", nested=False)},
    ),
    ({"type": "mcp", "server_label": "x", "name": "refund"},) * 2,
]


@pytest.mark.parametrize(
    ("endpoint", "choices"), [("/chat/completions", CHAT), ("/responses", RESPONSES)], ids=["chat", "items"]
)
def test_a_choice_of_tools_is_in_the_models_names(
    endpoint: str, choices: list[tuple[Json, Json]], tmp_path: Path
) -> None:
    found = renamed(tmp_path)
    flat = endpoint == "/responses"
    script = Script(response([], "Hi") if flat else chat_reply([], "Hi"))
    talk = [{"role": "user", "content": found[0].messages[-1].content}]
    body = {"input": talk, "tools": FLAT} if flat else {"messages": talk, "tools": TOOLS}
    with (
        server_of(script) as server,
        serving(Door(server.url, Plan(bench="own", types=("CD",)), rows=found)) as url,
        Client(url) as client,
    ):
        for choice, _ in choices:
            status, said = client.post("refund-17.0", {**body, "tool_choice": choice}, endpoint)
            assert status == 200, said
    bodies = [json.loads(seen.body) for seen in server.seen]
    assert [one["tool_choice"] for one in bodies] == [wanted for _, wanted in choices]
    names = [one.get("function", one)["name"] for one in bodies[0]["tools"]]
    assert sorted(names) == ["get_order", "pay_back"]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("endpoint", ["/chat/completions", "/responses"])
def test_tokens_of_several_replies_are_added_up(endpoint: str, stream: bool) -> None:
    script = Script(chat_reply([CHEAP]), chat_reply([CHEAP]), chat_reply([PAY]))
    body: Json = {"messages": ASKED, "tools": TOOLS, "stream": stream}
    if endpoint == "/responses":
        script = Script(response([CHEAP]), response([CHEAP], turn=2), response([PAY], turn=3))
        body = {"input": "Refund order 7.", "tools": FLAT, "stream": stream}
    with door(script, BUDGET) as (client, server):
        status, said = client.post("case.0", body, endpoint)
    assert (status, len(server.seen)) == (200, 3)
    events = re.findall(r"^data: ({.*)$", said.decode(), re.MULTILINE) if stream else [said]
    told = [found.get("response", found).get("usage") for found in map(json.loads, events)]
    names = ("input_tokens", "output_tokens") if "/r" in endpoint else ("prompt_tokens", "completion_tokens")
    assert [one for one in told if one][-1] == {names[0]: 9, names[1]: 6, "total_tokens": 15}


# --- A door that is started again within a conversation, with the journal of before


@pytest.mark.parametrize("stream", [False, True])
def test_what_the_agent_never_saw_is_put_back(
    stream: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The request reads as it would have without the restart, however long, and so does what follows."""
    monkeypatch.setattr(journal, "MOST_TEXT", 4_000)
    text = "See." * 1_001

    def played(path: Path, restart: bool) -> list[Json]:
        script = Script(chat_reply([CHEAP]), chat_reply([CHEAP, GET], text), chat_reply([], "Done."))
        with door(script, BUDGET, path) as (client, server):
            first = ask(client, ASKED, stream=stream)["choices"][0]["message"]
            talk = [*ASKED, first, *results(first)]
            if not restart:
                ask(client, talk, stream=stream)
            else:
                with serving(Door(server.url, BUDGET, journal=path)) as url, Client(url) as again:
                    ask(again, talk, stream=stream)
        return script.bodies

    bodies = played(tmp_path / "a", restart=True)
    assert bodies == played(tmp_path / "b", restart=False)
    assert [calls(one) for one in bodies[-1]["messages"] if one["role"] == "assistant"] == [
        [CHEAP],
        [CHEAP, GET],
    ]


def test_items_are_put_back_with_their_reasoning(tmp_path: Path) -> None:
    script = Script(response([CHEAP, GET]), response([], "Done.", turn=2))
    body = {"model": "m", "input": "Refund order 7.", "tools": FLAT}
    with server_of(script) as server:
        with serving(Door(server.url, BUDGET, journal=tmp_path / "j")) as url, Client(url) as client:
            output = json.loads(client.post("case.0", body, "/responses")[1])["output"]
        talk = [
            {"role": "user", "content": "Refund order 7."},
            *output,
            *(
                {"type": "function_call_output", "call_id": one["call_id"], "output": "true result"}
                for one in output
                if one["type"] == "function_call"
            ),
        ]
        sent = []
        for _ in range(2):
            with serving(Door(server.url, BUDGET, journal=tmp_path / "j")) as url, Client(url) as client:
                assert client.post("case.0", {**body, "input": talk}, "/responses")[0] == 200
            sent.append(json.loads(server.seen[-1].body)["input"])
    assert sent[0] == sent[1]
    kinds = [one.get("type", "message") for one in sent[0]]
    assert kinds.count("function_call") == kinds.count("function_call_output") == 2
    assert "reasoning" in kinds


def test_a_reply_that_took_the_place_of_a_changed_one(tmp_path: Path) -> None:
    script = Script(chat_reply([CHEAP, PAY]), chat_reply([PAY]), chat_reply([], "Done."))
    with door(script, BUDGET, tmp_path / "j") as (client, server):
        ask(client, ASKED)
        second = ask(client, ASKED)["choices"][0]["message"]
        with serving(Door(server.url, BUDGET, journal=tmp_path / "j")) as url, Client(url) as again:
            ask(again, [*ASKED, second, *results(second)])
    assert [calls(one) for one in script.bodies[-1]["messages"] if one["role"] == "assistant"] == [[PAY]]


def test_a_journal_that_was_edited_ends_no_door(tmp_path: Path) -> None:
    path = tmp_path / "j"
    with door(Script(chat_reply([CHEAP, PAY])), BUDGET, path) as (client, _):
        ask(client, ASKED)
    line = json.loads(path.read_text())
    wrong: list[Json] = [{"key": "zz"}, {"kept": 3}, {"kept": {"before": 3}}, {"key": 7}, {"key": ""}]
    path.write_text("".join(json.dumps(line | one) + "\n" for one in [{}, *wrong]))
    with door(Script(chat_reply([PAY])), BUDGET, path) as (client, _):
        assert calls(ask(client, ASKED)["choices"][0]["message"]) == [PAY]
