"""A door that is started again within a conversation, with the journal of before."""

import json
from pathlib import Path
from typing import Any

import pytest

from robustbench_tc.proxy import journal
from robustbench_tc.proxy.door import Door
from robustbench_tc.proxy.relay import serving

from . import test_responses as items
from .agents import Client
from .scripted import chat_reply
from .test_door import ASKED, BUDGET, CHEAP, GET, PAY, TOOLS, Script, ask, calls, door, results
from .wire import serving as server_of

Json = Any


@pytest.mark.parametrize("stream", [False, True])
def test_what_the_agent_never_saw_is_put_back(stream: bool, tmp_path: Path) -> None:
    """The request reads as it would have without the restart, and so does what follows."""

    def played(path: Path, restart: bool) -> list[Json]:
        script = Script(chat_reply([CHEAP]), chat_reply([CHEAP, GET], "See."), chat_reply([], "Done."))
        with door(script, BUDGET, path) as (client, server):
            first = ask(client, ASKED, stream=stream)["choices"][0]["message"]
            talk = [*ASKED, first, *results(first)]
            if not restart:
                ask(client, talk, stream=stream)
            else:
                with serving(Door(server.url, BUDGET, journal=path)) as url, Client(url) as again:
                    ask(again, talk, stream=stream)
        return script.bodies

    assert played(tmp_path / "a", restart=True) == played(tmp_path / "b", restart=False)
    body = played(tmp_path / "c", restart=True)[-1]
    assert [calls(one) for one in body["messages"] if one["role"] == "assistant"] == [[CHEAP], [CHEAP, GET]]


def test_items_are_put_back_with_their_reasoning(tmp_path: Path) -> None:
    script = items.Script(([CHEAP, GET], None), ([], "Done."))
    body = {"model": "m", "input": "Refund order 7.", "tools": items.FLAT}
    with server_of(script) as server:
        with serving(Door(server.url, BUDGET, journal=tmp_path / "j")) as url, Client(url) as client:
            output = json.loads(client.post("case.0", body, "/responses")[1])["output"]
        talk = [{"role": "user", "content": "Refund order 7."}, *output, *items.results(output)]
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


def test_what_is_too_long_for_the_journal_is_refused_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "j"
    long = chat_reply([CHEAP, PAY], "x" * (journal.MOST_TEXT + 1))
    with door(Script(long, chat_reply([], "Done.")), BUDGET, path) as (client, server):
        first = ask(client, ASKED)["choices"][0]["message"]
        talk = [*ASKED, first, *results(first)]
        ask(client, talk)  # the same door has it in memory
        with serving(Door(server.url, BUDGET, journal=path)) as url, Client(url) as again:
            status, said = again.post("case.0", {"messages": talk, "tools": TOOLS})
            assert status == 400
            message = json.loads(said)["error"]["message"]
            assert "the door was started again within this conversation" in message and "\n" not in message
            # Begun again, it goes on.
            first = ask(again, ASKED)["choices"][0]["message"]
    assert journal.read(path)[0].too_long


def test_a_journal_that_was_edited_ends_no_door(tmp_path: Path) -> None:
    path = tmp_path / "j"
    with door(Script(chat_reply([CHEAP, PAY])), BUDGET, path) as (client, _):
        ask(client, ASKED)
    line = json.loads(path.read_text())
    wrong: list[Json] = [{"key": "zz"}, {"kept": 3}, {"kept": {"before": 3}}, {"key": 7}, {"key": ""}]
    path.write_text("".join(json.dumps(line | one) + "\n" for one in [{}, *wrong]))
    with door(Script(chat_reply([PAY])), BUDGET, path) as (client, _):
        assert calls(ask(client, ASKED)["choices"][0]["message"]) == [PAY]
