"""Logs as a crash, a careless exporter or an attacker leaves them."""

import json
import random
from collections.abc import Iterator
from typing import Any

SECRET = "sk-test-4f9a0c7e2b8d61aa"
"""Stands in all of them: it must be in no output."""
EMAIL = "jane.doe@northwind-traders.com"
"""The same."""

TOOL = {"name": "get_order", "description": "Gets an order.", "parameters": {"type": "object"}}
ASKED = {"role": "user", "content": f"Where is it? {SECRET} {EMAIL}"}
ANSWERED = {"role": "assistant", "content": f"Sent to {EMAIL}."}
GOOD: dict[str, Any] = {"messages": [ASKED, ANSWERED], "tools": [TOOL]}


def called(arguments: Any = None, call_id: Any = "c1", name: Any = "get_order") -> dict[str, Any]:
    given = json.dumps({"key": SECRET, "mail": EMAIL}) if arguments is None else arguments
    call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": given}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def answer(content: Any = f"ok {EMAIL}", call_id: Any = "c1") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def line(*messages: Any, **more: Any) -> bytes:
    return json.dumps({"messages": list(messages), "tools": [TOOL], **more}).encode()


def span(**found: Any) -> dict[str, Any]:
    attributes = {"gen_ai.operation.name": "chat", **{f"gen_ai.{key}": one for key, one in found.items()}}
    return {"name": "chat", "traceId": "t", "attributes": attributes}


def bad_lines() -> Iterator[tuple[str, bytes]]:
    """Lines of which nothing can be read."""
    whole = json.dumps(GOOD).encode()
    for share in (0.1, 0.5, 0.9, 0.999):
        yield f"cut after {share:.1%}", whole[: int(len(whole) * share)]
    yield "no JSON", f"INFO {SECRET} {EMAIL}".encode()
    value: Any
    yield "a closing bracket more", whole + b"}"
    yield "a comma", whole + b","
    yield "single quotes", whole.replace(b'"', b"'")
    yield "a null character", whole.replace(b"Where", b"Whe\0re")
    yield "binary", bytes(random.Random(3).randrange(128, 256) for _ in range(900))
    yield "Latin-1", whole.replace(b"Where", "Où".encode("latin-1"))
    yield "UTF-16 without a mark", whole.decode().encode("utf-16-le").replace(b"\n", b"")
    yield "half a surrogate pair", whole.replace(b"Where", b"\\ud800")
    for key in ("messages", SECRET):
        yield f"twice the key {key[:8]}", f'{{"{key}": 1, "{key}": 2, "x": "{EMAIL}"}}'.encode()
    for figure in ("NaN", "-Infinity", "1e999", "9" * 3_000):
        yield f"the number {figure[:10]}", f'{{"messages": [{figure}], "x": "{SECRET}"}}'.encode()
    for depth in (201, 5_000, 20_000):
        yield f"{depth} lists deep", b"[" * depth + b"]" * depth
        yield f"{depth} objects deep", b'{"messages":' * depth + b"1" + b"}" * depth
    yield "ten megabytes", b'{"messages": "' + SECRET.encode() + b" " * 10_000_000 + b'"}'
    for value in (SECRET, 7, None, True, {}, {"messages": SECRET}, {"messages": []}, {"messages": {}}, []):
        yield f"is {json.dumps(value)[:14]}", json.dumps(value).encode()
    entry: Any
    for entry in (SECRET, None, [], {"role": SECRET}, {"role": 7}, {"content": SECRET}, {"role": ["user"]}):
        yield f"a message {json.dumps(entry)[:22]}", line(ASKED, entry)
    for content in (7, {"text": SECRET}, [SECRET], [{"type": SECRET}], [{"type": "text", "text": [SECRET]}]):
        yield f"content {json.dumps(content)[:22]}", line({"role": "user", "content": content})
    calls: Any
    for calls in (SECRET, {}, [SECRET], [{}], [{"function": SECRET}], [{"function": {"name": [SECRET]}}]):
        yield f"tool_calls {json.dumps(calls)[:22]}", line(ASKED, {"role": "assistant", "tool_calls": calls})
    yield "tools that are none", json.dumps(GOOD | {"tools": [{"name": SECRET, "parameters": 7}]}).encode()
    for name in ("input.messages", "output.messages"):
        for value in (SECRET, "[{]", [SECRET], {"role": SECRET}, [{"role": "user", "parts": SECRET}]):
            yield f"a span's {name} {json.dumps(value)[:20]}", json.dumps(span(**{name: value})).encode()
    yield "OTLP that is none", json.dumps({"resourceSpans": [SECRET]}).encode()


def odd_lines() -> Iterator[tuple[str, bytes]]:
    """Lines that can be read, and make a case, one that is marked, or none."""
    yield "arguments that are no JSON", line(ASKED, called(f"{{{SECRET} {EMAIL}"), answer())
    yield "arguments that are a list", line(ASKED, called(json.dumps([SECRET, EMAIL])), answer())
    yield "arguments of 300 levels", line(ASKED, called('{"a":' * 300 + "1" + "}" * 300), answer())
    yield "a result without a call", line(ASKED, answer(), ANSWERED)
    yield "a result of another call", line(ASKED, called(), answer(call_id="c9"), ANSWERED)
    yield "two results of one call", line(ASKED, called(), answer(), answer(), ANSWERED, ASKED, called())
    yield "no result", line(ASKED, called(), ANSWERED, ASKED, called())
    yield "no ids", line(ASKED, called(call_id=None), answer(call_id=None), ANSWERED)
    yield "an unknown tool", line(ASKED, called(name=f"tool {SECRET}"), answer())
    yield "a key of 2,000 characters", line(ASKED, called(json.dumps({"k" * 2_000: EMAIL})), answer())
    yield (
        "a key that is an e-mail",
        line(ASKED, called(json.dumps({EMAIL: 1})), answer(json.dumps({EMAIL: 2}))),
    )
    yield "an id that is a path", line(ASKED, called(), answer(), id=f"../../{SECRET}\n\x1b[2J")
    yield (
        "control characters",
        line({"role": "user", "content": f"\x1b[2J\u202e\u2028\x85\x7f{EMAIL}"}, ANSWERED),
    )
    yield "YAML in a text", line({"role": "user", "content": f"a\n- id: x\n  request: {EMAIL}\n#"}, ANSWERED)
    yield (
        "matchers in arguments",
        line(ASKED, called('{"key": {"any": true}, "mail": {"regex": "("}}'), answer()),
    )
    yield (
        "an image",
        line({"role": "user", "content": [{"type": "image_url", "image_url": SECRET}]}, ANSWERED),
    )
    yield "a system message in the middle", line(ASKED, {"role": "system", "content": EMAIL}, ASKED, called())
    yield "no user", line(called(), answer())
    yield "an empty request", line({"role": "user", "content": ""}, called(), answer())
    yield "a long whole number", line(ASKED, called(json.dumps({"n": 10**900})), answer())
