"""The rows of a live dataset, the worlds that they name, and whether they can be played in them."""

from collections.abc import Collection, Iterable, Sequence
from fnmatch import fnmatchcase
from typing import ClassVar

import msgspec

from robustbench_tc import live_types, taxonomy
from robustbench_tc.errors import UserError
from robustbench_tc.schema import Fault, LiveRow, row_hash
from robustbench_tc.worlds.faults import meant
from robustbench_tc.worlds.find import BFCL, BUNDLED, find
from robustbench_tc.worlds.handle import Start, WorldType

from ..data import Data, Origin


class LiveData(Data[LiveRow], frozen=True, kw_only=True, dict=True):
    """Rows that are played in worlds: the tasks, then those of each kind of fault and of each registry type,
    which are selected with the clean rows of their tasks."""

    digest_of = staticmethod(row_hash)
    by: ClassVar[Origin] = "world"
    anchored: ClassVar[bool] = True

    def clean(self) -> dict[str, LiveRow]:
        """The clean row of each task."""
        return {row.clean_id: row for row in self.rows if row.clean}


def codes(words: Iterable[str]) -> tuple[str, ...]:
    """Type codes for what a user named: `clean`, a code, a kind of fault, a registry type, or a pack."""
    known = {*live_types.FAULT_TYPES, *live_types.registry_types()}
    plain = (one for word in words for one in live_types.PACKS.get(word.removeprefix("live_"), (word,)))
    named = map(taxonomy.code_of, plain)
    return tuple(dict.fromkeys(f"live_{one}" if one in known else one for one in named))


def world_types(
    rows: Iterable[LiveRow], files: Sequence[str] = (), python: str | None = None
) -> dict[str, WorldType]:
    """The world of each name that rows have. `files`: worlds that this package does not bring.

    A dataset never brings code along: whoever runs it names the file. Raises UserError.
    """
    own = {found.name: found for found in map(find, files)}
    names = dict.fromkeys(row.world for row in rows)
    for name in names:
        if name not in own and name not in (*BUNDLED, BFCL):
            raise UserError(f"world {name!r} is not bundled: name its Python file with --worlds")
    return {name: own.get(name) or find(name, python=python) for name in names}


# --- whether a row can be played at all: an edited dataset is refused before anything is asked ------------


def mistake(row: LiveRow, clean: LiveRow) -> str | None:
    """What is wrong with a row, given the clean row of its task; None where nothing is."""
    if row.id != f"{row.clean_id}::{row.type_code}":
        return "its id is not its task and its type"
    if row is clean:
        return _of_task(row)
    own = {"id": clean.id, "type_code": clean.type_code}
    if row.type_code in live_types.registry_codes():
        if msgspec.structs.replace(row, tools=clean.tools, **own) != clean:
            return "it differs from its clean row in more than the tools"
        return _of_registry(row, clean)
    if row.type_code == live_types.FORBIDDEN:  # the same with the text that is in front of its first turn
        clean = clean.with_policy("".join(m.content for turn in row.turns[:1] for m in turn.messages[:1]))
    if msgspec.structs.replace(row, fault=None, position=None, label=None, **own) != clean:
        return "it differs from its clean row in more than the fault"
    return _of_fault(row)


def _of_task(row: LiveRow) -> str | None:
    try:
        msgspec.convert(row.initial_state, Start)
    except msgspec.ValidationError as error:
        return f"its initial_state opens no world: {error}"
    golden, names = len(row.golden_calls), {tool.name for tool in row.tools}
    checks = [
        (row.fault is not None, "a clean row has no fault"),
        (not row.turns, "it has no turns"),
        (golden != len(row.turns), f"it has {len(row.turns)} turns, but golden_calls for {golden}"),
    ]
    for number, turn in enumerate(row.turns, 1):
        roles, unknown = {message.role for message in turn.messages}, set(turn.adds) - names
        checks += [
            (roles != {"user"}, f"turn {number} needs messages of the user, and no others"),
            (bool(unknown), f"turn {number} adds tools that the row has not: {sorted(unknown)}"),
        ]
    return next((why for wrong, why in checks if wrong), None)


def _of_registry(row: LiveRow, clean: LiveRow) -> str | None:
    own = tuple(tool for tool in row.tools if not tool.distractor)
    if own != clean.tools or own == row.tools:
        return "its tools are not those of its clean row and others that are marked as distractors"
    for call in (call for calls in row.golden_calls for call in calls):
        tool = meant(row.tools, call.name, call.parameters)
        if tool is not None and tool.distractor:
            return f"a call of gold's goes to a tool that is not of the world: {call.name!r}"
    return None


def _of_fault(row: LiveRow) -> str | None:
    name = row.type_code.removeprefix("live_")
    letters, names = live_types.CASCADES.get(name), {tool.name for tool in row.tools}
    typed = [one.kind for one in row.faults] == [name] if letters is None else len(row.faults) == len(letters)
    if not typed or any(one.then for one in row.faults[1:]):
        return f"its fault is not of type {row.type_code}"
    return next(filter(None, (_of_one(fault, names) for fault in row.faults)), None)


def _of_one(fault: Fault, names: Collection[str]) -> str | None:
    needs = {
        "fabricated_leaf": "path",
        "prerequisite": "tool",
        "injected_instruction": "text",
        "forbidden": "text",
    }
    needed = needs.get(fault.kind)
    pattern, often = fault.at.tool, fault.repeat
    checks = [
        (needed is not None and not getattr(fault, needed), f"its fault needs {needed!r}"),
        (
            fault.kind == "stale_read" and often == "always",
            "its fault shows an old state for ever: give a number to repeat",
        ),
        (isinstance(often, int) and often < 1, f"its fault repeats {often} times"),
        (
            pattern is not None and not any(fnmatchcase(name, pattern) for name in names),
            f"its fault stands at a tool that the row has not: {pattern!r}",
        ),
        (
            fault.tool is not None and fault.tool not in names,
            f"its fault names a tool that the row has not: {fault.tool!r}",
        ),
    ]
    return next((why for wrong, why in checks if wrong), None)
