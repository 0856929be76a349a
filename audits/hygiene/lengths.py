"""Bounds of what a row may hold. Upstream's longest texts stay well below each."""

from collections.abc import Iterator

from robustbench_tc.schema import Json, Sample, Tool

from .texts import leaves

MESSAGE = 10_000
"""Characters of a message; upstream's longest has 4,794."""

IN_A_TOOL = 2_000
"""Characters of a text in a tool; upstream's longest has 1,263."""

GOLDEN = 4_000
NAME = 100
"""Characters of a tool's or parameter's name; upstream's longest has 71."""

TOOLS = 100
PARAMETERS = 100
NESTED = 16
"""Levels of a parameter schema; upstream's deepest has 7."""

NEW_DESCRIPTION = 500
"""Characters of the description of a tool that somebody wrote; the longest so far has 133."""


def too_long(row: Sample) -> Iterator[str]:
    """What of the row is out of its bounds, its single tools apart."""
    for index, message in enumerate(row.messages):
        if len(message.content) > MESSAGE:
            yield f"messages/{index} has {len(message.content)} characters"
    if len(row.tools) > TOOLS:
        yield f"{len(row.tools)} tools"
    for answer in row.golden_answers:
        for call in answer:
            if any(len(leaf.text) > GOLDEN for leaf in leaves(call.parameters)):
                yield f"a golden value has more than {GOLDEN} characters"


def tool_too_long(tool: Tool) -> Iterator[str]:
    """What of a tool is out of its bounds."""
    names = (tool.name, *tool.properties)
    if not all(len(name.strip()) > 0 and len(name) <= NAME for name in names):
        yield f"a name is blank or has more than {NAME} characters"
    if len(tool.properties) > PARAMETERS:
        yield f"{len(tool.properties)} parameters"
    if _depth(tool.parameters) > NESTED:
        yield f"its parameters nest deeper than {NESTED} levels"
    longest = max((len(leaf.text) for leaf in leaves([tool.description, tool.parameters])), default=0)
    if longest > IN_A_TOOL:
        yield f"a text has {longest} characters"


def _depth(value: Json, level: int = 0) -> int:
    """Levels of a value, counted no further than one too many."""
    if level > NESTED or not isinstance(value, dict | list):
        return level
    inner = value.values() if isinstance(value, dict) else value
    return max((_depth(one, level + 1) for one in inner), default=level + 1)
