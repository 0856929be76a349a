"""Marked calls as models break them, generated: format × value × damage. And native arguments as text."""

import json
import re
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from robustbench_tc.eval.parse import FORMATS, Parsed, parse
from robustbench_tc.schema import Call, Json, Tool, dumps

from ..known import SOURCES
from .styles import STYLES

TEXT = {"type": "string"}
TOOLS = (
    Tool(
        "note.add",
        "Keeps a note.",
        {
            "type": "object",
            "properties": {"text": TEXT, "tag": TEXT, "count": {"type": "integer"}},
            "required": ["text"],
        },
    ),
    Tool("ping", "Asks.", {"type": "object", "properties": {}}),
)
MARKED = [name for name, style in STYLES.items() if style.marked]
APART = {
    *(
        "hermes",
        "granite_20b",
        "llama31_function",
        "llama31_python_tag",
        "mistral_v3",
        "mistral_v11",
        "mistral_v13",
    ),
    *("deepseek_v3", "deepseek_v31", "kimi_k2", "harmony", "functionary_v2", "functionary_v3", "qwen_agent"),
    *("tool_tag", "tool_and_input", "tool_attribute", "name_attribute", "harmony_stripped", "toolrl"),
}
"""Styles that state the name apart from JSON arguments."""


def read(text: str, source: str = "bfcl_v3", tools: tuple[Tool, ...] = TOOLS, **more: Any) -> Parsed:
    return parse(text, source=source, tools=tools, **more)


def written(style: str, parameters: dict[str, Json], name: str = "note.add") -> str:
    return STYLES[style].write([Call(name, parameters)])


# --- missing tags -----------------------------------------------------------------------------------------

_LAST_MARK = re.compile(
    r"\s*(?:</[^<>\s]{1,40}>|<[|｜]/?[^<>{}]{1,40}[|｜]>|\[(?:/|END_)\w+\]|<end_\w+>|<tool_call\|>|</s>)\s*\Z"
)


@pytest.mark.parametrize("style", MARKED)
def test_closing_marks_at_the_end_may_be_missing(style: str) -> None:
    """Down to the last one behind the arguments, one by one."""
    text = written(style, {"text": "to do", "count": 3})
    while (mark := _LAST_MARK.search(text)) is not None and text[: mark.start()].rstrip()[-1:] in (
        "}",
        ">",
        "]",
        ")",
    ):
        text = text[: mark.start()]
        assert read(text).calls == (Call("note.add", {"text": "to do", "count": 3}),), text


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("opening", ["<arg_value>", "<tool_call>"])
def test_one_opening_tag_may_be_missing_between_known_tags(source: str, opening: str) -> None:
    text = written("glm45", {"text": "to do"})
    assert opening in text
    assert read(text.replace(opening, "", 1), source).calls == (Call("note.add", {"text": "to do"}),)


# --- where a value ends -------------------------------------------------------------------------------------

PIECES = [
    "</parameter>",
    "<parameter>",
    "</arg_value>",
    "<b>",
    "</b>",
    "</text>",
    "word",
    " ",
    "\n",
    '"',
    "'",
    "&",
    "{",
    "[ping()]",
]
values = st.lists(st.sampled_from(PIECES), min_size=1, max_size=6).map(lambda found: f"a{''.join(found)}z")
ELEMENTS = ("qwen3_coder", "qwen3_coder_bare", "minimax_m2", "glm45")


@settings(max_examples=300)
@given(values, st.sampled_from(ELEMENTS))
def test_a_value_ends_where_only_a_token_of_the_format_may_follow(value: str, style: str) -> None:
    written_value = {"text": value, "tag": "t"}
    assert read(written(style, written_value)).calls == (Call("note.add", written_value),)


def test_a_value_never_reaches_beyond_the_next_call() -> None:
    torn = "<tool_call>\n<function=note.add>\n<parameter=text>\nopen\n"
    whole = written("qwen3_coder", {"text": "b"})
    assert [call.parameters for call in read(torn + whole).calls] == [{"text": "open"}, {"text": "b"}]


# --- broken arguments ---------------------------------------------------------------------------------------

BROKEN = [
    '{"text": "a", "count": }',
    '{"text": "a" "count": 3}',
    '{"count": NaN}',
    '{"count": -Infinity}',
    '{"text" "a"}',
]


@pytest.mark.parametrize(("style", "broken"), product(sorted(APART), BROKEN))
def test_broken_arguments_leave_the_name_and_nothing_invented(style: str, broken: str) -> None:
    text = written(style, {"text": "here"})
    for spelled in ('{"text":"here"}', '{"text": "here"}'):
        text = text.replace(spelled, broken)
    assert broken in text
    for source in SOURCES:
        parsed = read(text, source)
        assert (parsed.calls, parsed.flags) == ((Call("note.add", {}),), ("bad_arguments",)), text


def rows_of(shared: Path, name: str) -> list[dict[str, Any]]:
    """Where there are sources there are inputs: else the test fails."""
    return [json.loads(line) for line in (shared / "inputs" / name).read_text("utf-8").splitlines()]


def test_the_shared_broken_replies_keep_their_names(shared: Path) -> None:
    find = (Tool("find", "", {"type": "object", "properties": {"q": TEXT, "limit": {"type": "integer"}}}),)
    for row, source in product(rows_of(shared, "marked_bad_json.jsonl"), SOURCES):
        parsed = read(row["reply"], source, find)
        assert (parsed.calls, parsed.flags) == ((Call("find", {}),), ("bad_arguments",)), row["reply"]


# --- names and ids ------------------------------------------------------------------------------------------

ids = st.tuples(
    st.sampled_from(["", "functions", "call"]),
    st.sampled_from(["", ".", "_", ":"]),
    st.sampled_from(["", ".", "_", ":", "-"]),
    st.sampled_from(["", "0", "17", "a1b2"]),
    st.sampled_from(["", "x", "_go"]),
)


@given(ids)
def test_an_id_names_a_tool_only_as_a_whole(parts: tuple[str, ...]) -> None:
    prefix, before, behind, number, letters = parts
    written_id = f"{prefix}{before}ping{behind}{number}{letters}"
    text = f"<|tool_call_begin|>{written_id}<|tool_call_argument_begin|>{{}}<|tool_call_end|>"
    if not written_id[0].isalpha():
        return
    (call,) = read(text).calls
    assert (call.name == "ping") == (letters == "")


NO_TOOL = [
    "None",
    "no_tool",
    "final answer",
    "Final Answer",
    "no action needed",
    "directly_answer",
    "respond_to_user",
    "N/A",
]


@pytest.mark.parametrize("name", NO_TOOL)
def test_a_name_that_means_no_tool_is_none_unless_the_registry_has_it(
    name: str, subtests: pytest.Subtests
) -> None:
    named = (Tool(name, "", {"type": "object", "properties": {"text": TEXT}}),)
    for style in ("hermes", "kimi_k2", "react_lines", "react_blob", "json_lines", "llama31_function"):
        with subtests.test(style=style):
            text = written(style, {"text": "a"}, name)
            assert read(text).calls == ()
            if style in ("hermes", "react_lines", "json_lines"):
                assert read(text, tools=named).calls == (Call(name, {"text": "a"}),)
    native = [{"function": {"name": name, "arguments": "{}"}}]
    assert read("", tool_calls=native).calls == ()
    assert read("", tools=named, tool_calls=native).calls == (Call(name, {}),)


@pytest.mark.parametrize(
    "said", ["The {} tool is called.", "I will call {}", "{} is used", "Calling {} now", "the tool {}"]
)
def test_a_sentence_where_a_name_belongs_is_no_call(said: str) -> None:
    for source, behind in product(SOURCES, ("", '\nAction Input: {"text": "a"}')):
        assert read(f"Action: {said.format('note.add')}{behind}", source).calls == ()


# --- echoes of the registry -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "style",
    sorted(
        {*MARKED, "json_lines", "json_list"}
        & {*APART, "react_lines", "react_blob", "cohere", "pipe_tag", "json_list"}
    ),
)
def test_an_echoed_schema_is_a_failed_call_of_its_tool(style: str) -> None:
    for source, tool in product(SOURCES, TOOLS[:1]):
        for schema in (tool.parameters, tool.parameters["properties"]):
            parsed = read(written(style, schema, tool.name), source)
            assert (parsed.calls, parsed.flags) == ((Call(tool.name, {}),), ("bad_arguments",))


def test_an_entry_of_the_registry_is_a_call_only_between_call_marks() -> None:
    entry = dumps(TOOLS[0])
    for source in SOURCES:
        assert read(entry, source).calls == ()
        assert read(f"```json\n[{entry}]\n```", source).calls == ()
        assert read(f"<tool_call>\n{entry}\n</tool_call>", source).calls == (Call("note.add", {}),)


SIGNATURES = [
    "note.add(text: str, count: int = 3)",
    "note.add(text: str) -> str",
    "- note.add(text: str)\n- ping()",
    "1. note.add(text: string, count?: number)\n2. ping()",
    "[note.add(text: str), ping()]",
    "note.add(text, tag)",
    'note.add(text: str = "a")\nping()',
    "note.add(count: int = 3)",
    "declaration:ping{}",
    "declaration:note.add{description:<escape>Keeps.<escape>}",
    "<start_function_declaration>declaration:ping{}<end_function_declaration>",
]


@pytest.mark.parametrize("text", SIGNATURES)
def test_a_signature_is_no_call(text: str) -> None:
    for source, around in product(SOURCES, ("{}", "Tools:\n{}", "```python\n{}\n```")):
        assert read(around.format(text) if "{}" not in text else text, source).calls == ()


# --- further forms ----------------------------------------------------------------------------------------------

ONE = (Call("note.add", {"text": "a"}),)
FURTHER = [
    '\\boxed{note.add(text="a")}',
    '$\\boxed{[note.add(text="a")]}$',
    'The call is \\boxed{note.add(text="a")}.',
    'note.add\n```python\ntool_call(text="a")\n```',
    '["note.add"(text="a")]',
    'note.add(**{"text": "a"})',
    'note.add(text: str = "a")',
    'Action: call note.add\nAction Input: {"text": "a"}',
    'Action: note.add\nAction Input: {"parameters": {"text": "a"}}',
]


@pytest.mark.parametrize("text", FURTHER)
def test_further_forms_are_read(text: str) -> None:
    for source in SOURCES:
        assert read(text, source).calls == ONE


@pytest.mark.parametrize("style", sorted(name for name in STYLES if not STYLES[name].text_values))
def test_a_call_in_an_argument_is_text(style: str) -> None:
    parameters: dict[str, Json] = {"text": "see [ping()] there"}
    for source in SOURCES:
        assert read(written(style, parameters), source).calls == (Call("note.add", parameters),)


def test_fences_under_sentences_are_all_calls() -> None:
    text = 'First I add it.\n```python\nnote.add(text="a")\n```\nThen I ask.\n```python\nping()\n```'
    for source in SOURCES:
        assert [call.name for call in read(text, source).calls] == ["note.add", "ping"]


# --- native calls -------------------------------------------------------------------------------------------------

SPELLINGS: dict[str, Callable[[str], str]] = {
    "trailing comma": lambda text: text[:-1] + ",}",
    "single quotes": lambda text: text.replace('"', "'"),
    "double-encoded": json.dumps,
    "bare keys": lambda text: re.sub(r'"(\w+)":', r"\1:", text),
    "missing brace": lambda text: text[:-1],
    "surplus brace": lambda text: text + "}",
    "True": lambda text: text.replace("true", "True"),
    "comment": lambda text: text[:-1] + " // as asked\n}",
    "stray backslash": lambda text: text.replace("oslo", "os\\lo"),
    "fence": lambda text: f"```json\n{text}\n```",
    "byte order mark": lambda text: "\ufeff" + text,
    "list of one": lambda text: f"[{text}]",
}
plain = st.fixed_dictionaries(
    {
        "text": st.sampled_from(["oslo", "a, b", "x: y", "[1]"]),
        "ok": st.booleans(),
        "count": st.integers(-9, 9),
    }
)


@given(plain, st.sampled_from(sorted(SPELLINGS)))
def test_native_arguments_are_read_as_text_is(parameters: dict[str, Json], spelling: str) -> None:
    spelled = SPELLINGS[spelling](dumps(parameters))
    meant = {
        **parameters,
        "text": "os\\lo"
        if spelling.startswith("stray") and parameters["text"] == "oslo"
        else parameters["text"],
    }
    parsed = read("", tool_calls=[{"function": {"name": "note.add", "arguments": spelled}}])
    assert parsed.calls == (Call("note.add", meant),)
    assert parsed.flags == (() if json_object(spelled) else ("repaired",))
    if not spelling.startswith(("fence", "byte", "surplus")):
        said = f'<tool_call>{{"name": "note.add", "arguments": {spelled}}}</tool_call>'
        assert read(said).calls == parsed.calls


def json_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def test_a_path_keeps_its_backslashes() -> None:
    spelled = '{"text":"C:\\Users\\new\\x"}'
    native = [{"function": {"name": "note.add", "arguments": spelled}}]
    assert read("", tool_calls=native).calls == (Call("note.add", {"text": "C:\\Users\\new\\x"}),)


def test_the_shared_native_arguments_are_meant_as_they_say(shared: Path) -> None:
    for row in rows_of(shared, "native_arguments.jsonl"):
        parsed = read("", tool_calls=[{"function": {"name": "ping", "arguments": row["arguments"]}}])
        assert (parsed.calls, parsed.flags) == ((Call("ping", row["meant"]),), ("repaired",))


@pytest.mark.parametrize(
    "written_name",
    ["functions.{}", "{}<|channel|>commentary", "<tool_call>{}", '"{}"', "{}()", "functions.{}:0"],
)
def test_known_marks_around_a_native_name_are_taken_off(written_name: str) -> None:
    for name in ("ping", "ghost"):
        said = written_name.format(name)
        parsed = read("", tool_calls=[{"function": {"name": said, "arguments": "{}"}}])
        assert parsed.calls == (Call("ping" if name == "ping" else said, {}),)
        assert parsed.flags == (("repaired",) if name == "ping" else ())


@pytest.mark.parametrize("arguments", [None, "", "null", {}])
def test_no_arguments_are_right_where_none_is_required(arguments: Json) -> None:
    native = [{"function": {"name": name, "arguments": arguments}} for name in ("ping", "note.add")]
    parsed = read("", tool_calls=native)
    assert parsed.calls == (Call("ping", {}), Call("note.add", {}))
    assert [index for index, _ in parsed.raw_arguments] == ([] if arguments == {} else [1])


def test_every_style_that_states_the_name_apart_is_marked() -> None:
    assert set(MARKED) >= APART and {STYLES[name].code for name in APART} <= FORMATS.keys()
