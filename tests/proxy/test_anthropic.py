"""The door for Anthropic's Messages API, and one conversation in all three dialects."""

import http.client
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from robustbench_tc.proxy import journal
from robustbench_tc.proxy.anthropic import MESSAGES, MessagesStream
from robustbench_tc.proxy.dialects import ChatCompletions, ChatStream
from robustbench_tc.proxy.door import Door
from robustbench_tc.proxy.plan import Plan
from robustbench_tc.proxy.relay import serving
from robustbench_tc.proxy.responses import RESPONSES, ResponsesStream
from robustbench_tc.proxy.scenes import loaded
from robustbench_tc.proxy.sse import END, event_data
from robustbench_tc.taxonomy import injected_error

from . import test_responses as items
from .agents import Client
from .anthropic_server import THINKING, Script, assembled, reply, stream_of
from .scripted import chat_reply, in_pieces
from .test_door import BUDGET, CHEAP, GET, PAY, TOOLS
from .wire import Answer, send, serving as server_of

Json = Any
CACHED = {"cache_control": {"type": "ephemeral"}}
LISTED = [
    {"name": one["function"]["name"], "description": one["function"]["description"],
     "input_schema": one["function"]["parameters"], **CACHED}
    for one in TOOLS
]  # fmt: skip
ASKED = [{"role": "user", "content": "Refund order 7."}]


def ask(client: Client, messages: list[Json], *, stream: bool = False, **more: Json) -> Json:
    body = {"model": "claude-test", "max_tokens": 100, "messages": messages, "tools": LISTED,
            "system": [{"type": "text", "text": "Be kind.", **CACHED}], "stream": stream, **more}  # fmt: skip
    status, said = client.post("case.0", body, "/messages")
    assert status == 200, said
    return assembled(said) if stream else json.loads(said)


def calls(content: list[Json]) -> list[tuple[str, str]]:
    return [(one["name"], json.dumps(one["input"])) for one in content if one["type"] == "tool_use"]


def results(content: list[Json], text: Json = "true result", **more: Json) -> Json:
    found = [
        {"type": "tool_result", "tool_use_id": one["id"], "content": text, **more}
        for one in content
        if one["type"] == "tool_use"
    ]
    return {"role": "user", "content": found}


@pytest.mark.parametrize("stream", [False, True])
def test_a_reply_of_both_kinds_goes_out_in_part_and_is_whole_for_the_model(
    stream: bool, tmp_path: Path
) -> None:
    script = Script(([CHEAP, GET, PAY], "Let me see."), ([], "Done."))
    with (
        server_of(script) as server,
        serving(Door(server.url, BUDGET, journal=tmp_path / "j")) as url,
        Client(url) as client,
    ):
        first = ask(client, ASKED, stream=stream)
        assert calls(first["content"]) == [GET, PAY] and first["stop_reason"] == "tool_use"
        assert first["content"][:2] == [THINKING, {"type": "text", "text": "Let me see."}]
        # The cache mark moves on to the last message, and a text becomes a block for it.
        said = {"role": "assistant", "content": first["content"]}
        talk = [{"role": "user", "content": [{"type": "text", "text": "Refund order 7."}]}, said]
        last = ask(client, [*talk, results(first["content"], **CACHED)], stream=stream)
        assert last["content"][1]["text"] == "Done." and last["stop_reason"] == "end_turn"
        talk += [results(first["content"]), {"role": "assistant", "content": last["content"]}]
        thanks = {"role": "user", "content": [{"type": "text", "text": "Thanks", **CACHED}]}
        ask(client, [*talk, thanks], stream=stream)
    one, two, three = script.bodies
    assert sorted(tool["name"] for tool in one["tools"]) == ["get_order", "refund", "refund_Budget"]
    assert LISTED[0] in one["tools"] and one["system"] == [{"type": "text", "text": "Be kind.", **CACHED}]
    assert one["messages"][0]["content"].startswith("Refund order 7. ")
    reply_of_model, answers = two["messages"][1:]
    assert reply_of_model["content"] == reply([CHEAP, GET, PAY], "Let me see.")["content"]
    assert [block["content"] for block in answers["content"]] == [
        "true result",
        "true result",
        '{"status":"ok"}',
    ]
    assert [CACHED.items() <= block.items() for block in answers["content"]] == [True, True, False]
    assert three["messages"][1] == reply_of_model
    assert [block["content"] for block in three["messages"][2]["content"]][2] == '{"status":"ok"}'
    lines = journal.read_exchanges(tmp_path / "j")
    assert [(line.turn, len(line.held), line.model) for line in lines] == [
        (0, 1, "claude-test"),
        (1, 0, "claude-test"),
        (1, 0, "claude-test"),
    ]
    assert [line.replies[0]["finish_reason"] for line in lines] == ["tool_calls", "stop", "stop"]


@pytest.mark.parametrize("stream", [False, True])
def test_a_reply_of_distractors_only_is_answered_at_the_door(stream: bool) -> None:
    script = Script(([CHEAP], "Let me see."), ([PAY], None))
    with server_of(script) as server, serving(Door(server.url, BUDGET)) as url, Client(url) as client:
        found = ask(client, ASKED, stream=stream)
        assert calls(found["content"]) == [PAY] and found["stop_reason"] == "tool_use"
        assert (found["usage"]["input_tokens"], found["usage"]["output_tokens"]) == (6, 4)
        ask(client, [*ASKED, {"role": "assistant", "content": found["content"]}, results(found["content"])])
    asked_on, then = script.bodies[1]["messages"], script.bodies[2]["messages"]
    assert calls(asked_on[1]["content"]) == [CHEAP]
    assert then[:3] == asked_on and then[3]["content"] == reply([PAY], turn=2)["content"]


def test_results_are_replaced_and_choices_are_in_the_models_names() -> None:
    script = Script(([GET, PAY], None), ([], "Done."))
    plan = Plan(types=("transient_timeout",), read_only=("get_order",))
    with server_of(script) as server, serving(Door(server.url, plan)) as url, Client(url) as client:
        first = ask(client, ASKED)["content"]
        parts = results(first, [{"type": "text", "text": "true result"}], is_error=False)
        ask(client, [*ASKED, {"role": "assistant", "content": first}, parts])
    said = [block["content"] for block in script.bodies[1]["messages"][2]["content"]]
    assert said == [injected_error("transient_timeout"), [{"type": "text", "text": "true result"}]]


def test_what_is_not_changed_passes_byte_by_byte() -> None:
    text = b'{"messages":  [{"role":"user","content":"\\u00fc"}], "max_tokens": 5, "stream": true}'
    script = Script(([], "Hi"))
    with server_of(script) as server, serving(Door(server.url, BUDGET)) as url:
        place, key = (
            url.replace("/v1", "/s/a.0/v1"),
            {"x-api-key": "sk-ant-1", "anthropic-version": "2023-06-01"},
        )
        assert send(f"{place}/messages", text, key).body == stream_of(reply([], "Hi"))
        assert send(f"{place}/messages/count_tokens", text, key).body == b'{"input_tokens": 7}'
        assert send(f"{place}/models", method="GET").status == 200
    assert [seen.body for seen in script.seen] == [text, text, b""]
    assert script.seen[0].headers["x-api-key"] == "sk-ant-1"


def test_refusals_are_errors_as_anthropic_writes_them() -> None:
    with server_of(Script(([], "Hi"))) as server, serving(Door(server.url, BUDGET)) as url:
        for path, body, kind in (
            ("/messages", b"[]", "invalid_request_error"),
            ("/messages", b'{"messages": 3}', "invalid_request_error"),
            ("/v1/messages", b"{}", "not_found_error"),
        ):
            found = json.loads(send(f"{url}{path}", body).body)
            assert found["type"] == "error" and found["error"]["type"] == kind
            assert "\n" not in found["error"]["message"]


@pytest.mark.parametrize("stream", [False, True])
def test_nonsense_ends_without_a_traceback(stream: bool, caplog: pytest.LogCaptureFixture) -> None:
    values: list[Json] = [
        None, 3, {}, {"content": 3}, {"content": [3, {}, {"type": "tool_use"}, {"type": 3, "text": 3}]},
        {"content": [{"type": "tool_use", "id": 3, "name": "refund", "input": "x"}], "stop_reason": 3},
        {"type": "message_start", "message": 3}, {"type": "message_start", "message": {"usage": 3}},
        {"type": "content_block_start", "index": 0, "content_block": 3},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "citations_delta", "citation": 3}},
        {"type": "content_block_delta", "index": -1, "delta": {"partial_json": "["}},
        {"type": "content_block_stop", "index": "a"}, {"type": "message_delta", "delta": 3},
        {"type": "message_delta", "delta": {}, "usage": 3}, {"type": "error", "error": {"message": "no"}},
    ]  # fmt: skip
    answers = [Answer([json.dumps(one).encode()]) for one in values]
    events = [b"data: " + json.dumps(one).encode() + b"\n\n" for one in values]
    answers.append(Answer(events, headers={"Content-Type": "text/event-stream"}))
    contents: list[Json] = [None, 3, [], [3, {}], [{"type": "tool_result"}], [{"type": "tool_use"}]]
    now = [answers[0]]
    with server_of(lambda seen: now[0]) as server, serving(Door(server.url, BUDGET)) as url:
        for answer in answers:
            now[0] = answer
            for content in contents:
                talk = [
                    *ASKED,
                    {"role": "assistant", "content": content},
                    {"role": "user", "content": content},
                ]
                body = {"messages": talk, "tools": [*LISTED, 3, {"type": "bash_20250124", "name": "bash"}],
                        "system": content, "stream": stream}  # fmt: skip
                ended = suppress(ConnectionError, http.client.HTTPException)  # all that a stream can
                with Client(url) as client, ended:
                    assert client.post("case.0", body, "/messages")[0] in (200, 502), (answer, content)
    assert not [record for record in caplog.records if record.exc_info]


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
    flat, blocks = items.response(named, text), reply(named, text)
    chat = chat_reply(named, text)
    streams = (
        (ChatCompletions(), ChatStream(), chat, b"".join(in_pieces(chat, size))),
        (RESPONSES, ResponsesStream(), flat, b"".join(items.in_events(flat))),
        (MESSAGES, MessagesStream(), blocks, stream_of(blocks, size)),
    )  # fmt: skip
    said = []
    for dialect, stream, whole, data in streams:
        for event in END.split(data):
            list(stream.feed(loaded(event_data(event))))
        found, wanted = stream.whole_reply(), dialect.parse_reply(whole)
        assert found is not None and wanted is not None
        assert found.message == wanted.message and found.finish == wanted.finish
        about = [
            (one["function"]["name"], one["function"]["arguments"])
            for one in found.message.get("tool_calls") or ()
        ]
        said.append((found.message["content"], about, found.finish))
    assert said[0] == said[1] == said[2]
