"""Calls of tools that are not registered."""

from collections.abc import Iterable, Sequence
from functools import cache

from robustbench_tc import taxonomy
from robustbench_tc.schema import Call, Sample

CALLED_GHOST = "called_ghost"
"""Flag of a verdict: the tool was called that the perturbation names and nobody registered."""


def unregistered(names: Iterable[str], row: Sample) -> list[str]:
    """The names that no tool of the registry has."""
    listed = {tool.name for tool in row.tools}
    return [name for name in names if name not in listed]


@cache
def names_a_ghost(code: str) -> bool:
    """Whether rows of the type name a tool that is not registered."""
    return taxonomy.known(code) and taxonomy.get(code).traits.get("names_a_ghost") is True


CONTEXT_GHOST = "context_ghost"
"""Flag of a verdict: the tool was called that an earlier exchange names and nobody registered."""


def marks(calls: Sequence[Call], row: Sample, clean: Sample) -> tuple[str, ...]:
    """CALLED_GHOST, or CONTEXT_GHOST where exchanges stand before the request, for a call of a tool that the
    row's messages name and the clean ones do not."""
    mark = CALLED_GHOST
    if not names_a_ghost(row.type_code):
        if not taxonomy.known(row.type_code) or taxonomy.get(row.type_code).channel != "context":
            return ()
        mark = CONTEXT_GHOST
    before = "\n".join(message.content for message in clean.messages)
    now = "\n".join(message.content for message in row.messages)
    missing = unregistered((call.name for call in calls), row)
    return (mark,) if any(name and name in now and name not in before for name in missing) else ()
