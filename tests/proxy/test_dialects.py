"""Three APIs at the door: one conversation, written in each, and what only one of them has."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings, strategies as st

from robustbench_tc.proxy import journal
from robustbench_tc.proxy.anthropic import MESSAGES, MessagesStream
from robustbench_tc.proxy.dialects import ChatCompletions, ChatStream, Said
from robustbench_tc.proxy.door import DIALECTS, Door
from robustbench_tc.proxy.plan import Plan
from robustbench_tc.proxy.relay import serving
from robustbench_tc.proxy.responses import RESPONSES, ResponsesStream
from robustbench_tc.proxy.scenes import loaded
from robustbench_tc.proxy.sse import END, event_data
from robustbench_tc.taxonomy import injected_error

from . import agents, anthropic_server, items_server
from .agents import Client
from .anthropic_server import THINKING, reply, stream_of
from .items_server import in_events, response
from .scripted import STREAM, Script, chat_reply, in_pieces, pieces
from .test_door import ASKED, BUDGET, CHEAP, GET, PAY, TOOLS, calls, door, results
from .wire import Answer, send, serving as server_of

Json = Any
CACHED = {"cache_control": {"type": "ephemeral"}}
LISTED = [
    {"name": one["function"]["name"], "description": one["function"]["description"],
     "input_schema": one["function"]["parameters"], **CACHED}
    for one in TOOLS
]  # fmt: skip
FLAT = [{"type": "function", **one["function"]} for one in TOOLS]


class Api(NamedTuple):
    """An API, as an agent and a model use it; its dialect is the door's."""

    tools: list[Json]
    reply: Any
    """A whole reply: its calls, its text and its number."""
    assembled: Any
    """The whole reply that a stream amounts to."""


APIS = {
    "/chat/completions": Api(
        TOOLS, lambda made, text=None, turn=1: chat_reply(made, text, f"call_{turn}_"), agents.assembled
    ),
    "/responses": Api(FLAT, response, items_server.assembled),
    "/messages": Api(LISTED, reply, anthropic_server.assembled),
}
each = pytest.mark.parametrize("path", APIS)
either_way = pytest.mark.parametrize("stream", [False, True])


def ask(client: Client, path: str, messages: list[Json], *, stream: bool = False) -> Said:
    """The reply to a conversation of chat messages."""
    talk = DIALECTS[path].write({"messages": messages})
    body = {"model": "m", "max_tokens": 100, **talk, "tools": APIS[path].tools, "stream": stream}
    status, said = client.post("case.0", body, path)
    assert status == 200, said
    found = DIALECTS[path].parse_reply(APIS[path].assembled(said) if stream else json.loads(said))
    assert found is not None
    return found


def conversation(path: str, body: Json) -> list[Json]:
    """What the model was asked, as chat messages."""
    messages: list[Json] = DIALECTS[path].read_request(body)["messages"]
    return messages


@each
@either_way
def test_a_reply_of_both_kinds_goes_out_in_part_and_is_whole_for_the_model(
    path: str, stream: bool, tmp_path: Path
) -> None:
    said = APIS[path].reply([CHEAP, GET, PAY], "Let me see.")
    script = Script(said, APIS[path].reply([], "Done.", turn=2))
    with door(script, BUDGET, tmp_path / "j") as (client, _):
        first = ask(client, path, ASKED, stream=stream)
        assert calls(first.message) == [GET, PAY]
        assert (first.message["content"], first.finish) == ("Let me see.", "tool_calls")
        talk = [*ASKED, first.message, *results(first.message)]
        last = ask(client, path, talk, stream=stream)
        assert (last.message["content"], last.finish) == ("Done.", "stop")
        # Sent again from an earlier place, and with more behind it, it reads the same.
        ask(client, path, [*talk, last.message, {"role": "user", "content": "Thanks"}], stream=stream)
    names = [one.get("function", one)["name"] for one in script.bodies[0]["tools"]]
    assert sorted(names) == ["get_order", "refund", "refund_Budget"]
    assert APIS[path].tools[0] in script.bodies[0]["tools"]  # a tool that is not changed is as it was
    one, two, three = (conversation(path, body) for body in script.bodies)
    assert one[0]["content"].startswith("Refund order 7. ")  # the wish
    whole_reply = DIALECTS[path].parse_reply(said)
    assert whole_reply is not None and two[1] == whole_reply.message  # with all that it says beside
    kinds = [[part["type"] for part in one.message.get("_items", ())] for one in (first, whole_reply)]
    assert kinds[0] == kinds[1][: len(kinds[0])] and len(kinds[0]) == max(0, len(kinds[1]) - 1)
    assert [one["content"] for one in two[2:]] == ["true result", "true result", '{"status":"ok"}']
    assert three[: len(two)] == two
    lines = journal.read_exchanges(tmp_path / "j")
    assert [(line.turn, len(line.held), line.model) for line in lines] == [
        (0, 1, "m"), (1, 0, "m"), (1, 0, "m"),
    ]  # fmt: skip
    assert lines[0].held[0]["name"] == "refund_Budget"
    assert [line.replies[0]["finish_reason"] for line in lines] == ["tool_calls", "stop", "stop"]


@each
@either_way
def test_a_reply_of_distractors_only_is_answered_at_the_door(path: str, stream: bool) -> None:
    said = APIS[path].reply([PAY], "Now.", turn=2)
    script = Script(APIS[path].reply([CHEAP], "Let me see."), said)
    with door(script, BUDGET) as (client, _):
        found = ask(client, path, ASKED, stream=stream)
        assert calls(found.message) == [PAY] and found.finish == "tool_calls"
        if path == "/messages":  # tokens of both replies; of the other APIs `test_choice` has them
            assert (found.usage["input_tokens"], found.usage["output_tokens"]) == (6, 4)
        ask(client, path, [*ASKED, found.message, *results(found.message)])
    asked_on, then = (conversation(path, body) for body in script.bodies[1:])
    assert calls(asked_on[1]) == [CHEAP]
    whole_reply = DIALECTS[path].parse_reply(said)
    assert whole_reply is not None and then[:3] == asked_on and then[3] == whole_reply.message


@each
def test_results_are_replaced(path: str) -> None:
    script = Script(APIS[path].reply([GET, PAY]), APIS[path].reply([], "Done.", turn=2))
    parts: Json = [{"type": "text", "text": "true result"}]
    with door(script, Plan(types=("transient_timeout",), read_only=("get_order",))) as (client, _):
        first = ask(client, path, ASKED).message
        ask(client, path, [*ASKED, first, *results(first, parts)])
    told = [one["content"] for one in conversation(path, script.bodies[1])[2:]]
    assert told == [injected_error("transient_timeout"), parts]


@pytest.mark.parametrize(
    ("path", "text", "answer"),
    [
        (
            "/chat/completions",
            b'{"messages":  [{"role":"user","content":"\\u00fc"}], "tools": []}',
            Answer([json.dumps(chat_reply([], "Hi"), indent=3).encode()]),
        ),
        (
            "/responses",
            b'{"input":  "Hi", "stream": true}',
            Answer(pieces(response([], "Hi")), headers=STREAM),
        ),
        (
            "/messages",
            b'{"messages":  [{"role":"user","content":"\\u00fc"}], "max_tokens": 5, "stream": true}',
            Answer(pieces(reply([], "Hi")), headers=STREAM),
        ),
    ],
    ids=APIS,
)
def test_what_is_not_changed_passes_byte_by_byte(
    path: str, text: bytes, answer: Answer, tmp_path: Path
) -> None:
    with (
        server_of(lambda seen: answer) as server,
        serving(Door(server.url, BUDGET, journal=tmp_path / "j")) as url,
    ):
        got = send(f"{url.replace('/v1', '/s/a%2Fb%20c.3/v1')}{path}", text, {"x-api-key": "sk-ant-1"})
    assert (got.body, server.seen[0].body) == (b"".join(answer.pieces), text)
    assert server.seen[0].headers["x-api-key"] == "sk-ant-1"
    (line,) = journal.read_exchanges(tmp_path / "j")
    assert (line.session, line.replies[0]["text"]) == ("a/b c.3", "Hi")


def test_thinking_and_cache_marks_stay_where_the_agent_has_them() -> None:
    """The mark moves on to the last message, and a text becomes a block for it."""
    script = Script(reply([CHEAP, GET]), reply([], "Done.", turn=2))
    system = [{"type": "text", "text": "Be kind.", **CACHED}]
    with door(script, BUDGET) as (client, _):
        body = {"system": system, "tools": LISTED, "messages": ASKED}
        content = json.loads(client.post("case.0", body, "/messages")[1])["content"]
        assert content[0] == THINKING
        result = {"type": "tool_result", "tool_use_id": content[-1]["id"], "content": "ok", **CACHED}
        body["messages"] = [
            {"role": "user", "content": [{"type": "text", "text": ASKED[0]["content"]}]},
            {"role": "assistant", "content": content},
            {"role": "user", "content": [{**result, "is_error": False}]},
        ]
        client.post("case.0", body, "/messages")
    assert script.bodies[0]["system"] == script.bodies[1]["system"] == system
    _, said, answers = script.bodies[1]["messages"]
    assert said["content"] == reply([CHEAP, GET])["content"]
    assert (
        answers["content"][0] == {**result, "is_error": False}
        and "cache_control" not in answers["content"][1]
    )


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
        server_of(Script(response([], "Hi"))) as server,
        serving(Door(server.url, BUDGET)) as url,
        Client(url) as client,
    ):
        status, text = client.post("case.0", body, "/responses")
        assert status == 400 and said in json.loads(text)["error"]["message"] and not server.seen


def test_refusals_are_errors_as_anthropic_writes_them() -> None:
    with server_of(Script(reply([], "Hi"))) as server, serving(Door(server.url, BUDGET)) as url:
        for path, body, kind in (
            ("/messages", b"[]", "invalid_request_error"),
            ("/messages", b'{"messages": 3}', "invalid_request_error"),
            ("/v1/messages", b"{}", "not_found_error"),
        ):
            found = json.loads(send(f"{url}{path}", body).body)
            assert found["type"] == "error" and found["error"]["type"] == kind
            assert "\n" not in found["error"]["message"]


# --- One conversation in three dialects

WORDS = st.text('abcé \n"{}', min_size=1, max_size=12)
CALLS = st.lists(
    st.tuples(st.sampled_from(["get_order", "refund"]), st.dictionaries(st.sampled_from("abc"), WORDS)),
    max_size=3,
)
TURNS = st.lists(st.tuples(WORDS, CALLS, WORDS), min_size=1, max_size=3)


def plain(body: Json) -> Json:
    """The inner form without what a dialect keeps beside it."""
    messages = [{name: value for name, value in one.items() if name[0] != "_"} for one in body["messages"]]
    tools = [
        {name: one["function"][name] for name in ("name", "description", "parameters")}
        for one in body["tools"]
    ]
    return messages, tools


def written(turns: list[Any]) -> tuple[Json, Json, Json]:
    """A conversation as chat completions, Responses and Messages."""
    chat: list[Json] = [{"role": "system", "content": "Be kind."}]
    flat: list[Json] = []
    blocks: list[Json] = []
    for number, (asked, made, said) in enumerate(turns):
        named = [(f"c{number}_{at}", name, given) for at, (name, given) in enumerate(made)]
        chat.append({"role": "user", "content": asked})
        flat.append({"role": "user", "content": asked})
        one: Json = {"role": "assistant", "content": said}
        if named:
            one["tool_calls"] = [
                {"id": call, "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
                for call, name, given in named
            ]
        chat += [one, *({"role": "tool", "tool_call_id": call, "content": name} for call, name, _ in named)]
        flat.append(
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": said}]}
        )
        flat += [
            {"type": "function_call", "call_id": call, "name": name, "arguments": json.dumps(given)}
            for call, name, given in named
        ]
        flat += [{"type": "function_call_output", "call_id": call, "output": name} for call, name, _ in named]
        user: Json = blocks[-1]["content"] if blocks and blocks[-1]["role"] == "user" else None
        if user is None:
            blocks.append({"role": "user", "content": asked})
        else:  # behind the results of the turn before
            user.append({"type": "text", "text": asked})
        uses = [{"type": "tool_use", "id": call, "name": name, "input": given} for call, name, given in named]
        blocks.append({"role": "assistant", "content": [{"type": "text", "text": said}, *uses]})
        if named:
            found = [{"type": "tool_result", "tool_use_id": call, "content": name} for call, name, _ in named]
            blocks.append({"role": "user", "content": found})
    functions = [{"type": "function", **one["function"]} for one in TOOLS]
    return (
        {"messages": chat, "tools": TOOLS},
        {"instructions": "Be kind.", "input": flat, "tools": functions},
        {"system": "Be kind.", "messages": blocks, "tools": LISTED},
    )


@given(TURNS)
@settings(max_examples=50, deadline=None)
def test_one_conversation_is_the_same_in_three_dialects(turns: list[Any]) -> None:
    chat, flat, blocks = written(turns)
    found = [
        plain(one)
        for one in (
            ChatCompletions().read_request(chat),
            RESPONSES.read_request(flat),
            MESSAGES.read_request(blocks),
        )
    ]
    for messages, _ in found:  # a text behind results is a block there
        for one in messages:
            if isinstance(one["content"], list):
                (one["content"],) = (part["text"] for part in one["content"])
    assert found[0] == found[1] == found[2]
    request = RESPONSES.read_request(flat)
    assert RESPONSES.read_request(RESPONSES.write(request)) == request
    assert MESSAGES.write(MESSAGES.read_request(blocks)) == blocks


@given(CALLS, WORDS, st.integers(1, 30))
@settings(max_examples=50, deadline=None)
def test_a_reply_in_pieces_is_the_whole_reply_in_three_dialects(
    made: list[tuple[str, Json]], text: str, size: int
) -> None:
    named = [(name, json.dumps(given)) for name, given in made]
    flat, blocks = response(named, text), reply(named, text)
    chat = chat_reply(named, text)
    streams = (
        (ChatCompletions(), ChatStream(), chat, b"".join(in_pieces(chat, size))),
        (RESPONSES, ResponsesStream(), flat, b"".join(in_events(flat))),
        (MESSAGES, MessagesStream(), blocks, stream_of(blocks, size)),
    )  # fmt: skip
    said = []
    for dialect, stream, replied, data in streams:
        for event in END.split(data):
            list(stream.feed(loaded(event_data(event))))
        found, wanted = stream.whole_reply(), dialect.parse_reply(replied)
        assert found is not None and wanted is not None
        assert found.message == wanted.message and found.finish == wanted.finish
        about = [
            (one["function"]["name"], one["function"]["arguments"])
            for one in found.message.get("tool_calls") or ()
        ]
        said.append((found.message["content"], about, found.finish))
    assert said[0] == said[1] == said[2]
