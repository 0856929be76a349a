"""Generated clean samples of every source's shape, small enough to read when one fails."""

from typing import Any

from hypothesis import strategies as st

from robustbench_tc.schema import Call, Message, Sample, Tool

from ...known import OUTPUT_FORMATS

WORDS = st.sampled_from(
    "book a table for two at seven in the harbour room please and send me the bill by post".split()
)
VALUES = st.sampled_from(["Oslo", "7", "blue whale", "2031-04-05", "x"])
NAMES = st.sampled_from(
    [
        "find",
        "getTide",
        "harbour.book_table",
        "send_invoice",
        "AddAgenda",
        "q",
        "list_all_items",
        "Level2Info",
    ]
)
PARAMETERS = st.dictionaries(
    st.sampled_from(["city", "count", "when", "note"]),
    st.fixed_dictionaries(
        {"type": st.sampled_from(["string", "integer", "number", "boolean"])},
        optional={"description": st.sampled_from(["The city.", "How many, 3 at most", ""])},
    ),
    max_size=3,
)
DESCRIPTIONS = st.sampled_from(["", "Finds a tide", "Books a table for 2 guests.", "Sends it!"])


@st.composite
def samples(draw: st.DrawFn, sources: tuple[str, ...] = tuple(OUTPUT_FORMATS)) -> Sample:
    """A clean sample whose golden answer calls one or two tools of its registry."""
    source = draw(st.sampled_from(sources))
    names = draw(st.lists(NAMES, min_size=1, max_size=5, unique=True))
    tools = tuple(
        Tool(name, draw(DESCRIPTIONS), {"type": "object", "properties": draw(PARAMETERS)}) for name in names
    )
    called = draw(st.lists(st.sampled_from(tools), min_size=1, max_size=2))
    answer = tuple(Call(tool.name, {p: [draw(VALUES)] for p in tool.properties}) for tool in called)
    answers: list[tuple[Call, ...]] = [answer]
    if source == "rotbench" and draw(st.booleans()):
        answers.append((Call(draw(st.sampled_from(tools)).name, {}),))
    return Sample(
        id="s::clean",
        clean_id="s",
        type_code="clean",
        source=source,
        category="c",
        messages=draw(conversations(source)),
        tools=tools,
        golden_answers=tuple(answers),
        output_format=OUTPUT_FORMATS[source],
        gold_tool_index=tools.index(called[0]),
    )


@st.composite
def conversations(draw: st.DrawFn, source: str) -> tuple[Message, ...]:
    """A query of at least one word; for API-Bank a transcript closed by the boiler-plate turn."""
    text = draw(st.lists(WORDS | VALUES, min_size=1, max_size=12)).copy()
    query = " ".join(text) + draw(st.sampled_from(["", ".", "?", "!"]))
    if source != "apibank":
        return (Message("user", query),)
    turns = [query, *draw(st.lists(VALUES, max_size=2))]
    body = "\n".join(f"<user>{turn}</user>\n<response>Fine.</response>" for turn in turns)
    closing = "<user> With this in mind, answer with one tool call.</user>"
    return (Message("user", f"**Dialogue Records History**\n{body}\n\n{closing}\n"),)


def rewritten(text: str) -> Any:
    """An acceptable rewriting by rule: every value and digit stays, something changes."""
    return f"{text} indeed"
