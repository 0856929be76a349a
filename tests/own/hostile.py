"""Two hundred tool files and cases files, and a hundred lines of logs, as somebody careless or hostile would
bring them: by what is wrong with each, its bytes."""

import json
import random
from typing import Any

SECRET = "sk-test-4f9a0c7e2b8d61aa"
"""Stands in many of them: it must be in no output."""
EMAIL = "jane.doe@northwind-traders.com"
"""The same, in logs."""

TOOL: dict[str, Any] = {
    "name": "get_order",
    "description": f"Gets an order. Key {SECRET}.",
    "parameters": {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]},
}
CASES = f"""version: 1
tools: [tools.json]
cases:
- id: one
  request: What about order A-1? My key is {SECRET}.
  expect: [{{call: get_order, arguments: {{id: A-1}}}}]
"""


def _bytes(rng: random.Random, least: int, most: int, count: int) -> bytes:
    return bytes(rng.randrange(least, most) for _ in range(count))


def _cut(whole: bytes, rng: random.Random, times: int, spare: int = 0) -> dict[str, bytes]:
    return {f"cut at a place ({n})": whole[: rng.randrange(1, len(whole) - spare)] for n in range(times)}


def _deep(depths: tuple[int, ...], head: bytes = b"", key: bytes = b'{"a":') -> dict[str, bytes]:
    found = {f"{depth} lists deep": head + b"[" * depth + b"]" * depth for depth in depths}
    return found | {f"{depth} objects deep": key * depth + b"1" + b"}" * depth for depth in depths}


def tool_files() -> dict[str, bytes]:
    """Tool files."""
    whole, rng = json.dumps([TOOL]).encode(), random.Random(2)
    texts = ("null", "7", '"tools"', "[]", "{}", "[7]", "[null]", "[[]]", '{"tools": 7}', '{"tools": []}')
    figures = ("NaN", "Infinity", "-Infinity", "1e999", "9" * 5_000, "-" + "9" * 20_000)
    schemas: tuple[Any, ...] = (
        {"$ref": "#"},
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
        {"$ref": "https://example.com/schema.json"},
        {"$ref": "file:///etc/passwd"},
        {"$ref": "#/not/there"},
        {"$ref": 7},
        {"anyOf": 7},
        {"type": 7},
        {"type": ["object", 7]},
        {"type": "object", "properties": []},
        {"type": "object", "properties": {"a": 7}},
        {"type": "object", "required": "id"},
        {"type": "object", "required": [7]},
        [],
        "object",
    )
    values: dict[str, Any] = {
        **{f"parameters {json.dumps(one)[:40]}": [TOOL | {"parameters": one}] for one in schemas},
        **{f"the name {one!r}": [TOOL | {"name": one}] for one in ("", " ", 7, None, [], {})},
        "no name": [{"parameters": {}}],
        "a description that is a list": [TOOL | {"description": ["x"]}],
        "two schemas": [TOOL | {"input_schema": {}}],
        "a page that goes on": {"tools": [TOOL], "nextCursor": "x"},
        "an error of the server": {"error": {"message": f"no {SECRET}"}},
        "10,001 tools": [TOOL | {"name": f"t{n}"} for n in range(10_001)],
    }
    accented = json.dumps([TOOL | {"description": "é"}], ensure_ascii=False)
    found = {
        "empty": b"",
        "nothing but blanks": b" \n\t ",
        "ten megabytes": b"[" + b" " * 10_000_000 + b"]",
        **_deep((201, 1_000, 20_000)),
        **{f"{depth} lists that stay open": b"[" * depth for depth in (201, 1_000, 20_000)},
        **{f"is {text}": text.encode() for text in texts},
        **{code: accented.encode(code) for code in ("utf-16", "utf-16-le", "utf-32", "latin-1")},
        "a null character": whole.replace(b"Gets", b"Ge\0ts"),
        "binary": _bytes(random.Random(1), 0, 256, 2_000),
        "half of a surrogate pair": whole.replace(b"Gets", b"\\ud800"),
        "a key twice": b'[{"name": "a", "name": "b", "parameters": {}}]',
        **{f"the number {one[:12]}": whole.replace(b'"string"', one.encode()) for one in figures},
        **{what: json.dumps(value).encode() for what, value in values.items()},
        **_cut(whole, rng, 60),
    }
    for number in range(30):
        place = rng.randrange(len(whole))
        found[f"a byte of another kind ({number})"] = whole[:place] + b"\xff" + whole[place + 1 :]
    return found


REPLACED = {
    "no version": ("version: 1\n", ""),
    "a tab": ("  request", "\trequest"),
    "a tag of Python's": ("one\n", "!!python/object/apply:os.system [echo]\n"),
    "a tag": ("one\n", "!secret one\n"),
    "a merge key": ("- id: one", "- <<: {id: one}"),
    "an id like a path": ("id: one", "id: ../../etc/passwd"),
    "a long id": ("id: one", "id: " + "x" * 65),
    "tools elsewhere": ("tools.json", "/etc/passwd"),
    "tools that are a folder": ("tools.json", "."),
    "a name with a null character": ("[tools.json]", '["to\\0ols.json"]'),
    "an unknown tool": ("call: get_order", "call: get_ordr"),
    "an unknown parameter": ("{id: A-1}", "{nr: A-1}"),
    "a value of another type": ("{id: A-1}", "{id: 7}"),
    **{
        f"the matcher {matcher}": ("A-1}}", matcher + "}}")
        for matcher in (
            "{regex: '('}",
            "{regex: '(?=a)b'}",
            "{regex: 7}",
            "{number: x}",
            "{number: 1, tolerance: -1}",
            "{date: tomorrow}",
            "{one_of: []}",
            "{set: 7}",
            "{any: 7}",
            "{exact: .nan}",
            "{any: true, optional: 7}",
        )
    },
}
"""What is wrong with a cases file → what of `CASES` stands otherwise, and how."""


def cases_files() -> dict[str, bytes]:
    """The same of cases files; their tools are right."""
    whole = CASES.encode()
    aliases = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    aliases += [f"a{n}: &a{n} [" + ", ".join([f"*a{n - 1}"] * 9) + "]" for n in range(1, 12)]
    return {
        "empty": b"",
        "ten megabytes": b"#" * 10_000_000,
        "no mapping": b"- 1\n",
        "two documents": whole + b"---\n" + whole,
        "a key twice": whole + b"version: 1\n",
        "an anchor in itself": b"version: 1\na: &a [*a]\n",
        "aliases of aliases": "\n".join(aliases).encode(),
        **{f"{n} lists deep": b"version: " + b"[" * n + b"]" * n for n in (300, 20_000)},
        "an id twice": whole + whole.partition(b"cases:\n")[2],
        **{what: CASES.replace(old, new).encode() for what, (old, new) in REPLACED.items()},
        **_cut(whole, random.Random(3), 25, 60),
    }


# Logs as a crash, a careless exporter or an attacker leaves them.

LOGGED = {"name": "get_order", "description": "Gets an order.", "parameters": {"type": "object"}}
ASKED = {"role": "user", "content": f"Where is it? {SECRET} {EMAIL}"}
ANSWERED = {"role": "assistant", "content": f"Sent to {EMAIL}."}
GOOD: dict[str, Any] = {"messages": [ASKED, ANSWERED], "tools": [LOGGED]}


def called(arguments: Any = None, call_id: Any = "c1", name: Any = "get_order") -> dict[str, Any]:
    given = json.dumps({"key": SECRET, "mail": EMAIL}) if arguments is None else arguments
    call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": given}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def answer(content: Any = f"ok {EMAIL}", call_id: Any = "c1") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def line(*messages: Any, **more: Any) -> bytes:
    return json.dumps({"messages": list(messages), "tools": [LOGGED], **more}).encode()


def _wrong(what: str, values: tuple[Any, ...], around: Any) -> dict[str, bytes]:
    """Lines in which a part is each of some values that it cannot be."""
    return {f"{what} {json.dumps(value)[:22]}": around(value) for value in values}


def bad_lines() -> dict[str, bytes]:
    """Lines of which nothing can be read."""
    whole = json.dumps(GOOD).encode()
    spoken = (SECRET, "[{]", [SECRET], {"role": SECRET}, [{"role": "user", "parts": SECRET}])

    def span(name: str) -> Any:
        found = {"gen_ai.operation.name": "chat"}
        body = {"name": "chat", "traceId": "t"}
        return lambda value: json.dumps(body | {"attributes": found | {f"gen_ai.{name}": value}}).encode()

    return {
        **{f"cut after {share:.1%}": whole[: int(len(whole) * share)] for share in (0.1, 0.5, 0.9, 0.999)},
        "no JSON": f"INFO {SECRET} {EMAIL}".encode(),
        "a closing bracket more": whole + b"}",
        "a comma": whole + b",",
        "single quotes": whole.replace(b'"', b"'"),
        "a null character": whole.replace(b"Where", b"Whe\0re"),
        "binary": _bytes(random.Random(3), 128, 256, 900),
        "Latin-1": whole.replace(b"Where", "Où".encode("latin-1")),
        "UTF-16 without a mark": whole.decode().encode("utf-16-le").replace(b"\n", b""),
        "half a surrogate pair": whole.replace(b"Where", b"\\ud800"),
        **{
            f"twice the key {key[:8]}": f'{{"{key}": 1, "{key}": 2, "x": "{EMAIL}"}}'.encode()
            for key in ("messages", SECRET)
        },
        **{
            f"the number {figure[:10]}": f'{{"messages": [{figure}], "x": "{SECRET}"}}'.encode()
            for figure in ("NaN", "-Infinity", "1e999", "9" * 3_000)
        },
        **_deep((201, 5_000, 20_000), key=b'{"messages":'),
        "ten megabytes": b'{"messages": "' + SECRET.encode() + b" " * 10_000_000 + b'"}',
        **_wrong(
            "is",
            (SECRET, 7, None, True, {}, {"messages": SECRET}, {"messages": []}, {"messages": {}}, []),
            lambda value: json.dumps(value).encode(),
        ),
        **_wrong(
            "a message",
            (SECRET, None, [], {"role": SECRET}, {"role": 7}, {"content": SECRET}, {"role": ["user"]}),
            lambda entry: line(ASKED, entry),
        ),
        **_wrong(
            "content",
            (7, {"text": SECRET}, [SECRET], [{"type": SECRET}], [{"type": "text", "text": [SECRET]}]),
            lambda content: line({"role": "user", "content": content}),
        ),
        **_wrong(
            "tool_calls",
            (SECRET, {}, [SECRET], [{}], [{"function": SECRET}], [{"function": {"name": [SECRET]}}]),
            lambda calls: line(ASKED, {"role": "assistant", "tool_calls": calls}),
        ),
        "tools that are none": json.dumps(GOOD | {"tools": [{"name": SECRET, "parameters": 7}]}).encode(),
        **_wrong("a span's input", spoken, span("input.messages")),
        **_wrong("a span's output", spoken, span("output.messages")),
        "OTLP that is none": json.dumps({"resourceSpans": [SECRET]}).encode(),
    }


def odd_lines() -> dict[str, bytes]:
    """Lines that can be read, and make a case, one that is marked, or none."""
    image = [{"type": "image_url", "image_url": SECRET}]
    matchers = '{"key": {"any": true}, "mail": {"regex": "("}}'
    return {
        "arguments that are no JSON": line(ASKED, called(f"{{{SECRET} {EMAIL}"), answer()),
        "arguments that are a list": line(ASKED, called(json.dumps([SECRET, EMAIL])), answer()),
        "arguments of 300 levels": line(ASKED, called('{"a":' * 300 + "1" + "}" * 300), answer()),
        "a result without a call": line(ASKED, answer(), ANSWERED),
        "a result of another call": line(ASKED, called(), answer(call_id="c9"), ANSWERED),
        "two results of one call": line(ASKED, called(), answer(), answer(), ANSWERED, ASKED, called()),
        "no result": line(ASKED, called(), ANSWERED, ASKED, called()),
        "no ids": line(ASKED, called(call_id=None), answer(call_id=None), ANSWERED),
        "an unknown tool": line(ASKED, called(name=f"tool {SECRET}"), answer()),
        "a key of 2,000 characters": line(ASKED, called(json.dumps({"k" * 2_000: EMAIL})), answer()),
        "a key that is an e-mail": line(
            ASKED, called(json.dumps({EMAIL: 1})), answer(json.dumps({EMAIL: 2}))
        ),
        "an id that is a path": line(ASKED, called(), answer(), id=f"../../{SECRET}\n\x1b[2J"),
        "control characters": line(
            {"role": "user", "content": f"\x1b[2J\u202e\u2028\x85\x7f{EMAIL}"}, ANSWERED
        ),
        "YAML in a text": line({"role": "user", "content": f"a\n- id: x\n  request: {EMAIL}\n#"}, ANSWERED),
        "matchers in arguments": line(ASKED, called(matchers), answer()),
        "an image": line({"role": "user", "content": image}, ANSWERED),
        "a system message in the middle": line(ASKED, {"role": "system", "content": EMAIL}, ASKED, called()),
        "no user": line(called(), answer()),
        "an empty request": line({"role": "user", "content": ""}, called(), answer()),
        "a long whole number": line(ASKED, called(json.dumps({"n": 10**900})), answer()),
    }
