"""`rbtc cases draft`: what tools propose, unreviewed, in a file that `rbtc build --cases` takes; and how
it is decided about: by the words that are offered, whole or by their letter, and by no others."""

import json
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings, strategies as st

from robustbench_tc import api
from robustbench_tc.own import drafting, yaml
from robustbench_tc.own.cases_file import Checker, read_cases
from robustbench_tc.own.desk import desk
from robustbench_tc.own.drafting import Sampler
from robustbench_tc.own.reviewing import Reviewing, ask_all
from robustbench_tc.own.tools import parse_tools

from ..loopback import TOO_LONG, LoopbackServer
from ..refusals import refuses
from ..trees import write
from .hostile import SECRET, tool_files
from .test_hostile_files import SECONDS, outcome


def test_the_desks_tools_give_cases_that_build_and_are_not_reviewed(tmp_path: Path) -> None:
    write(tmp_path, {**desk()})
    tools = [str(tmp_path / name) for name in ("orders.json", "crm.json")]
    code, out, err = outcome("cases", "draft", *tools, "--out", str(tmp_path / "drafted"))
    assert (code, err) == (0, "")
    again = outcome("cases", "draft", *tools, "--out", str(tmp_path / "again"), "--json")[1]
    assert json.loads(again)["folder"] == str(tmp_path / "again")
    cases = tmp_path / "drafted" / "cases.yaml"
    assert "0 of them not buildable" in out and f"rbtc cases review {cases}" in out
    read = read_cases(cases)
    assert not read.left_out and not any(case.reviewed for case in read.cases)
    turns = [turn for case in read.cases for turn in case.turns]
    called = {place for turn in turns for answer in turn.answers for place in answer.places}
    assert called == set(range(len(read.tools))) == set(range(14))
    assert {answer.kind for turn in turns for answer in turn.answers} == {"calls", "ask", "no_call"}
    api.build(tmp_path / "bench", cases=cases)
    assert len(json.loads((tmp_path / "bench" / "own.json").read_bytes())["unreviewed"]) == len(turns)


@pytest.mark.parametrize("cases", [14, 15])
def test_a_build_warns_where_a_component_has_too_few_cases_to_pass(cases: int, tmp_path: Path) -> None:
    write(tmp_path, {**desk()})
    head, *entries = (tmp_path / "cases.yaml").read_text().split("\n- id: ")
    (tmp_path / "few.yaml").write_text("\n- id: ".join([head, *entries[:cases]]) + "\n")
    code, _, err = outcome("build", "--cases", str(tmp_path / "few.yaml"), "--out", str(tmp_path / "few"))
    assert code == 0
    few = "reward 14, transition 14; it takes 15)" in err
    assert few == (cases == 14) and few == ("too few cases for the gate to pass" in err)


SCHEMAS = st.recursive(
    st.one_of(
        st.sampled_from([{"type": one} for one in ("string", "integer", "number", "boolean")]),
        st.sampled_from([{"type": "string", "format": one} for one in (*drafting.FORMATS, "odd")]),
        st.builds(lambda values: {"enum": values}, st.lists(st.text(max_size=5), min_size=1, max_size=3)),
        st.builds(lambda least: {"type": "integer", "minimum": least}, st.integers(-5, 5)),
        st.just({"type": "string", "pattern": "^[A-Z]{2}-[0-9]+$"}),
    ),
    lambda inner: st.one_of(
        st.builds(lambda one: {"type": "array", "items": one, "minItems": 2}, inner),
        st.builds(
            lambda some: {"type": "object", "properties": some, "required": list(some)},
            st.dictionaries(st.text("abc", min_size=1, max_size=3), inner, max_size=3),
        ),
        st.builds(lambda one: {"anyOf": [one]}, inner),
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.text("xyz", min_size=1, max_size=3), SCHEMAS, max_size=4))
def test_sample_values_fit_their_schema(properties: dict[str, Any]) -> None:
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    tools = parse_tools(json.dumps([{"name": "go", "parameters": schema}]).encode(), "tools", "tools.json")
    arguments = Sampler().arguments(schema, list(properties))
    case = {"id": "a", "request": "Go.", "expect": [{"call": "go", "arguments": arguments}]}
    assert Checker(tools, Path("cases.yaml")).problem(case) is None


def _tool(number: int, schema: Any) -> dict[str, Any]:
    return {"name": f"t{number}", "description": "Does it. " * 3, "parameters": schema}


def _hard() -> dict[str, list[Any]]:
    """Definitions that are legal and large in some way."""
    itself = {
        "type": "object",
        "properties": {one: {"$ref": "#/$defs/n"} for one in "abcd"},
        "required": [*"abcd"],
    }
    ending: Any = {"type": "string"}
    for _ in range(150):
        ending = {"type": "array", "items": ending, "minItems": 10**9}
    patterns = {f"p{n}": {"type": "string", "pattern": "a{99}" * 10 + f"$x{n}"} for n in range(40)}
    odd = {
        "": {"enum": [None, {"regex": "a"}]},
        "any": {"const": {"any": True}},
        "long": {"default": "x" * 10**6},
    }
    return {
        "in itself": [_tool(n, itself | {"$defs": {"n": itself}}) for n in range(500)],
        "deep": [_tool(0, {"type": "object", "properties": {"a": ending}, "required": ["a"]})],
        "patterns": [_tool(n, {"type": "object", "properties": patterns}) for n in range(500)],
        "keys": [_tool(0, {"type": "object", "properties": {"k" * 600: {}}, "required": ["k" * 600]})],
        "odd": [
            {
                **_tool(0, {"type": "object", "properties": odd, "required": [*odd, "ghost"]}),
                "name": "Ü /:\x1b",
            }
        ],
    }


@pytest.mark.parametrize("said", _hard())
def test_hard_schemas_are_drafted_within_bounds(said: str, tmp_path: Path) -> None:
    (tmp_path / "tools.json").write_text(json.dumps(_hard()[said]))
    begun = time.process_time()
    made = api.draft_cases([tmp_path / "tools.json"], tmp_path / "out")
    read = read_cases(tmp_path / "out" / "cases.yaml")
    assert time.process_time() - begun < SECONDS
    assert len(read.cases) + len(read.left_out) == made.cases and len(read.left_out) == made.problems


def test_hostile_tools_files_are_one_line_or_a_draft(tmp_path: Path) -> None:
    for number, (said, data) in enumerate(tool_files().items()):
        (path := tmp_path / f"{number}.json").write_bytes(data)
        code, out, err = outcome("cases", "draft", str(path), "--out", str(tmp_path / f"out{number}"))
        assert SECRET not in out + err
        if code:
            assert (code, out, err.count("\n")) == (1, "", 1), (said, out, err)
        else:
            read_cases(tmp_path / f"out{number}" / "cases.yaml")


def test_a_models_requests_are_taken_and_a_reply_that_is_none_leaves_the_schemas(tmp_path: Path) -> None:
    write(tmp_path, {**desk()})
    asked = list[str]()

    def reply(body: Any) -> Any:
        asked.append(body["messages"][0]["content"])
        if '"name":"get_order"' in asked[-1].replace('": "', '":"'):
            calls = [[{"call": "get_order", "arguments": {"order_id": order}}] for order in (7, "seven")]
            replied = [{"request": "Where is it?", "expect": one} for one in (*calls, "ask")]
            return f"<think>[1]</think>Here: {json.dumps(replied)} Done."
        return TOO_LONG if '"cancel_order"' in asked[-1] else "[" * 1_000 + '[{"request": 1}]'

    with LoopbackServer(reply) as server:
        made = api.draft_cases(
            [tmp_path / "orders.json"], tmp_path / "out", model="tiny", base_url=server.url
        )
    assert (made.tools, made.by_model, made.problems) == (7, 1, 1)
    assert len(set(asked)) == 7
    cases = yaml.load((tmp_path / "out" / "cases.yaml").read_bytes(), "cases").data()["cases"]
    mine = [case for case in cases if case["proposed_by"] == "tiny"]
    assert [case["expect"] for case in mine] == [
        [{"call": "get_order", "arguments": {"order_id": 7}}],
        [{"call": "get_order", "arguments": {"order_id": "seven"}}],
        "ask",
    ]
    assert "the tool wants integer" in mine[1]["problem"]
    refuses("--base-url says where a model is", api.draft_cases, [], tmp_path / "no", base_url=server.url)


CASES = """version: 1
tools: [tools.json]
cases:
- {id: one, request: Ping it., expect: [{call: ping}], proposed_by: me}
"""
DECIDING = {"a": "accepted", "accept": "accepted", "d": "dropped", "drop": "dropped"}
LEAVING = ("s", "skip", "q", "quit")


@given(typed=st.one_of(st.text(max_size=8), st.sampled_from([*DECIDING, *LEAVING]).map(str.upper)))
@example(typed="")
@example(typed="add")
@example(typed="do not")
@settings(max_examples=150, deadline=None)
def test_no_other_word_decides(typed: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cases.yaml"
        path.write_text(CASES)
        path.with_name("tools.json").write_text('[{"name": "ping", "description": "Pings."}]')
        found, words = Reviewing(path, by="me"), iter([typed, None])
        ask_all(found, lambda question: next(words), lambda line: None)
        left = next(words, "asked twice")
        (case,) = found.cases
    word = typed.lower()
    assert case.status == DECIDING.get(word, "open")
    assert (left is None) == (word in DECIDING or word in LEAVING), "else it is asked again, until the end"
