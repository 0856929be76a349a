"""Rows of a live build as they lie in its files, each beside its clean row; which gold call meets a fault.

A row with a fault repeats its clean row in all but five columns, one with a policy in all but six, one with
more tools in all but three.
"""

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from msgspec.structs import replace

from robustbench_tc import schema
from robustbench_tc.live_types import FORBIDDEN, registry_codes
from robustbench_tc.schema import TASKS, At, Call, LiveRow, LiveTool

from ..folder import Folder

OWN = ("id", "type_code", "fault", "position", "label")
"""Columns in which a row with a fault differs from its clean row."""

OWN_OF_A_POLICY = (*OWN, "turns")
"""Columns in which a row with a policy does: `policy_is_in_front` looks at its turns."""

OWN_OF_A_REGISTRY = ("id", "type_code", "tools")
"""Columns in which a row with more tools does."""

COLUMNS = LiveRow.__struct_fields__


class Entry(NamedTuple):
    """A row of the build."""

    where: str
    """Its id, or its place where it has none."""
    config: str
    row: LiveRow | None
    """None where it does not decode."""
    problem: str
    """Why it does not decode."""
    clean: LiveRow | None
    """The clean row of the same task, for a row of another config."""
    differs: tuple[str, ...]
    """Columns, but for its own, that are not the clean row's."""


class _Clean(NamedTuple):
    raw: dict[str, Any]
    row: LiveRow


def entries(folder: Folder) -> Iterator[Entry]:
    """Every row, those of `tasks` first. Of two clean rows of one task the first is compared with."""
    clean: dict[str, _Clean] = {}
    there = folder.configs()
    for config in sorted(there, key=lambda name: (name != TASKS, name)):
        for number, raw in enumerate(folder.rows(config)):
            entry = _entry(config, number, raw, clean)
            if config == TASKS and entry.row is not None:
                clean.setdefault(entry.row.clean_id, _Clean(raw, entry.row))
            yield entry


def _entry(config: str, number: int, raw: dict[str, Any], clean: dict[str, _Clean]) -> Entry:
    id_ = raw.get("id")
    where = id_ if isinstance(id_, str) and id_ else f"{config}[{number}]"
    of = clean.get(str(raw.get("clean_id"))) if config != TASKS else None
    of_types = {FORBIDDEN: OWN_OF_A_POLICY, **dict.fromkeys(registry_codes(), OWN_OF_A_REGISTRY)}
    own = of_types.get(config, OWN)
    differs = tuple(n for n in COLUMNS if n not in own and raw.get(n) != of.raw.get(n)) if of else ()
    try:
        if missing := [name for name in COLUMNS if name not in raw]:
            raise ValueError(f"column {missing[0]} is missing")
        row = schema.record(raw, LiveRow)
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        problem = f"it does not decode: {type(error).__name__} {str(error)[:140]}"
        return Entry(where, config, None, problem, of and of.row, differs)
    return Entry(where, config, row, "", of and of.row, differs)


# --- gold's calls -------------------------------------------------------------------------------------


class GoldCall(NamedTuple):
    """One of gold's calls."""

    turn: int
    call: Call
    tool: LiveTool | None
    """None where no tool of the world is called so."""


def gold_calls(row: LiveRow) -> list[GoldCall]:
    """Gold's calls over all turns, each with its tool."""
    tools = {tool.name: tool for tool in reversed(row.tools) if not tool.distractor}
    return [
        GoldCall(turn, call, tools.get(call.name))
        for turn, calls in enumerate(row.golden_calls)
        for call in calls
    ]


def met(row: LiveRow) -> int | None:
    """The index in `gold_calls` of the first call that the row's fault names; None where there is none."""
    if row.fault is None:
        return None
    at = row.fault.at
    named = [place for place, gold in enumerate(gold_calls(row)) if _names(at, gold)]
    number = at.call or at.write or at.read or at.nth
    return named[number - 1] if len(named) >= number else None


def each_fault(row: LiveRow) -> Iterator[LiveRow]:
    """The row with each of its faults alone, where gold meets it: one on the retry of a call then stands
    before that call. The position is of the first."""
    for number, fault in enumerate(row.faults):
        retried = sum(one.at.tool == fault.at.tool for one in row.faults[:number])
        at = replace(fault.at, nth=max(1, fault.at.nth - retried))
        position = None if number else row.position
        yield replace(row, fault=replace(fault, at=at, then=()), position=position)


def _names(at: At, gold: GoldCall) -> bool:
    if at.tool is not None:
        return fnmatchcase(gold.call.name, at.tool)
    if at.call is not None:
        return True
    return gold.tool is not None and gold.tool.writes == (at.write is not None)
