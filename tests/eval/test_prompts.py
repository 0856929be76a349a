"""What goes over the wire: the system message of prompt mode, native tools, and the second pass."""

import re

import msgspec
import pytest
from hypothesis import given, strategies as st

from robustbench_tc import schema
from robustbench_tc.eval import prompts, wire
from robustbench_tc.eval.parse import parse

from ..known import INJECTED_ERRORS, SOURCES
from ..refusals import refuses
from .small import clean_rows, rows

names = st.lists(st.text("ab._- é", min_size=1, max_size=4), max_size=8)
BY_SOURCE = {row.source: row for row in clean_rows()}
TRANSITIONS = [row for row in rows(*INJECTED_ERRORS) if row.injected_error is not None]


def tools(given_names: list[str]) -> tuple[schema.Tool, ...]:
    return tuple(schema.Tool(name, "", {}) for name in given_names)


def test_the_system_message_lists_the_registry_in_order_with_duplicates(subtests: pytest.Subtests) -> None:
    for row in rows():
        with subtests.test(row.id):
            system = prompts.messages(row)[0]["content"]
            lines = [schema.loads(line) for line in system.splitlines() if line.startswith('{"listed":')]
            listed = [(one["listed"], one["about"], one["takes"]) for one in lines]
            assert listed == [(tool.name, tool.description, tool.parameters) for tool in row.tools]


def test_no_key_of_the_list_of_tools_is_one_of_a_call() -> None:
    """An entry that a model copies is no call of its tool, wherever it stands."""
    for row in clean_rows():
        for line in prompts.messages(row)[0]["content"].splitlines():
            if line.startswith('{"listed":'):
                for said in (line, f"<tool_call>\n{line}\n</tool_call>", f"```json\n[{line}]\n```"):
                    assert parse(said, source=row.source, tools=row.tools).calls == ()


@pytest.mark.parametrize(
    ("source", "sign"),
    [
        ("bfcl_v3", "[name_of_function(parameter=value"),
        ("apibank", "<tool_call>"),
        ("rotbench", "Action Input:"),
        ("toolalpaca", "Action Input:"),
        ("tooleyes", "Action Input:"),
    ],
)
def test_every_source_is_asked_for_its_format(source: str, sign: str) -> None:
    assert sign in prompts.messages(BY_SOURCE[source])[0]["content"]


@pytest.mark.parametrize("source", SOURCES)
def test_the_form_that_the_prompt_shows_is_one_that_the_parser_reads(source: str) -> None:
    text = prompts.messages(BY_SOURCE[source])[0]["content"].split("\n\n")[1]
    example = text.partition("\n")[2] if source != "rotbench" else text
    assert parse(example, source=source, tools=()).calls == ()  # a copied placeholder is not a call
    for shown in ("name_of_function", "name of the tool", "the name of one tool, exactly as it is listed"):
        example = example.replace(shown, "ping")
    for shown in ("=value", "its parameters as one JSON object, {} if there are none"):
        example = example.replace(shown, "=1" if "=" in shown else '{"parameter": "value"}')
    assert [call.name for call in parse(example, source=source, tools=()).calls] == ["ping"]


def test_a_rows_own_system_turn_follows_ours_in_one_message() -> None:
    own = schema.Message("system", "Answer as a sailor.")
    row = BY_SOURCE["bfcl_v3"]
    sent = prompts.messages(msgspec.structs.replace(row, messages=(own, *row.messages)))
    assert [m["role"] for m in sent] == ["system", "user"]
    assert sent[0]["content"].endswith("Answer as a sailor.")


def test_the_prompt_version_is_over_every_text(monkeypatch: pytest.MonkeyPatch) -> None:
    before = prompts.prompt_version()
    prompts.prompt_version.cache_clear()
    monkeypatch.setattr(prompts, "TOOL_RESULT", "Result:\n")
    assert prompts.prompt_version() != before
    prompts.prompt_version.cache_clear()


def test_an_unknown_format_is_named() -> None:
    refuses(
        "unknown output format 'reactt': did you mean react", prompts.system_text, "reactt", "rotbench", ()
    )


@given(names)
def test_wire_names_are_safe_reversible_and_keep_duplicates(given_names: list[str]) -> None:
    found = wire.WireNames(tools(given_names))
    sent = [found.wire(name) for name in given_names]
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) for name in sent)
    assert [found.back(name) for name in sent] == given_names
    assert len(set(sent)) == len(set(given_names))


def test_a_safe_name_keeps_its_form_beside_a_dotted_one() -> None:
    found = wire.WireNames(tools(["a.b", "a_b", "a" * 80]))
    assert [found.wire(name) for name in ("a.b", "a_b", "a" * 80)] == ["a_b_2", "a_b", "a" * 64]
    assert found.back("never_listed") == "never_listed"


def test_fc_sends_the_conversation_alone_and_native_tools() -> None:
    row = BY_SOURCE["bfcl_v3"]
    ask = wire.first(row, "fc")
    assert ask.messages == [{"role": "user", "content": row.messages[0].content}]
    assert ask.tools is not None
    assert [t["function"]["name"] for t in ask.tools] == ["geo_map_distance", "summit_height"]
    assert ask.tools[1]["function"]["parameters"] == row.tools[1].parameters


def test_fc_answers_every_call_id_with_the_error_and_says_nothing_else() -> None:
    for row in TRANSITIONS:
        native = [
            {"id": "x1", "name": row.tools[0].name, "arguments": '{"a": '},
            {"id": "x2", "name": row.tools[1].name, "arguments": '{"b": 1}'},
        ]
        ask = wire.following(row, "fc", [("thinking", native)])
        first = wire.first(row, "fc")
        assert ask.tools == first.tools
        assert ask.messages[: len(first.messages)] == first.messages
        assistant, *results = ask.messages[len(first.messages) :]
        assert assistant["content"] == "thinking"
        assert [c["function"]["arguments"] for c in assistant["tool_calls"]] == ["{}", '{"b": 1}']
        assert results == [
            {"role": "tool", "tool_call_id": call["id"], "content": row.injected_error}
            for call in assistant["tool_calls"]
        ]


def test_prompt_mode_answers_with_one_user_turn_under_a_label() -> None:
    for row in TRANSITIONS:
        ask = wire.following(row, "prompt", [("[ping()]", None)])
        first = wire.first(row, "prompt")
        assert ask.messages == [
            *first.messages,
            {"role": "assistant", "content": "[ping()]"},
            {"role": "user", "content": f"Tool result:\n{row.injected_error}"},
        ]


def test_a_call_written_as_text_in_fc_mode_is_answered_by_a_user_turn() -> None:
    ask = wire.following(TRANSITIONS[0], "fc", [("[ping()]", None)])
    assert [m["role"] for m in ask.messages[-2:]] == ["assistant", "user"]


def test_a_call_that_a_server_cut_out_of_a_prompt_reply_is_put_back() -> None:
    row = TRANSITIONS[0]
    ask = wire.following(row, "prompt", [("", [{"id": "1", "name": "ping", "arguments": '{"a": 1}'}])])
    parsed = parse(ask.messages[-2]["content"], source="apibank", tools=())
    assert [(c.name, c.parameters) for c in parsed.calls] == [("ping", {"a": 1})]
