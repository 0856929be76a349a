"""What must hold of a row whose registry has more tools, given its clean row."""

from collections.abc import Callable

from robustbench_tc import taxonomy
from robustbench_tc.live_types import registry_types, type_code
from robustbench_tc.schema import LiveRow, LiveTool
from robustbench_tc.taxonomy import PerturbationType

from ..invariants.base import HOLDS, Verdict
from .met import gold_calls

PROTECTS = {
    "only_tools_come_in": "A row of a registry type has its clean row's tools, unchanged and in their order, "
    "and others that are marked as not of the world: any other difference would be measured with it.",
    "what_comes_in_is_its_types": "What comes in is what the type says: as many tools, so named, described "
    "and with such parameters.",
}
"""Every check `rows.NAME` of a row of a registry type, with its sentence."""


def verdicts(row: LiveRow, clean: LiveRow | None) -> dict[str, Verdict]:
    """By check; {} of a row of another type, and of one without a clean row."""
    names = (name for name in registry_types() if type_code(name) == row.type_code)
    kind = next(map(taxonomy.get, names), None)
    if kind is None or clean is None:
        return {}
    return {
        "only_tools_come_in": _only_tools(row, clean),
        "what_comes_in_is_its_types": _of_its_type(row, clean, kind),
    }


def _only_tools(row: LiveRow, clean: LiveRow) -> str:
    own = tuple(tool for tool in row.tools if not tool.distractor)
    if own != clean.tools:
        names = [tool.name for tool in clean.tools]
        other = next((tool.name for tool in own if tool not in clean.tools), None)
        if other is None:
            return "the clean row's tools are in another order, or one is missing"
        return f"{other[:80]} is {'changed' if other in names else 'called a tool of the world'}"
    for tool in row.tools:
        if tool.distractor and (tool.writes or tool.idempotent or tool.undo is not None):
            return f"{tool.name[:80]} is not of the world, and says what it does there"
    return HOLDS


def _of_its_type(row: LiveRow, clean: LiveRow, kind: PerturbationType) -> Verdict:
    new = [tool for tool in row.tools if tool.distractor]
    if not new:
        return "no tool comes in"
    look = _LOOKS.get(kind.series or kind.channel)
    return HOLDS if look is None else look(new, clean, kind)


def _flood(new: list[LiveTool], clean: LiveRow, kind: PerturbationType) -> Verdict:
    if len(new) != kind.dose:
        return f"{len(new)} tools come in, not {kind.dose:g}"
    names = [tool.name for tool in new]
    taken = {tool.name for tool in clean.tools}
    again = next((name for at, name in enumerate(names) if name in taken or name in names[:at]), None)
    return HOLDS if again is None else f"{again[:80]} comes in, and the name is taken"


def _namesake(new: list[LiveTool], clean: LiveRow, kind: PerturbationType) -> Verdict:
    first = next((gold for gold in gold_calls(clean) if gold.tool is not None), None)
    if first is None or first.tool is None or [tool.name for tool in new] != [first.tool.name]:
        return "what comes in is not one tool with the name of gold's first"
    described = {
        "none": new[0].description == "",
        "gold": new[0].description == first.tool.description,
        "donor": new[0].description not in ("", first.tool.description),
    }
    if not described[str(kind.traits["description"])]:
        return f"its description is not as {kind.code} has it"
    own, golds = set(new[0].plain.properties), set(first.tool.plain.properties)
    right = bool(own) and own != golds if kind.traits["wrong_parameters"] else not own
    return HOLDS if right else f"its parameters are not as {kind.code} has them"


_LOOKS: dict[str, Callable[[list[LiveTool], LiveRow, PerturbationType], Verdict]] = {
    "namesake": _namesake,
    "flood": _flood,
}
"""By the type's series, or its channel."""
