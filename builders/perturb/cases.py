"""Golden cases: small clean samples of our own, and how a perturbed row differs from one, to be read.

A type states its cases beside its code (`Case`). `make facts` and a test make each row again and compare, and
`docs/types.md` shows them all.
"""

import difflib
import inspect
from collections.abc import Callable, Iterator

from robustbench_tc import seeding
from robustbench_tc.languages import value_map
from robustbench_tc.schema import Call, Message, Sample, Tool, dumps

from .base import Case, Context, NotApplicable, Perturbation, Text


def _tool(name: str, description: str, **parameters: tuple[str, str]) -> Tool:
    properties = {key: {"type": kind, "description": text} for key, (kind, text) in parameters.items()}
    return Tool(name, description, {"type": "object", "properties": properties, "required": list(properties)})


_TABLE = Sample(
    id="bfcl_v3__cases__table::clean",
    clean_id="bfcl_v3__cases__table",
    type_code="clean",
    source="bfcl_v3",
    category="multiple",
    messages=(Message("user", "Book 2 seats at Luna tonight."),),
    tools=(
        _tool("find_menu", "Shows a menu.", dish=("string", "What to look for")),
        _tool("reserve", "Books a table.", place=("string", "Where"), seats=("integer", "How many")),
    ),
    golden_answers=((Call("reserve", {"place": ["Luna"], "seats": [2]}),),),
    output_format="python_calls",
    gold_tool_index=1,
)

_DIALOGUE = Sample(
    id="apibank__cases_dialogue::clean",
    clean_id="apibank__cases_dialogue",
    type_code="clean",
    source="apibank",
    category="level1",
    messages=(
        Message(
            "user",
            "<user>Is there a free berth at Mallow Quay this week?</user>\n"
            '<tool_call>{"name": "ListBerths", "parameters": {"harbour": "Mallow Quay"}}</tool_call>\n'
            "<obs>none</obs>\n"
            "<response>None. Anywhere else?</response>\n"
            "<user>Then list me what is free at Brunt Ness.</user>\n"
            "<response>One moment.</response>\n"
            "<user>Brunt Ness</user>\n"
            "<user> With this in mind, answer with one tool call.</user>",
        ),
    ),
    tools=(_tool("ListBerths", "Lists free berths.", harbour=("string", "The harbour.")),),
    golden_answers=((Call("ListBerths", {"harbour": ["Brunt Ness"]}),),),
    output_format="tool_call_tags",
    gold_tool_index=0,
)

CLEAN: dict[str, Sample] = {"table": _TABLE, "dialogue": _DIALOGUE}
"""`table`: one message, two tools. `dialogue`: a transcript whose history calls the gold tool."""


def context_of(unit: Perturbation, case: Case) -> Context:
    """What the unit needs for the case: its texts, and the tools of all cases as donors."""
    clean = CLEAN[case.clean]
    written = {
        request.key: Text(case.texts[request.input], "hand-written")
        for request in unit.requests(clean)
        if request.input in case.texts
    }
    donors = {clean.source: [tool for sample in CLEAN.values() for tool in sample.tools]}
    return Context(written, donors, taken=lambda sample, surfaces: False)


def row_of(unit: Perturbation, case: Case) -> Sample:
    """The unit's row of the case, drawn with seed 0. Raises ValueError where the type does not apply."""
    clean = CLEAN[case.clean]
    try:
        return unit.perturb(clean, seeding.rng(0, unit.code, clean.clean_id), context_of(unit, case))
    except NotApplicable as skip:
        raise ValueError(f"{unit.code} does not apply to its case {case.clean!r}: {skip.reason}") from None


def difference(clean: Sample, row: Sample) -> str:
    """The lines that only one of the two has: `- ` of the clean row, `+ ` of the other."""
    lines = difflib.unified_diff(list(_lines(clean)), list(_lines(row)), n=0, lineterm="")
    return "\n".join(f"{line[0]} {line[1:]}" for line in list(lines)[2:] if not line.startswith("@@"))


def reads(case: Case) -> str:
    """What the case says, without the indentation of its module."""
    return inspect.cleandoc(case.reads)


def _lines(row: Sample) -> Iterator[str]:
    for message in row.messages:
        first, *rest = message.content.split("\n")
        yield f"{message.role}: {first}"
        yield from (f"    {line}" for line in rest)
    for index, tool in enumerate(row.tools):
        mark = "gold tool" if index == row.gold_tool_index else "tool"
        parameters = ", ".join(_parameter(name, inner) for name, inner in tool.properties.items())
        yield f"{mark}: {tool.name}({parameters}) {tool.description}".rstrip()
    for answer in row.golden_answers:
        yield "gold: " + "; ".join(f"{call.name} {dumps(call.parameters)}" for call in answer)
    if row.injected_error is not None:
        yield f"the first call is answered: {row.injected_error}"
    for flag in row.flags:
        yield f"flag: {flag}"
    for value, surface in value_map(row).items():
        yield f"{value} is written: {surface}"


def _parameter(name: str, inner: object) -> str:
    text = inner.get("description") if isinstance(inner, dict) else None
    return f"{name}: {text}" if text else name


def spoiled(unit: Perturbation) -> tuple[Sample, Sample, dict[str, Sample]]:
    """The first case's clean sample, its row, and by the check that has to see it that row with each of the
    unit's planted defects."""
    case = unit.golden[0]
    clean, row = CLEAN[case.clean], row_of(unit, case)
    return clean, row, {check: plant(clean, row) for check, plant in defects(unit)}


def defects(unit: Perturbation) -> list[tuple[str, Callable[[Sample, Sample], Sample]]]:
    """The unit's planted defects: the check of the gate that has to see it, and (clean, row) → the spoiled
    row."""
    found: list[tuple[str, Callable[[Sample, Sample], Sample]]] = [(unit.caught_by, unit.spoiled)]
    if unit.otherwise_caught_by:
        found.append((unit.otherwise_caught_by, unit.spoiled_otherwise))
    return found
