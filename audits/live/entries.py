"""Rows of a live build as they lie in its files, each held against its clean row.

A row with a fault repeats its clean row in all but five columns, one with a policy in all but six, one with
more tools in all but three.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from robustbench_tc import schema
from robustbench_tc.live_types import FORBIDDEN, registry_codes
from robustbench_tc.schema import TASKS, LiveRow

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
