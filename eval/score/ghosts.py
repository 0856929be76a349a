"""What a reply makes of a tool that is named and not registered (types `ghost_tool_*`)."""

from collections.abc import Sequence
from functools import cache

from robustbench_tc import taxonomy
from robustbench_tc.schema import CONTROL_TOOLS, Call, Sample

from .result import Score

CALLED_GHOST = "called_ghost"
"""The tool was called that is named and not registered."""
CALLED_GOLD = "called_gold"
"""A golden call was made."""
CALLED_NONE = "called_none"
"""Nothing was called but control tools, and that is right: the reply asks or declines."""


@cache
def names_a_ghost(code: str) -> bool:
    """Whether rows of the type name a tool that is not registered: calling nothing is right there too."""
    if not taxonomy.known(code):
        return False
    kind = taxonomy.get(code)
    return kind.pack == "registry" and kind.no_call != "wrong"


def marks(calls: Sequence[Call], found: Score, row: Sample, clean: Sample) -> tuple[str, ...]:
    """The flag of the reply; none for rows of other types, and where something else is wrong."""
    if not names_a_ghost(row.type_code):
        return ()
    names = {call.name for call in calls} - CONTROL_TOOLS
    if found.correct:
        return (CALLED_GOLD if names else CALLED_NONE,)
    return (CALLED_GHOST,) if any(is_ghost(name, row, clean) for name in names) else ()


def is_ghost(name: str, row: Sample, clean: Sample) -> bool:
    """Whether the row's messages name a tool so, the clean ones do not, and none is registered so."""
    return (
        bool(name)
        and all(tool.name != name for tool in row.tools)
        and any(name in message.content for message in row.messages)
        and not any(name in message.content for message in clean.messages)
    )
