"""How a run grows: which rows it holds after several selections, and what keeps it from going on.

A run is a set of rows, each asked equally often. Another selection of the same dataset adds its rows, a
larger `--repeat` adds repeats to all of them; nothing shrinks a run, and no answer is asked for twice.
"""

import copy
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from robustbench_tc.errors import UserError
from robustbench_tc.io.numbers import counted
from robustbench_tc.schema import Json, dumps

from .data import Data, Selection

if TYPE_CHECKING:
    from .record import RunFolder, Settings

_GROWS = ("selection", "repeat")
"""The settings that may differ between two starts of one run."""


def rows(data: Data[Any], selections: Iterable[Selection]) -> tuple[Any, ...]:
    """The rows of all selections together, each once, in the dataset's order. Raises UserError."""
    wanted = _ids(data, selections)
    return tuple(row for row in data.rows if row.id in wanted)


def _ids(data: Data[Any], selections: Iterable[Selection]) -> frozenset[str]:
    return frozenset(row.id for one in selections for row in data.select(one))


def joined(data: Data[Any], there: Sequence[Selection], here: Selection) -> tuple[Selection, ...]:
    """As few selections as give the rows of all: one where it does alone, `Selection()` for every row."""
    found = {_ids(data, [one]): one for one in (*there, here)}
    if len(frozenset[str]().union(*found)) == len(data.rows):
        return (Selection(),)
    return tuple(one for ids, one in found.items() if not any(ids < others for others in found))


def grow(folder: "RunFolder", data: Data[Any], settings: "Settings") -> None:
    """Puts into the record and the notes what a run is to hold after a start with these settings, which are
    equal to its own otherwise; the session that follows saves it.

    Raises UserError for more repeats of only a part of the run's rows.
    """
    where, record = folder.path, folder.record
    there, repeat = record.selections, record.settings.repeat
    here, repeats = settings.selection, settings.repeat
    before, asked = _ids(data, there), _ids(data, [here])
    if repeats > repeat and (others := len(before - asked)):
        raise UserError(
            f"{where} holds {counted(others, 'other row')} than those selected here, and asks all equally "
            f"often: for --repeat {repeats} select them too, or take another --out with --reuse {where}"
        )
    whole, most = before | asked, max(repeat, repeats)
    notes = []
    if len(whole) > len(before) or most > repeat:
        notes.append(f"{where} grows: {_size(before, repeat)}, now {_size(whole, most)}")
    elif asked < whole:
        notes.append(f"{where} keeps its {_size(whole, most)}; asked are the {len(asked)} selected here")
    if repeats < most:
        notes.append(f"{where} asks every row {most} times: --repeat {repeats} cannot shrink it")
    expected = len(whole) * most
    if expected > record.expected:
        folder.before = copy.copy(record)
    first, *rest = joined(data, there, here)
    record.settings = msgspec.structs.replace(record.settings, selection=first, repeat=most)
    record.also, record.expected = tuple(rest), expected
    folder.notes += notes


def _size(ids: frozenset[str], repeat: int) -> str:
    rows = counted(len(ids), "row")
    return rows if repeat == 1 else f"{rows} × {repeat}"


def differences(there: "Settings", here: "Settings", *ignored: str) -> list[str]:
    """`temperature: 0.0 there, 0.7 here`, one for each setting but `ignored` that differs."""
    a, b = _flat(there, ignored), _flat(here, ignored)
    return [
        f"{name}: {_shown(a.get(name))} there, {_shown(b.get(name))} here"
        for name in [*a, *(n for n in b if n not in a)]
        if a.get(name) != b.get(name)
    ]


def check(where: object, there: "Settings", here: "Settings") -> None:
    """UserError with every difference, and what helps, where the run at `where` cannot go on or grow.

    Predictions that were imported come from a file as a whole, so such a run does not grow.
    """
    found = differences(there, here, *(() if here.backend == "import" else _GROWS))
    if not found:
        return
    said = f"{where} holds a run with other settings: {'; '.join(found)}. Take another --out"
    if there.fingerprint != here.fingerprint and not answers_differ(there, here):
        said += f" (with --reuse {where} its answers to rows that are the same count there)"
    raise UserError(said)


def answers_differ(there: "Settings", here: "Settings") -> list[str]:
    """`differences` in what an answer depends on besides its row: a version of the dataset does not count."""
    unseen = () if "prompt" in (there.mode, here.mode) else ("prompt_version",)
    return differences(there, here, *_GROWS, "fingerprint", *unseen)


def _flat(settings: "Settings", ignored: Sequence[str]) -> dict[str, Json]:
    flat: dict[str, Json] = {}
    shown = {"fingerprint": "dataset"}
    for name, value in msgspec.to_builtins(settings).items():
        if name not in ignored:
            flat |= value if isinstance(value, dict) else {shown.get(name, name): value}
    return {name: value for name, value in flat.items() if value not in (None, ())}


def _shown(value: Json) -> str:
    text = "not set" if value is None else dumps(value)
    return text if len(text) <= 80 else text[:77] + "…"
