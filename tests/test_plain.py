"""The plain columns: what they say of a row, and that the gate reads them back."""

import msgspec
import pytest

from robustbench_tc.audits.plain_columns import plain_columns
from robustbench_tc.plain import gold_call, query
from robustbench_tc.schema import ANY, OMIT, Call, Json, Message, Sample, Tool, columns, dumps

CLOSING = "<user> With this in mind, answer with one tool call.</user>"


def calls(**parameters: Json) -> tuple[tuple[Call, ...], ...]:
    return ((Call("f", parameters),),)


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        (calls(a=["x", "y"], b=[2, 3]), "f(a='x', b=2)"),
        (calls(a=[OMIT, "x"], b=["x", OMIT]), "f(b='x')"),
        (calls(a=[ANY]), "f(a=...)"),
        (calls(**{"code:": ["a)b"], "from": [1], "to": [True]}), "f(to=True, **{'code:': 'a)b', 'from': 1})"),
        (calls(a=[{"b": ["c", "d"], "e": [OMIT, 1], "f": 2.5}]), "f(a={'b': 'c', 'f': 2.5})"),
        (calls(a=[[1, "it's", None]]), """f(a=[1, "it's", None])"""),
        (
            ((Call("a.b", {"x": ["; c("]}), Call("preferred-routes_get", {})), ()),
            "a.b(x='; c('); preferred-routes_get()",
        ),
        ((), ""),
    ],
)
def test_the_first_accepted_answer_is_written_as_python_and_read_back(
    answers: tuple[tuple[Call, ...], ...], said: str
) -> None:
    assert gold_call(answers) == said
    row = sample("Do it.", answers)
    assert plain_columns({"query": "Do it.", "gold_call": said}, row) == ""
    for wrong in (said + " ", said.replace("f", "g", 1), said[:-2], None, "f(a='z')"):
        if wrong != said:
            assert plain_columns({"query": "Do it.", "gold_call": wrong}, row)


@pytest.mark.parametrize(
    "said",
    [
        "f(" + ")" * 200_000,
        "f(" + "(" * 200_000,
        "f(a='" + "\\'" * 100_000,
        "f(a='" + '"' * 100_001,
        "f(a=" + "[" * 5_000 + "]" * 5_000 + ")",
        "f(a=" + "-" * 50_000 + "1)",
        "f(**5)",
        "f(a=b)",
        "f(**{1: 2})",
        "f(**{[]: 2})",
        "f(a='x', a='x')",
        "f(a='x\0')",
        "f('x')",
        "f(a='\\N{no such name}')",
        "f(a=" + "9" * 10_000 + ")",
    ],
    ids=range(15),
)
def test_a_hostile_gold_call_is_a_wrong_one(said: str) -> None:
    """Neither an exception nor a long wait: the gate reads files of strangers."""
    assert plain_columns({"query": "Do it.", "gold_call": said}, sample("Do it.", calls(a=["x"])))


def sample(text: str, answers: tuple[tuple[Call, ...], ...]) -> Sample:
    return Sample(
        id="s::clean",
        clean_id="s",
        type_code="clean",
        source="apibank",
        category="level1",
        messages=(Message("system", "You help."), Message("user", text)),
        tools=(Tool("f", "", {}),),
        golden_answers=answers,
        output_format="tool_call_tags",
    )


def test_the_query_is_the_last_substantive_turn() -> None:
    text = f"<user>Could you put this on my list?</user><user>Rye bread</user>{CLOSING}"
    row = sample(text, calls(item=["Rye bread"]))
    assert query(row.messages, row.golden_answers) == "Could you put this on my list?"
    (said,) = columns([row], Sample)["query"]
    assert said == "Could you put this on my list?"
    good = {"query": said, "gold_call": "f(item='Rye bread')"}
    assert plain_columns(good, row) == ""
    for wrong in ("Could you put this", "With this in mind, answer with one tool call.", "", None):
        assert plain_columns({**good, "query": wrong}, row)


def test_columns_hold_what_each_row_says_also_where_rows_share_their_parts() -> None:
    clean = sample(
        f"<user>Rye bread on my list?</user><user>Rye bread</user>{CLOSING}", calls(item=["Rye", OMIT])
    )
    (call,) = clean.golden_answers[0]
    renamed = ((Call("g", call.parameters),),)  # the same object of parameters under another name
    rows = [
        clean,
        msgspec.structs.replace(clean, golden_answers=renamed),
        msgspec.structs.replace(clean, golden_answers=calls(item=["bread", "list", "my"])),
        msgspec.structs.replace(clean, tools=(Tool("g", "new", clean.tools[0].parameters), *clean.tools)),
        sample("<user>Milk</user>", clean.golden_answers),
    ]
    made = columns(rows, Sample)
    assert made["tools"] == [dumps(row.tools) for row in rows]
    assert made["golden_answers"] == [dumps(row.golden_answers) for row in rows]
    assert made["gold_call"][1] == "g(item='Rye')"


def test_who_says_nothing_has_no_query() -> None:
    assert query((Message("system", "You help."),), ()) == ""
