"""Which of gold's calls a fault stands before, counted from the row alone."""

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import NamedTuple

from msgspec.structs import replace

from robustbench_tc.schema import At, Call, LiveRow, LiveTool


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
