"""Logs as conversations: chat messages, Responses items, GenAI spans, and what of them cannot be read."""

import json
from pathlib import Path
from typing import Any

import pytest

from robustbench_tc.own.logs.log_files import Log, read_log

from ..refusals import refuses

TOOL = {
    "type": "function",
    "function": {"name": "get_order", "description": "Gets one.", "parameters": {"type": "object"}},
}
CHAT: list[dict[str, Any]] = [
    {"role": "developer", "content": "Be brief."},
    {"role": "user", "content": [{"type": "text", "text": "Where is "}, {"type": "text", "text": "A-1?"}]},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": "c1",
                "type": "function",
                "function": {"name": "get_order", "arguments": '{"id": "A-1"}'},
            },
            {"id": "c2", "type": "function", "function": {"name": "get_order", "arguments": "{broken"}},
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": '{"status": "sent"}'},
    {"role": "tool", "tool_call_id": "c2", "content": "error"},
    {"role": "assistant", "content": "Sent."},
]


def written(path: Path, *lines: Any) -> Path:
    path.write_bytes(
        b"".join((one if isinstance(one, bytes) else json.dumps(one).encode()) + b"\n" for one in lines)
    )
    return path


def read(tmp_path: Path, *lines: Any) -> Log:
    return read_log(written(tmp_path / "log.jsonl", *lines))


def test_a_conversation_of_chat_messages(tmp_path: Path) -> None:
    log = read(tmp_path, {"messages": CHAT, "tools": [TOOL, {"type": "web_search"}], "id": "s-1"})
    (one,) = log.conversations
    assert (one.id, one.line, log.refused) == ("s-1", 1, ())
    assert one.tools is not None
    assert [tool.name for tool in one.tools] == ["get_order"]
    assert [message.role for message in one.messages] == [
        "system", "user", "assistant", "tool", "tool", "assistant",
    ]  # fmt: skip
    assert one.messages[1].text == "Where is A-1?"
    first, second = one.messages[2].calls
    assert (first.id, first.name, first.arguments) == ("c1", "get_order", {"id": "A-1"})
    assert (second.arguments, second.text) == (None, "{broken")
    assert (one.messages[3].call_id, one.messages[3].text) == ("c1", '{"status": "sent"}')


def attribute(key: str, value: Any) -> dict[str, Any]:
    return {"key": key, "value": {"stringValue": value if isinstance(value, str) else json.dumps(value)}}


def span(start: int, operation: str, **found: Any) -> dict[str, Any]:
    listed = [attribute("gen_ai." + key.replace("__", "."), value) for key, value in found.items()]
    return {
        "traceId": "t1", "spanId": str(start), "name": operation, "startTimeUnixNano": str(start),
        "attributes": [attribute("gen_ai.operation.name", operation), *listed],
    }  # fmt: skip


def text(role: str, said: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "content": said}]}


ASKED = text("user", "Where is A-1?")
CALLED = {
    "role": "assistant",
    "parts": [
        {"type": "reasoning", "content": "I look."},
        {"type": "tool_call", "id": "c1", "name": "get_order", "arguments": {"id": "A-1"}},
        {"type": "tool_call", "id": "c2", "name": "get_order", "arguments": "{broken"},
    ],
    "finish_reason": "tool_call",
}
ANSWERED = {
    "role": "tool",
    "parts": [
        {"type": "tool_call_response", "id": "c1", "response": '{"status": "sent"}'},
        {"type": "tool_call_response", "id": "c2", "response": "error"},
    ],
}
SYSTEM = [{"type": "text", "content": "Be brief."}]
DEFINED = [{"type": "function", "name": "get_order", "description": "Gets one.", "parameters": {}}]


def otlp(*spans: dict[str, Any]) -> dict[str, Any]:
    return {
        "resourceSpans": [
            {"resource": {"attributes": []}, "scopeSpans": [{"scope": {}, "spans": list(spans)}]}
        ]
    }


def trace() -> list[dict[str, Any]]:
    given = {"system_instructions": SYSTEM, "tool__definitions": DEFINED}
    return [
        span(1, "invoke_agent", input__messages=[ASKED], output__messages=[text("assistant", "Sent.")]),
        span(2, "chat", input__messages=[ASKED], output__messages=[CALLED], **given),
        span(
            3, "execute_tool",
            tool__name="get_order", tool__call__id="c1", tool__call__result='{"status": "sent"}',
        ),
        {"traceId": "t1", "name": "GET", "attributes": [attribute("http.request.method", "GET")]},
        span(
            4, "chat",
            input__messages=[ASKED, CALLED, ANSWERED], output__messages=[text("assistant", "Sent.")], **given,
        ),
    ]  # fmt: skip


def test_spans_of_a_trace_are_one_conversation(tmp_path: Path) -> None:
    whole = trace()
    log = read(tmp_path, otlp(*whole[:2]), otlp(*whole[2:]))
    (one,) = log.conversations
    assert one.messages == read(tmp_path, {"messages": CHAT}).conversations[0].messages
    assert (one.id, one.line, log.left["OpenTelemetry spans: records in which no message was recorded"]) == (
        "t1",
        2,
        1,
    )
    assert one.tools is not None


def test_spans_may_be_a_list_or_one_span_a_line_in_any_order(tmp_path: Path) -> None:
    wanted = read(tmp_path, otlp(*trace())).conversations[0].messages
    as_lines = read(tmp_path, *reversed(trace()))
    assert [one.messages for one in as_lines.conversations] == [wanted]
    (tmp_path / "list.json").write_text(json.dumps(trace(), indent=2))
    assert [one.messages for one in read_log(tmp_path / "list.json").conversations] == [wanted]


def test_a_span_of_a_tool_fills_in_the_result(tmp_path: Path) -> None:
    one = read(tmp_path, *trace()[:3]).conversations[0]
    assert [message.role for message in one.messages] == ["system", "user", "assistant", "tool"]
    assert one.messages[-1].text == '{"status": "sent"}'


def test_spans_of_tools_alone_are_calls_and_their_results(tmp_path: Path) -> None:
    failed = span(5, "execute_tool", tool__name="get_order", tool__call__id="c9")
    failed |= {"status": {"code": 2, "message": "gone"}}
    failed["attributes"].append(attribute("error.type", "timeout"))
    one = read(tmp_path, trace()[2], failed).conversations[0]
    assert [message.role for message in one.messages] == ["assistant", "tool", "assistant", "tool"]
    assert [one.messages[1].text, one.messages[3].text] == ['{"status": "sent"}', "timeout: gone"]


def test_spans_without_content_say_what_to_do(tmp_path: Path) -> None:
    refuses("no messages: a span: records in which no message was recorded", read, tmp_path, span(1, "chat"))


def test_what_is_no_text_is_said(tmp_path: Path) -> None:
    parts = [{"type": "text", "text": "What is it?"}, {"type": "image_url", "image_url": {"url": "data:"}}]
    one = read(tmp_path, {"messages": [{"role": "user", "content": parts}]}).conversations[0]
    assert (one.messages[0].text, one.messages[0].left_out) == ("What is it?", ("image",))


SECRET = "sk-live-4f9a0c7e2b8d61"
GOOD = {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}]}


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (f'{{"messages": "{SECRET}'.encode(), "not JSON"),
        (SECRET.encode(), "not JSON"),
        (b"\xff\xfe" + SECRET.encode(), "not UTF-8"),
        (f'{{"{SECRET}": 1, "{SECRET}": 2}}'.encode(), "a key is given twice in one object"),
        (b"[" * 300 + b"]" * 300, "nested deeper than 200 levels"),
        (b"[" * 20_000, "nested deeper than 200 levels"),
        (json.dumps({"messages": [], "x": SECRET}).encode(), "'messages' is not a list with messages in it"),
        (json.dumps({"messages": [{"role": SECRET}]}).encode(), "message 1: 'role' is not one of"),
        (json.dumps({"messages": [SECRET]}).encode(), "message 1: is not an object"),
        (json.dumps({"messages": [{"role": "user", "content": {"a": SECRET}}]}).encode(), "'content' is"),
        (json.dumps({"messages": [{"role": "user", "content": [{"type": SECRET}]}]}).encode(), "of a kind"),
        (json.dumps(SECRET).encode(), "neither chat messages nor spans"),
        (json.dumps({"messages": [{"role": "user", "content": "\ud800"}]}).encode(), "surrogate"),
        (b'{"messages": [NaN]}', "chat messages: message 1: is not an object"),
        (b'{"a": ' + b"9" * 2_000 + b"}", "more than 1,000 digits"),
        (b" " * 8_000_001, "at most 8,000,000 a line"),
    ],
)  # fmt: skip
def test_a_bad_line_is_named_and_the_rest_is_read(line: bytes, why: str, tmp_path: Path) -> None:
    log = read(tmp_path, GOOD, line, GOOD)
    assert [one.line for one in log.conversations] == [1, 3]
    (refused,) = log.refused
    assert refused.line == 2
    assert why in refused.why
    assert SECRET not in refused.why
    assert SECRET not in refuses(".", read, tmp_path, line)


def test_a_file_that_is_one_text_over_many_lines(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    path.write_text(json.dumps([GOOD, GOOD], indent=1))
    assert [one.line for one in read_log(path).conversations] == [2, 14]
    path.write_text(json.dumps(GOOD["messages"], indent=1))
    assert [len(one.messages) for one in read_log(path).conversations] == [2]
    path.write_text(json.dumps(GOOD, indent=1) + "\n" + json.dumps(GOOD, indent=1))
    assert len(read_log(path).conversations) == 2
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(GOOD).encode())
    assert len(read_log(path).conversations) == 1


@pytest.mark.parametrize("data", [b"", b"\n\n", b"[]", json.dumps(GOOD).encode("utf-16")])
def test_a_file_with_nothing_in_it_is_one_line(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(data)
    assert str(path) in refuses(".", read_log, path)
