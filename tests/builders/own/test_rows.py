"""Cases become clean rows: one a turn, gold as the row contract wants it, history as text."""

import msgspec
import pytest

from robustbench_tc.builders.own.dataset import ASKED, DONE, book, pool
from robustbench_tc.own.cases import Answer, Case, CaseFile, CaseTurn, ChatMessage, OwnTool
from robustbench_tc.schema import Call, Json, Message, Sample, Tool, columns, record

NAMES = ("find_order", "refund_order")


def tools() -> tuple[OwnTool, ...]:
    schema = {"type": "object", "properties": {"id": {"type": "integer"}, "note": {"type": "string"}}}
    return tuple(
        OwnTool(
            tool=Tool(name, f"Does {name}.", schema),
            prefix="orders",
            name=name,
            read_only=name == "find_order",
        )
        for name in NAMES
    )


def calls(name: str, **expected: Json) -> Answer:
    return Answer(calls=(Call(name, expected),), places=(NAMES.index(name),))


def turn(text: str, *answers: Answer, results: dict[str, tuple[Json, ...]] | None = None) -> CaseTurn:
    return CaseTurn(messages=({"role": "user", "content": text},), answers=answers, results=results or {})


def file_of(*turns: CaseTurn, reviewed: bool = True) -> CaseFile:
    return CaseFile(tools=tools(), cases=(Case(id="a", turns=turns, line=3, reviewed=reviewed),))


def made(*turns: CaseTurn) -> tuple[Sample, ...]:
    return pool(file_of(*turns)).samples


def test_a_turn_is_a_row_that_survives_parquet() -> None:
    (row,) = made(turn("Refund 7.", calls("refund_order", id=7, note={"regex": "x", "optional": True})))
    assert (row.id, row.clean_id, row.source, row.category) == ("own__a::clean", "own__a", "own", "calls")
    assert row.golden_answers == (
        (Call("refund_order", {"id": [7], "note": [{"regex": "x", "optional": True}]}),),
    )
    assert row.gold_tool_index == 1
    written = {name: values[0] for name, values in columns([row], Sample).items()}
    assert record(written, Sample) == row


@pytest.mark.parametrize("kind", ["ask", "no_call"])
def test_no_call_has_an_empty_answer_and_no_gold_tool(kind: str) -> None:
    (row,) = made(turn("Thanks!", msgspec.convert({"kind": kind}, Answer)))
    assert (row.golden_answers, row.gold_tool_index, row.category) == (((),), None, kind)


def test_an_empty_text_is_no_mark_of_omission() -> None:
    (row,) = made(turn("Clear it.", calls("refund_order", note="")))
    assert row.golden_answers[0][0].parameters == {"note": [{"exact": ""}]}


def test_turns_carry_the_gold_history_of_those_before() -> None:
    first = turn(
        "Find 7.", calls("find_order", id=7, note={"any": True}), results={"find_order": ({"n": 1},)}
    )
    rows = made(first, turn("And it?", Answer(kind="ask")), turn("Bye", Answer(kind="no_call")))
    assert [row.clean_id for row in rows] == ["own__a.1", "own__a.2", "own__a.3"]
    assert rows[2].messages == (
        Message("user", "Find 7."),
        Message(
            "assistant",
            '<tool_call>\n{"name":"find_order","parameters":{"id":7,"note":"anything"}}\n</tool_call>',
        ),
        Message("tool", '{"n":1}'),
        Message("assistant", DONE),
        Message("user", "And it?"),
        Message("assistant", ASKED),
        Message("user", "Bye"),
    )


def test_results_are_used_in_turn_and_the_last_repeats() -> None:
    answer = Answer(calls=(Call("find_order", {}),) * 3, places=(0, 0, 0))
    rows = made(turn("All.", answer, results={"find_order": ("one", "two")}), turn("Bye", answer))
    assert [m.content for m in rows[1].messages if m.role == "tool"] == ["one", "two", "two"]


def test_a_tool_without_a_result_says_ok() -> None:
    rows = made(turn("Find.", calls("find_order")), turn("Bye", calls("find_order")))
    assert rows[1].messages[2] == Message("tool", '{"status":"ok"}')


def test_calls_of_earlier_messages_become_text() -> None:
    said: tuple[ChatMessage, ...] = (
        {"role": "user", "content": "Find 7."},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "x", "function": {"name": "find_order", "arguments": '{"id": 7}'}}],
        },
        {"role": "tool", "tool_call_id": "x", "content": "found"},
        {"role": "user", "content": "Refund it."},
    )
    (row,) = made(CaseTurn(messages=said, answers=(calls("refund_order", id=7),)))
    assert [m.role for m in row.messages] == ["user", "assistant", "tool", "user"]
    assert row.messages[0].content == "Find 7."
    assert row.messages[1].content == (
        '<tool_call>\n{"name":"find_order","parameters":{"id":7}}\n</tool_call>'
    )


def test_the_book_holds_what_rows_have_no_column_for() -> None:
    cases = file_of(
        turn("Find.", calls("find_order"), results={"find_order": ("x",)}),
        turn("Bye", Answer(kind="no_call")),
        reviewed=False,
    )
    assert msgspec.json.decode(book(cases).json()) == {
        "version": 1,
        "files": [],
        "cases": 1,
        "turns": 2,
        "read_only": ["find_order"],
        "idempotent": [],
        "results": {"own__a.1": {"find_order": ["x"]}},
        "unreviewed": ["own__a.1", "own__a.2"],
        "notes": [],
    }
