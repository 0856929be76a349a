"""Golden cases: small clean samples of our own, and how a perturbed row differs from one, to be read.

A type states its cases beside its code (`Case`). `make facts` and a test make each row again and compare, and
`docs/types.md` shows them all.
"""

import difflib
import inspect
from collections.abc import Callable, Iterator

import msgspec

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

_LOGIN = msgspec.structs.replace(
    _DIALOGUE,
    id="apibank__cases_login::clean",
    clean_id="apibank__cases_login",
    messages=(
        Message(
            "user",
            "<user>Book me the berth at Brunt Ness. I am ada, my password is tide9.</user>\n"
            '<tool_call>\n{"name": "GetUserToken", "parameters": {"username": "ada", "password": "tide9"}}\n'
            "</tool_call>\n"
            "<obs> {'token': 'q7w8e9'} </obs>\n"
            "<response>I will book it.</response>\n"
            "<user> With this in mind, answer with one tool call.</user>",
        ),
    ),
    tools=(
        _tool("BookBerth", "Books a berth.", token=("string", "Token."), harbour=("string", "The harbour.")),
        _tool(
            "GetUserToken", "Gets a token.", username=("string", "Name."), password=("string", "Password.")
        ),
    ),
    golden_answers=((Call("BookBerth", {"token": ["q7w8e9"], "harbour": ["Brunt Ness"]}),),),
)


def _renamed(tool: Tool, name: str, **parameters: str) -> Tool:
    """The tool under another name, its parameters under others (old name → new one)."""
    properties = {parameters.get(key, key): inner for key, inner in tool.properties.items()}
    schema = {**tool.parameters, "properties": properties, "required": list(properties)}
    return Tool(name, tool.description, schema)


def _noisy(menu: str, reserve: str, **parameters: str) -> Sample:
    """The table's sample with noisy names."""
    find_menu, table = _TABLE.tools
    values = _TABLE.golden_answers[0][0].parameters
    gold = Call(reserve, {parameters.get(key, key): found for key, found in values.items()})
    tools = (_renamed(find_menu, menu), _renamed(table, reserve, **parameters))
    return msgspec.structs.replace(_TABLE, tools=tools, golden_answers=((gold,),))


LENT: dict[str, tuple[Sample, ...]] = {
    "pool": (
        msgspec.structs.replace(
            _TABLE,
            tools=tuple(
                _tool(f"{verb}_{noun}", f"{verb.capitalize()}s a {noun}.", key=("string", "Which one"))
                for verb in ("paint", "sell", "wash", "lift", "weigh")
                for noun in ("boat", "crate", "piano", "fence", "kite", "lamp")
            ),
        ),
    ),
    "siblings": (
        msgspec.structs.replace(
            _TABLE, tools=(_tool("cancel_table", "Cancels a table.", place=("string", "Where")),)
        ),
    ),
    "irrelevant": (
        msgspec.structs.replace(
            _TABLE,
            messages=(Message("user", "How long may a kite be flown at Brunt Ness?"),),
            tools=(_tool("mow_lawn", "Mows a lawn.", garden=("string", "Which one")),),
            golden_answers=((),),
            gold_tool_index=None,
        ),
    ),
    "rotbench_slight": (_noisy("fnd_menu", "resqerve", seats="seWts"),),
    "rotbench_medium": (_noisy("unem_dnif", "evreser"),),
    "rotbench_heavy": (_noisy("reserve", "find_menu"),),
    "rotbench_union": (_noisy("reserve", "fimd_menu", place="ecalp"),),
}
"""What the table's sample borrows, by loan (`builders/plan.py`)."""
_LETTER = msgspec.structs.replace(
    _TABLE,
    id="bfcl_v3__cases__letter::clean",
    clean_id="bfcl_v3__cases__letter",
    messages=(
        Message(
            "user",
            "Hello there! Our whole family is coming over tonight.\n"
            "Please book a quiet table at Luna for us.\nIt should have 2 comfortable seats near the window.",
        ),
    ),
)


_FERRY = Sample(
    id="bfcl_v3__cases__ferry::clean",
    clean_id="bfcl_v3__cases__ferry",
    type_code="clean",
    source="bfcl_v3",
    category="simple",
    messages=(Message("user", "Which ferries leave Mallow Quay on Friday?"),),
    tools=(
        Tool(
            "ferries",
            "Lists departures.",
            {
                "type": "object",
                "properties": {
                    "port": {"type": "string", "description": "From where"},
                    "day": {"type": "string", "description": "Which day"},
                    "bikes": {"type": "boolean", "description": "Only those that take bikes"},
                },
                "required": ["port"],
            },
        ),
    ),
    golden_answers=((Call("ferries", {"port": ["Mallow Quay"], "day": ["Friday"]}),),),
    output_format="python_calls",
    gold_tool_index=0,
)

CLEAN: dict[str, Sample] = {
    "table": _TABLE, "dialogue": _DIALOGUE, "login": _LOGIN, "letter": _LETTER, "ferry": _FERRY,
}  # fmt: skip
"""`table`: one message, two tools. `dialogue`: a transcript whose history calls the gold tool. `login`: one
whose history fetched a token that the golden call needs. `letter`: as `table`, in many words. `ferry`: a gold
tool with an optional parameter that is used, and one that is not."""

_DONORS = (_TABLE, _DIALOGUE)
"""Their tools lend parameters; a new case moves no other."""


def context_of(unit: Perturbation, case: Case) -> Context:
    """What the unit needs for the case: its texts, and the tools of the first two cases as donors."""
    clean = CLEAN[case.clean]
    written = {
        request.key: Text(case.texts[request.input], "hand-written")
        for request in unit.requests(clean)
        if request.input in case.texts
    }
    donors = {clean.source: [tool for sample in _DONORS for tool in sample.tools]}
    return Context(written, donors, loans=LENT, taken=lambda sample, surfaces: False)


def row_of(unit: Perturbation, case: Case) -> Sample:
    """The unit's row of the case, drawn with seed 0. Raises ValueError where the type does not apply."""
    clean = CLEAN[case.clean]
    try:
        rng = seeding.rng(0, unit.draws_as or unit.code, clean.clean_id)
        return unit.perturb(clean, rng, context_of(unit, case))
    except NotApplicable as skip:
        raise ValueError(f"{unit.code} does not apply to its case {case.clean!r}: {skip.reason}") from None


def difference(clean: Sample, row: Sample) -> str:
    """The lines that only one of the two has: `- ` of the clean row, `+ ` of the other."""
    lines = difflib.unified_diff(list(_lines(clean)), list(_lines(row)), n=0, lineterm="")
    return "\n".join(f"{line[0]} {line[1:]}" for line in list(lines)[2:] if not line.startswith("@@"))


def reads(case: Case) -> str:
    """What the case says, without the indentation of its module."""
    return inspect.cleandoc(case.reads)


SHOWN = 4
"""Messages of a long conversation that are shown: the first half and the last half of so many."""


def _lines(row: Sample) -> Iterator[str]:
    many = len(row.messages) > 2 * SHOWN
    for index, message in enumerate(row.messages):
        if many and SHOWN // 2 <= index < len(row.messages) - SHOWN // 2:
            if index == SHOWN // 2:
                left_out = row.messages[index : len(row.messages) - SHOWN // 2]
                length = sum(len(one.content) for one in left_out)
                yield f"(and {len(left_out)} messages more, of {length} characters)"
            continue
        first, *rest = message.content.split("\n")
        if many and index < len(row.messages) - 1:
            yield f"{message.role}: {first[:80]}…"
            continue
        yield f"{message.role}: {first}"
        yield from (f"    {line}" for line in rest)
    for index, tool in enumerate(row.tools):
        mark = "gold tool" if index == row.gold_tool_index else "tool"
        parameters = ", ".join(_parameter(name, inner) for name, inner in tool.properties.items())
        yield f"{mark}: {tool.name}({parameters}) {tool.description}".rstrip()
    for answer in row.golden_answers:
        calls = "; ".join(f"{call.name} {dumps(call.parameters)}" for call in answer)
        yield f"gold: {calls or 'no call'}"
    if row.injected_error is not None:
        first, *rest = row.injected_error.split("\n")
        yield f"the first call is answered: {first}"
        yield from (f"    {line}" for line in rest)
    for flag in row.flags:
        yield f"flag: {flag}"
    for value, surface in value_map(row).items():
        yield f"{value} is written: {surface}"


def _parameter(name: str, inner: object) -> str:
    if not isinstance(inner, dict):
        return name
    text = f"{name}: {inner['description']}" if inner.get("description") else name
    return f"{text} {inner['pattern']}" if "pattern" in inner else text


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
