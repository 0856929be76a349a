"""Tool files and cases files: what they become, and one line with file and line for what is wrong."""

import json
from pathlib import Path

import pytest

from robustbench_tc.eval.score.matchers import subschemas
from robustbench_tc.own.cases import CaseFile, OwnTool
from robustbench_tc.own.cases_file import read_cases
from robustbench_tc.own.tools import parse_tools, read_tools
from robustbench_tc.own.yaml import load
from robustbench_tc.schema import Call

from ..refusals import refuses

REFUND = {
    "name": "refund_order",
    "description": "Refund.",
    "parameters": {
        "type": "object",
        "properties": {
            "order_id": {"type": "integer"},
            "reason": {"type": "string", "enum": ["broken", "late"]},
            "amount": {"anyOf": [{"type": "number"}, {"type": "null"}]},
            "lines": {"type": "array", "items": {"$ref": "#/$defs/line"}},
        },
        "required": ["order_id"],
        "$defs": {"line": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}},
    },
}
FIND = {"name": "find", "description": "Find."}
ODD = {"name": "odd", "parameters": {"type": "object", "properties": {"a\nb": {}}}}
HEAD = "version: 1\ntools: [orders.json, crm.json]\ncases:\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "orders.json").write_text(json.dumps([REFUND, FIND, ODD]))
    (tmp_path / "crm.json").write_text(json.dumps([FIND, {**FIND, "description": "The second."}]))
    return tmp_path


def read(folder: Path, text: str) -> CaseFile:
    path = folder / "cases.yaml"
    path.write_text(text)
    return read_cases(path)


def test_the_example_of_the_specification(folder: Path) -> None:
    found = read(folder, """version: 1
tools: [orders.json, crm.json]
read_only: ["crm:find"]
idempotent: [refund_order]
system: Be brief.
cases:
- id: refund-17
  request: Refund order 1042, it arrived broken.
  expect:
  - call: refund_order
    arguments: {order_id: 1042, reason: broken, amount: {number: 19.9, tolerance: 0.01}}
  ordered: true
  results: {refund_order: {status: ok}, "crm:find": [a, b]}
- {id: alt, request: x, any_of: [[{call: "orders:find"}], [{call: "crm:find#2"}], ask]}
- {id: thanks, request: Thanks!, expect: no_call}
- id: multi
  turns:
  - {request: a, expect: ask}
  - {request: b, expect: [{call: refund_order, arguments: {order_id: 1, colour: red}}], extra: allow}
""")  # fmt: skip
    assert [tool.tool.name for tool in found.tools] == [
        "refund_order",
        "orders:find",
        "odd",
        "crm:find",
        "crm:find",
    ]
    assert [(t.read_only, t.idempotent) for t in found.tools] == [
        (False, True),
        (False, False),
        (False, False),
        (True, False),
        (False, False),
    ]
    refund, alt, thanks, multi = found.cases
    (turn,) = refund.turns
    assert turn.messages[0] == {"role": "system", "content": "Be brief."}
    assert turn.answers[0].calls == (
        Call(
            "refund_order",
            {"order_id": 1042, "reason": "broken", "amount": {"number": 19.9, "tolerance": 0.01}},
        ),
    )
    assert turn.ordered and turn.results == {"refund_order": ({"status": "ok"},), "crm:find": ("a", "b")}
    assert [answer.places for answer in alt.turns[0].answers] == [(1,), (4,), ()]
    assert [answer.kind for answer in thanks.turns[0].answers] == ["no_call"]
    assert [len(one.messages) for one in multi.turns] == [2, 1] and multi.turns[1].extra
    assert "'find' is a tool of several files" in found.notes[0]


def test_earlier_calls_are_named_as_rows_list_them(folder: Path) -> None:
    found = read(folder, HEAD + """- id: a
  messages:
  - {role: user, content: look}
  - {role: assistant, content: null, tool_calls: [{id: c1, function: {name: "crm:find", arguments: "{}"}}]}
  - {role: tool, tool_call_id: c1, content: found}
  - {role: user, content: thanks}
  expect: no_call
""")  # fmt: skip
    (call,) = found.cases[0].turns[0].messages[1]["tool_calls"]
    assert call == {"id": "c1", "type": "function", "function": {"name": "crm:find", "arguments": "{}"}}


def case(text: str) -> str:
    return HEAD + "- " + text + "\n"


def call(arguments: str, more: str = "") -> str:
    return case(f"{{id: a, request: x, expect: [{{call: refund_order, arguments: {arguments}}}]{more}}}")


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("tools: [crm.json]\ncases: []\n", 1, "'version' is missing"),
        ("version: 2\n", 1, "write version: 1"),
        ("version: 1\ntoolz: []\n", 2, "did you mean tools"),
        ("version: 1\ntools: [crm.json]\ncases: []\n", 3, "'cases' must be a list"),
        ("version: 1\ntools: [gone.json]\n", 2, "no such file"),
        ("version: 1\ntools: [crm.json, ./crm.json]\n", 2, "the stem 'crm'"),
        (case("{id: a, request: x, expct: ask}"), 4, "did you mean expect"),
        (case("{request: x, expect: ask}"), 4, "no 'id'"),
        (case("{id: a/b, request: x, expect: ask}"), 4, "an id is up to 64"),
        (case("{id: '" + "a" * 65 + "', request: x, expect: ask}"), 4, "an id is up to 64"),
        (case("{id: 12, request: x, expect: ask}"), 4, "put it into quotes"),
        (case("{id: a, request: x, expect: ask}\n- {id: a, request: x, expect: ask}"), 5, "taken on line 4"),
        (case("{id: a.1, request: x, expect: ask}\n- {id: a, turns: [{request: x, expect: ask},"
              " {request: x, expect: ask}]}"), 5, "'a.1' is taken on line 4"),
        (case("{id: a, request: x}"), 4, "either 'expect' or 'any_of'"),
        (case("{id: a, request: x, expect: ask, any_of: [ask]}"), 4, "either 'expect' or 'any_of'"),
        (case("{id: a, request: x, messages: [], expect: ask}"), 4, "either 'request' or 'messages'"),
        (case("{id: a, request: x, expect: []}"), 4, "no_call or ask"),
        (case("{id: a, request: x, expect: nothing}"), 4, "no_call or ask"),
        (case("{id: a, request: x, expect: [{call: find}]}"), 4, "write orders:find or crm:find"),
        (case("{id: a, request: x, expect: [{call: refund}]}"), 4, "did you mean refund_order"),
        (case("{id: a, request: x, expect: [{call: 'crm:find#3'}]}"), 4, "unknown tool"),
        (case("{id: a, request: x, expect: ask, ordered: yes}"), 4, "true or false"),
        (case("{id: a, request: x, expect: ask, extra: true}"), 4, "can only be allow"),
        (case("{id: a, request: x, expect: ask, results: {gone: 1}}"), 4, "unknown tool"),
        (case("{id: a, turns: [{request: x, expect: ask}], ordered: true}"), 4, "belongs into the turns"),
        (case("{id: a, messages: [{role: assistant, content: x}], expect: ask}"), 4, "end with the user"),
        (case("{id: a, messages: [{role: tool, content: x}], expect: ask}"), 4, "'tool_call_id' must be"),
        (call("{}"), 4, "'order_id' is required"),
        (call("{order_id: '1'}"), 4, "is of type string, the tool wants integer"),
        (call("{order_id: null}"), 4, "is of type null"),
        (call("{order_id: 1, colour: red}"), 4, "is not a parameter of the tool"),
        (case('{id: a, request: x, expect: [{call: odd, arguments: {q: 1}}]}'), 4, "it has: a b"),
        (call("{order_id: 1, reason: lost}"), 4, "the tool allows: broken, late"),
        (call("{order_id: 1, amount: many}"), 4, "wants null or number"),
        (call("{order_id: 1, lines: [{n: x}]}"), 4, "'n' is of type string"),
        (call("{order_id: 1, lines: [{}]}"), 4, "lacks 'n'"),
        (call("{order_id: {one_of: [1, x]}}"), 4, "is of type string"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_one_line_with_its_place(folder: Path, text: str, line: int, said: str) -> None:
    caught = refuses(said, read, folder, text)
    assert caught.startswith(f"{folder / 'cases.yaml'}:{line}: ")


@pytest.mark.parametrize(
    "arguments",
    ["{order_id: 20.0}", "{order_id: {any: true}}", "{order_id: 1, reason: null}",
     "{order_id: 1, amount: 2, lines: [{n: 1}, {any: true}]}"],
)  # fmt: skip
def test_golds_that_fit(folder: Path, arguments: str) -> None:
    assert len(read(folder, call(arguments)).cases) == 1


def test_schemas_that_multiply_are_bounded(folder: Path) -> None:
    defs = {
        f"a{n}": {word: [{"$ref": f"#/$defs/a{n + 1}"}] * 9 for word in ("allOf", "anyOf")} for n in range(50)
    }
    schema = {"$ref": "#/$defs/a0", "properties": {"p": {"$ref": "#/$defs/a0"}}, "$defs": defs | {"a50": {}}}
    (folder / "crm.json").write_text(json.dumps([{"name": "wide", "parameters": schema}]))
    assert read(folder, case("{id: a, request: x, expect: [{call: wide, arguments: {p: {q: 1}}}]}")).cases


def test_a_matcher_that_cannot_be_used_is_an_error_with_its_line(folder: Path) -> None:
    for matcher in ("{regex: '('}", "{number: x}", "{any: false}", "{date: tomorrow}"):
        text = HEAD + "- id: a\n  request: x\n  expect:\n  - call: refund_order\n    arguments:\n"
        text += f"      order_id: 1\n      reason: {matcher}\n"
        refuses(r"cases\.yaml:10: refund_order: 'reason': ", read, folder, text)


# --- Tool files: four shapes as one, schemas as they are written, one line for what cannot be read


SCHEMA = {
    "type": "object",
    "required": ["node"],
    "properties": {
        "node": {"$ref": "#/$defs/node"},
        "kind": {"enum": ["a", None, {"$ref": "http://data.not/schema"}]},
        "when": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": {"$ref": 1}},
        "$ref": {"type": ["integer", "null"]},
    },
    "$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}},
}
FUNCTION = {"name": "walk", "description": "Walk.", "parameters": SCHEMA}
MCP = {"name": "walk", "description": "Walk.", "inputSchema": SCHEMA}


def parse(value: object) -> tuple[OwnTool, ...]:
    return parse_tools(json.dumps(value).encode(), "crm", "crm.json")


@pytest.mark.parametrize(
    "value",
    [
        [{"type": "function", "function": FUNCTION}],
        [FUNCTION],
        {"tools": [FUNCTION]},
        {"tools": [MCP]},
        {"jsonrpc": "2.0", "id": 1, "result": {"tools": [MCP]}},
        [{"name": "walk", "description": "Walk.", "input_schema": SCHEMA}],
        [{"type": "custom", "name": "walk", "description": "Walk.", "input_schema": SCHEMA}],
    ],
)
def test_every_shape_is_the_same_tool(value: object) -> None:
    (found,) = parse(value)
    assert (found.name, found.prefix) == ("walk", "crm")
    assert found.tool.description == "Walk."
    assert json.dumps(found.tool.parameters) == json.dumps(SCHEMA)  # exactly, key order included


def test_pages_are_joined(tmp_path: Path) -> None:
    pages = [{"tools": [MCP], "nextCursor": "x"}, {"result": {"tools": [{**MCP, "name": "run"}]}}]
    (tmp_path / "hr.jsonl").write_text("\n".join(json.dumps(page) for page in pages))
    assert [tool.name for tool in parse(pages)] == ["walk", "run"]
    assert [(tool.name, tool.prefix) for tool in read_tools(tmp_path / "hr.jsonl")] == [
        ("walk", "hr"),
        ("run", "hr"),
    ]
    refuses("page 1 states a nextCursor", parse, pages[:1])


def test_hints_are_kept() -> None:
    hints = {"readOnlyHint": True, "idempotentHint": False}
    (found,) = parse({"tools": [{**MCP, "title": "T", "annotations": hints, "outputSchema": {}}]})
    assert found.read_only and not found.idempotent


def test_a_name_twice_is_two_tools() -> None:
    assert len(parse([FUNCTION, FUNCTION])) == 2


def test_no_parameters_are_an_empty_list_of_them() -> None:
    (found,) = parse([{"name": "ping"}])
    assert found.tool.parameters == {"type": "object", "properties": {}}


def ref(target: str, **more: object) -> list[object]:
    return [{"name": "f", "parameters": {"type": "object", "properties": {"p": {"$ref": target}}, **more}}]


@pytest.mark.parametrize(
    ("reference", "found"),
    [
        ("#addr", "string"),
        ("#more", "integer"),
        ("#/$defs/a", "string"),
        ("#/$defs/b%7E1c", "integer"),  # ~1, percent-encoded
        ("#/anyOf/1", "number"),
        ("root.json#addr", "string"),
    ],
)
def test_a_reference_by_name_or_place_is_followed(reference: str, found: str) -> None:
    defs = {"a": {"$anchor": "addr", "type": "string"}, "b/c": {"$dynamicAnchor": "more", "type": "integer"}}
    choice = [{"type": "null"}, {"type": "number"}]
    (one,) = parse(ref(reference, **{"$id": "root.json", "$defs": defs, "anyOf": choice}))
    assert subschemas.types(one.tool.properties["p"], one.tool.parameters) == {found}


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ([], "lists no tools"),
        ({"a": 1}, "tool 0: .name. must be a text that is not empty; wanted are OpenAI tools"),
        ([1], "tool 0: must be an object"),
        ([FUNCTION, {"name": " "}], "tool 1: 'name' must be a text"),
        ([{"name": "f", "parameters": [1]}], r"tool 0 \('f'\): 'parameters' must be a JSON Schema"),
        ([{"name": "f", "description": 1}], "'description' must be a text"),
        ([{"type": "web_search", "name": "w"}], "built into a provider"),
        ([{"name": "f", "parameters": {}, "inputSchema": {}}], "keep one"),
        ([{"name": "f", "parameters": {"required": [[]]}}], "'required': Expected `str`, got `array`"),
        ([{"name": "f", "parameters": {"properties": {"a": 3}}}], "'properties': Expected .*, got `int`"),
        ({"error": {"message": "no"}}, "error of the server"),
        (ref("https://x.test/y"), "nothing is fetched"),
        (ref("#/$defs/gone"), "leads nowhere"),
        (ref("#name"), "leads nowhere"),
        (ref("#/type"), "leads nowhere"),
        (ref("#/$defs/a", **{"$defs": {"a": {"$ref": "#/$defs/a"}}}), "a circle of"),
        (ref("#/$defs/a", **{"$defs": {"a": {"allOf": [{"$ref": "#/$defs/b"}]}, "b": {"$ref": "#/$defs/a"}}}),
         "a circle of"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_one_line(value: object, said: str) -> None:
    assert refuses(said, parse, value).startswith("crm.json: ")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "lists no tools"),
        (b"\xff", "crm.json:1: not UTF-8"),
        (b"[", "line 1, column 2: not JSON"),
        (b'{"tools": [],\n"tools": []}', "a key is given twice in one object: 'tools'"),
        (b"[NaN]", "NaN is not JSON"),
        (b"[1e999]", "beyond what JSON readers hold"),
        (b"[" + b"9" * 5000 + b"]", "a number has more than 1,000 digits"),
        (b'["\\ud800"]', "half a surrogate pair"),
        (b"[" * 20_000 + b"]" * 20_000, "nested deeper than 200 levels"),
        (b'{"name": "a"}\n{"name": ', "line 2, column 10: not JSON"),
    ],
)
def test_a_file_that_is_not_json_is_one_line(data: bytes, said: str) -> None:
    refuses(said, parse_tools, data, "crm", "crm.json")


# --- YAML 1.2 with lines: what a scalar is, and what is refused


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", "yes"), ("on", "on"), ("NO", "NO"), ("True", True), ("false", False),
        ("2026-11-21", "2026-11-21"),
        ("012", 12), ("0o14", 12), ("0x1F", 31), ("1:30", "1:30"), ("1_000", "1_000"), ("1e3", 1000.0),
        (".5", 0.5), ("1.", 1.0), ("~", None), ("", None), ("'12'", "12"), ("!!str 12", "12"),
        ("-0x1", "-0x1"), ("+7", 7), ("=", "="), ("0b1", "0b1"),
    ],
)  # fmt: skip
def test_scalars_are_those_of_the_core_schema(text: str, value: object) -> None:
    found = load(f"a: {text}\n".encode(), "c.yaml").data()["a"]
    assert found == value and type(found) is type(value)


def test_every_key_and_item_has_its_line() -> None:
    node = load(b"# first\na:\n  - 1\n  - {b: 2}\nc: x\n", "c.yaml")
    assert node.keys == {"a": 2, "c": 5}
    assert [item.line for item in node.value["a"].value] == [3, 4]
    assert node.data() == {"a": [1, {"b": 2}], "c": "x"}


def test_json_and_aliases_are_read() -> None:
    assert load(b'{"a": [1, null, "\\u00e9"]}', "c").data() == {"a": [1, None, "\u00e9"]}
    assert load(b"a: &x [1]\nb: *x\n", "c").data() == {"a": [1], "b": [1]}


@pytest.mark.parametrize(
    ("data", "line", "said"),
    [
        (b"a: 1\nb: 2\na: 3\n", 3, "given twice; first on line 1"),
        (b"a: 1\n---\nb: 2\n", 2, "a second document"),
        (b"a: !!python/object/apply:os.system [x]\n", 1, "is not read"),
        (b"a: 1\nb: !mine x\n", 2, "is not read"),
        (b"a: &x [*x]\n", 1, "within its own anchor"),
        (b"a: *gone\n", 1, "no anchor"),
        (b"a: 1\n1: 2\n", 2, "must be a text"),
        (b"a: 1\n? [b]\n: 2\n", 2, "must be a text"),
        (b"a: .inf\n", 1, "cannot be sent as JSON"),
        (b"a: 1e999\n", 1, "beyond what"),
        (b"a: {<<: {b: 1}}\n", 1, "not YAML 1.2"),
        (b"a: 1\n\tb: 2\n", 2, "not YAML"),
        (b"a: 1\nb: \xff\n", 2, "not UTF-8"),
        (b"a: 1\nb: \x00\n", 2, "does not allow"),
        (b"", 1, "empty"),
        (b"[" * 20_000 + b"]" * 20_000, 1, "deeper than 200"),
        (b"- " * 20_000, 1, "deeper than 200"),
        (b'a: "\\ud800"\n', 1, "not YAML|surrogate"),
        (b"a: !!int 3\n", 1, "is not read"),
    ],
)
def test_what_is_refused_names_its_line(data: bytes, line: int, said: str) -> None:
    caught = refuses(said, load, data, "c.yaml")
    assert caught.startswith(f"c.yaml:{line}: ")


def test_aliases_of_aliases_are_bounded() -> None:
    lines = [b"a0: &a0 [1,1,1,1,1,1,1,1,1,1]"]
    lines += [b"a%d: &a%d [%s]" % (n, n, b",".join([b"*a%d" % (n - 1)] * 10)) for n in range(1, 10)]
    refuses("more than 5,000,000 values", load, b"\n".join(lines), "c.yaml")


def test_a_hostile_escape_is_one_line() -> None:
    refuses("not YAML", load, b'a: "\\UFFFFFFFF"', "c.yaml")
