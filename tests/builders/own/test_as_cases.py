"""The five sources as cases of one's own: exported, read back, built and judged as their own scorers judge
(own.md §2, §5.2); and cases as clean rows, with gold as the row contract wants it and history as text."""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec
import pytest

from robustbench_tc.builders.own.dataset import ASKED, DONE, book, pool
from robustbench_tc.builders.sources import BUNDLED, read_pool
from robustbench_tc.eval.agents import AGENTS, AgentContext, reply
from robustbench_tc.eval.score import judge
from robustbench_tc.eval.score.golden import concrete
from robustbench_tc.own.cases import Answer, Case, CaseFile, CaseTurn, ChatMessage, OwnTool
from robustbench_tc.own.cases_file import read_cases
from robustbench_tc.schema import Call, Json, Message, Sample, Tool, columns, dumps, record

from ...eval.small import prediction
from . import as_cases

LISTED = json.loads(Path(__file__).with_name("differs.json").read_bytes())
"""Replies on which the verdicts differ, and kinds of replies on which they may, each with its reason."""

Reply = tuple[Call, ...] | str
Record = Callable[[str, object], None]


def brought_back(rows: Sequence[Sample], folder: Path) -> dict[str, Sample]:
    """Clean id → the row of source own that its case became."""
    found: dict[str, Sample] = {}
    groups: dict[str, list[Sample]] = {}
    for row in rows:  # a cases file has one list of tools for all of its cases
        groups.setdefault(dumps(row.tools), []).append(row)
    for group in groups.values():
        cases = read_cases(as_cases.write(group, folder))
        assert tuple(tool.tool for tool in cases.tools) == group[0].tools
        found |= zip((row.clean_id for row in group), pool(cases).samples, strict=True)
    return found


def is_right(row: Sample, said: Reply) -> bool:
    calls: Json = None
    if not isinstance(said, str):
        calls = [
            {"id": str(at), "name": call.name, "arguments": dumps(call.parameters)}
            for at, call in enumerate(said)
        ]
    answer = prediction(row, mode="fc", raw_output=said if isinstance(said, str) else None, tool_calls=calls)
    return judge(answer, row, row).correct


def replies(row: Sample) -> Iterator[tuple[str, Reply]]:
    """What gold says, answer by answer, and what every scripted agent says."""
    for number, golden in enumerate(row.golden_answers):
        yield f"gold {number}", concrete(golden, row.tools, source=row.source)
    for name in AGENTS:
        yield name, reply(name, AgentContext(row, row, False))


def compared(rows: Sequence[Sample], folder: Path, record: Record) -> None:
    own = brought_back(rows, folder)
    differing, total, distinct = set(), 0, dict[tuple[str, str], bool]()
    for row in rows:
        for name, said in replies(row):
            same = is_right(row, said) == is_right(own[row.clean_id], said)
            total += 1
            distinct[row.clean_id, repr(said)] = same
            if not same:
                differing.add(f"{row.clean_id} | {name}")
    share, alone = 1 - len(differing) / total, sum(distinct.values()) / len(distinct)
    record("rows", len(rows))
    record("verdicts that are equal", f"{share:.2%} of {total}")
    record("the same of replies that differ in what they say", f"{alone:.2%} of {len(distinct)}")
    ids = {row.clean_id for row in rows}
    assert differing == {one for one in LISTED["replies"] if one.split(" | ")[0] in ids}
    assert share >= 0.98 and alone >= 0.98


def test_own_verdicts_are_the_sources_on_the_bundled_samples(tmp_path: Path, record_property: Record) -> None:
    compared(read_pool(BUNDLED, "bundled").samples, tmp_path, record_property)


def test_own_verdicts_are_the_sources_on_the_papers_samples(
    tmp_path: Path, shared: Path, record_property: Record
) -> None:
    compared(read_pool(shared / "sources", "paper").samples, tmp_path, record_property)


# --- what a case cannot say ---------------------------------------------------------------------------


def _respelt(value: Json, upper: bool) -> Json:
    if isinstance(value, str):
        return value.upper() if upper else f" {value} "
    return [_respelt(one, upper) for one in value] if isinstance(value, list) else value


def variants(row: Sample) -> Iterator[tuple[str, tuple[Call, ...]]]:
    """Replies that are nearly gold's: what a model may write, and the scorers see differently."""
    gold = concrete(row.golden_answers[0], row.tools, source=row.source)
    for name, upper in (("other case", True), ("outer blanks", False)):
        yield (
            name,
            tuple(Call(c.name, {k: _respelt(v, upper) for k, v in c.parameters.items()}) for c in gold),
        )
    yield "numbers as text", tuple(Call(c.name, {k: _text(v) for k, v in c.parameters.items()}) for c in gold)
    yield "an argument too many", (Call(gold[0].name, {**gold[0].parameters, "unasked": 1}), *gold[1:])
    yield "an argument missing", (Call(gold[0].name, dict(list(gold[0].parameters.items())[1:])), *gold[1:])
    yield "a call twice", (*gold, gold[0])
    yield "another order", gold[::-1]
    yield "a control tool first", (Call("ask_to_user", {"question": "Really?"}), *gold)


def _text(value: Json) -> Json:
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def test_what_a_case_cannot_say_is_a_closed_list(tmp_path: Path) -> None:
    rows = read_pool(BUNDLED, "bundled").samples
    own = brought_back(rows, tmp_path)
    found = set[str]()
    for row in rows:
        for name, said in variants(row):
            native, here = is_right(row, said), is_right(own[row.clean_id], said)
            if native != here:
                found.add(f"{row.source}: {name}: {'stricter' if native else 'more lenient'}")
    assert found == set(LISTED["variants"])


# --- the files ----------------------------------------------------------------------------------------

TOOL = Tool(
    "find",
    "Finds — “all”.\u2028",
    {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
)


def sample(number: int = 1, *calls: Call, **more: object) -> Sample:
    made = Sample(
        id=f"bfcl_v3__{number}::clean",
        clean_id=f"bfcl_v3__{number}",
        type_code="clean",
        source="bfcl_v3",
        category="multiple",
        messages=(Message("user", "Find: 5\n\u0085\ufeff\x00 \U0001f600 {x} # no"),),
        tools=(TOOL,),
        golden_answers=(calls or (Call("find", {"n": [5]}),),),
        output_format="python_calls",
    )
    return msgspec.structs.replace(made, **more)


def test_any_text_survives_the_files(tmp_path: Path) -> None:
    row = sample()
    (own,) = brought_back([row], tmp_path).values()
    assert (own.messages, own.tools) == (row.messages, row.tools)


def test_values_that_look_like_matchers_stay_values(tmp_path: Path) -> None:
    tool = Tool("put", "", {"type": "object", "properties": {"v": {"type": "object"}, "w": {}}})
    row = sample(
        1,
        Call("put", {"v": [{"any": [True]}], "w": [{"regex": "x"}, ""]}),
        tools=(tool,),
        source="rotbench",
        clean_id="rotbench__1",
    )
    (own,) = brought_back([row], tmp_path).values()
    assert is_right(own, (Call("put", {"v": {"any": [True]}, "w": {"regex": "x"}}),))
    assert is_right(own, (Call("put", {"v": {"any": [True]}}),))
    assert not is_right(own, (Call("put", {"v": {"any": [True]}, "w": "x"}),))


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
