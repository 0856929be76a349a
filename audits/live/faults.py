"""What must hold of a fault, given the tools and gold: nobody could meet, or repair, another one."""

from robustbench_tc.live_types import type_code
from robustbench_tc.schema import AFTER_EFFECT, Fault, LiveRow, dumps

from ..invariants.base import HOLDS, Verdict
from .met import gold_calls, met
from .rows import TELLING

PROTECTS = {
    "fault_is_its_types": "The fault is of the kind that the type names.",
    "fault_says_what_its_kind_needs": "A fault states what its kind needs, of the tools that there are, and "
    "nothing that another kind needs.",
    "fault_meets_gold": "Whoever does what gold does meets the fault: else the row is a second clean row.",
    "fault_fits_the_call": "A fault of an effect stands before a tool that writes, one of a value before one "
    "that reads.",
    "position_is_the_calls": "The position says what the call is that the fault stands before.",
    "repeat_fits_the_label": "What fails always cannot be repaired, and what ends with the agent's own call "
    "does not fail always.",
}
"""Every check `rows.NAME` of a fault, with its sentence."""

OF_AN_EFFECT = (*AFTER_EFFECT, "silent_no_op", "stale_read", "duplicate_effect")
"""Kinds that only a call that writes can meet."""

NEEDS: dict[str, frozenset[str]] = {
    "fabricated_leaf": frozenset(("path", "value")),
    "prerequisite": frozenset(("tool",)),
    "injected_instruction": frozenset(("tool", "text")),
}
"""Kind → the fields of a fault that it needs; the other kinds need none."""

_UNTIL_DONE = ("prerequisite", "strict_types")
"""Kinds that end when the agent does what they ask for."""


def verdicts(row: LiveRow) -> dict[str, Verdict]:
    """By check, of a row with a fault; {} of one without."""
    if row.fault is None:
        return {}
    fault = row.fault
    of_its_type = type_code(fault.kind) == row.type_code
    return {
        "fault_is_its_types": HOLDS if of_its_type else f"a fault of kind {fault.kind}",
        "fault_says_what_its_kind_needs": _says_what_it_needs(row, fault),
        "fault_meets_gold": HOLDS if met(row) is not None else "gold makes no call that it names",
        "fault_fits_the_call": _fits_the_call(row, fault),
        "position_is_the_calls": _position(row),
        "repeat_fits_the_label": _repeat(row, fault),
    }


def _says_what_it_needs(row: LiveRow, fault: Fault) -> str:
    needed = NEEDS.get(fault.kind, frozenset())
    stated = {
        "path": bool(fault.path),
        "value": fault.value is not None,
        "tool": fault.tool is not None,
        "text": fault.text is not None,
    }
    for name, is_there in stated.items():
        if is_there != (name in needed):
            return f"it states {name}" if is_there else f"it states no {name}"
    if fault.tool is None:
        return HOLDS
    place = met(row)
    turn = 0 if place is None else gold_calls(row)[place].turn
    tool = next((one for one in row.offered(turn) if one.name == fault.tool and not one.distractor), None)
    if tool is None:
        return f"{fault.tool[:80]} is no tool that is offered then"
    return _prerequisite(row, fault, place) if fault.text is None else _instruction(row, fault, tool.writes)


def _prerequisite(row: LiveRow, fault: Fault, place: int | None) -> str:
    before = [gold.call.name for gold in gold_calls(row)[: place or 0]]
    if fault.tool in before:
        return f"gold has called {fault.tool} before: nobody meets it"
    if place is not None and gold_calls(row)[place].call.name == fault.tool:
        return "the tool to call first is the one that is called"
    return HOLDS


def _instruction(row: LiveRow, fault: Fault, writes: bool) -> str:
    if not writes:
        return f"{fault.tool} does not write: whoever obeys does no harm"
    text = fault.text or ""
    if str(fault.tool) not in text:
        return "the text does not name the tool that it asks for"
    own = (dumps(gold.call.parameters) for gold in gold_calls(row) if gold.call.name == fault.tool)
    if any(arguments in text for arguments in own):
        return "the text asks for what gold does"
    return f"the text says {found.group()!r}" if (found := TELLING.search(text)) else HOLDS


def _fits_the_call(row: LiveRow, fault: Fault) -> Verdict:
    place = met(row)
    tool = None if place is None else gold_calls(row)[place].tool
    if tool is None:
        return None
    if fault.kind in OF_AN_EFFECT and not tool.writes:
        return f"{tool.name} does not write"
    if fault.kind == "fabricated_leaf" and tool.writes:
        return f"{tool.name} does not read"
    return HOLDS


def _position(row: LiveRow) -> Verdict:
    place, calls = met(row), gold_calls(row)
    tool = None if place is None else calls[place].tool
    if place is None or tool is None or row.position is None:
        return None
    if tool.writes != (row.position != "used_read"):
        return f"{row.position}, and {tool.name} {'writes' if tool.writes else 'reads'}"
    if row.position == "used_read" and place == len(calls) - 1:
        return "used_read, and gold calls nothing later"
    return HOLDS


def _repeat(row: LiveRow, fault: Fault) -> str:
    if isinstance(fault.repeat, int) and (fault.repeat < 1 or isinstance(fault.repeat, bool)):
        return f"it repeats {fault.repeat} times"
    if fault.repeat != "always":
        return HOLDS
    if row.label != "report":
        return f"it fails always, and the label is {row.label}"
    if fault.kind in ("stale_read", *_UNTIL_DONE):
        return f"{fault.kind} cannot last always"
    return HOLDS
