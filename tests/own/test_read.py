"""Cases files: what they become, and one line with file and line for what is wrong."""

import json
from pathlib import Path

import pytest

from robustbench_tc.own.cases import CaseFile
from robustbench_tc.own.read import read_cases
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
