"""Two hundred tool files and cases files as somebody careless or hostile would bring them."""

import json
import random
from collections.abc import Iterator
from typing import Any

SECRET = "sk-test-4f9a0c7e2b8d61"
"""Stands in some of them: it must be in no output."""

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


def tool_files() -> Iterator[tuple[str, bytes]]:
    """(what is wrong, the bytes) of tool files."""
    whole = json.dumps([TOOL]).encode()
    yield "empty", b""
    yield "nothing but blanks", b" \n\t "
    yield "ten megabytes", b"[" + b" " * 10_000_000 + b"]"
    for depth in (201, 1_000, 20_000):
        yield f"{depth} lists deep", b"[" * depth + b"]" * depth
        yield f"{depth} objects deep", b'{"a":' * depth + b"1" + b"}" * depth
        yield f"{depth} lists that stay open", b"[" * depth
    for text in (
        "null",
        "7",
        '"tools"',
        "[]",
        "{}",
        "[7]",
        "[null]",
        "[[]]",
        '{"tools": 7}',
        '{"tools": []}',
    ):
        yield f"is {text}", text.encode()
    for encoding in ("utf-16", "utf-16-le", "utf-32", "latin-1"):
        yield encoding, json.dumps([TOOL | {"description": "é"}], ensure_ascii=False).encode(encoding)
    yield "a null character", whole.replace(b"Gets", b"Ge\0ts")
    yield "binary", bytes(random.Random(1).randrange(256) for _ in range(2_000))
    yield "half of a surrogate pair", whole.replace(b"Gets", b"\\ud800")
    yield "a key twice", b'[{"name": "a", "name": "b", "parameters": {}}]'
    for figure in ("NaN", "Infinity", "-Infinity", "1e999", "9" * 5_000, "-" + "9" * 20_000):
        yield f"the number {figure[:12]}", whole.replace(b'"string"', figure.encode())
    body: Any
    for body in (
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
    ):
        yield f"parameters {json.dumps(body)[:40]}", json.dumps([TOOL | {"parameters": body}]).encode()
    wrong: Any
    for wrong in ("", " ", 7, None, [], {}):
        yield f"the name {wrong!r}", json.dumps([TOOL | {"name": wrong}]).encode()
    yield "no name", json.dumps([{"parameters": {}}]).encode()
    yield "a description that is a list", json.dumps([TOOL | {"description": ["x"]}]).encode()
    yield "two schemas", json.dumps([TOOL | {"input_schema": {}}]).encode()
    yield "a page that goes on", json.dumps({"tools": [TOOL], "nextCursor": "x"}).encode()
    yield "an error of the server", json.dumps({"error": {"message": f"no {SECRET}"}}).encode()
    yield "10,001 tools", json.dumps([TOOL | {"name": f"t{n}"} for n in range(10_001)]).encode()
    rng = random.Random(2)
    for number in range(60):
        yield f"cut at a place ({number})", whole[: rng.randrange(1, len(whole))]
    for number in range(30):
        place = rng.randrange(len(whole))
        yield f"a byte of another kind ({number})", whole[:place] + b"\xff" + whole[place + 1 :]


def cases_files() -> Iterator[tuple[str, bytes]]:
    """The same of cases files; their tools are right."""
    whole = CASES.encode()
    yield "empty", b""
    yield "ten megabytes", b"#" * 10_000_000
    yield "no mapping", b"- 1\n"
    yield "no version", whole.replace(b"version: 1\n", b"")
    yield "two documents", whole + b"---\n" + whole
    yield "a key twice", whole + b"version: 1\n"
    yield "a tab", whole.replace(b"  request", b"\trequest")
    yield "a tag of Python's", whole.replace(b"one\n", b"!!python/object/apply:os.system [echo]\n")
    yield "a tag", whole.replace(b"one\n", b"!secret one\n")
    yield "an anchor in itself", b"version: 1\na: &a [*a]\n"
    yield "a merge key", whole.replace(b"- id: one", b"- <<: {id: one}")
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [" + ", ".join([f"*a{n - 1}"] * 9) + "]" for n in range(1, 12)]
    yield "aliases of aliases", "\n".join(lines).encode()
    for depth in (300, 20_000):
        yield f"{depth} lists deep", b"version: " + b"[" * depth + b"]" * depth
    yield "an id like a path", whole.replace(b"id: one", b"id: ../../etc/passwd")
    yield "a long id", whole.replace(b"id: one", b"id: " + b"x" * 65)
    yield "an id twice", whole + whole.partition(b"cases:\n")[2]
    yield "tools elsewhere", whole.replace(b"tools.json", b"/etc/passwd")
    yield "tools that are a folder", whole.replace(b"tools.json", b".")
    yield "a name with a null character", whole.replace(b"[tools.json]", b'["to\\0ols.json"]')
    yield "an unknown tool", whole.replace(b"call: get_order", b"call: get_ordr")
    yield "an unknown parameter", whole.replace(b"{id: A-1}", b"{nr: A-1}")
    yield "a value of another type", whole.replace(b"{id: A-1}", b"{id: 7}")
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
    ):
        yield f"the matcher {matcher}", whole.replace(b"A-1}}", matcher.encode() + b"}}")
    rng = random.Random(3)
    for number in range(25):
        yield f"cut at a place ({number})", whole[: rng.randrange(1, len(whole) - 60)]
