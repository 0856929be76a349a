"""A run's journal: what was answered and what came of calls, a line each, on disk before it counts.

    {"key": …, "id": …, "repeat": 0, "number": 1, "status": "ok", "text": …}      an Answer
    {"key": "…:results", "id": …, "repeat": 0, "number": 1, "results": […]}      Results

`replay` answers a dialogue from it alone: that is how predictions, episodes and reuse are read.
"""

import asyncio
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeAlias

import msgspec

from robustbench_tc.errors import UserError
from robustbench_tc.llm import Store
from robustbench_tc.llm.store import read_lines
from robustbench_tc.schema import ASKED_AGAIN, Json, LiveRow, Sample, Step

from .dialogue import Dialogue, begin
from .live.carrying_out import came_of
from .record import Answer, Settings


class Lines(dict[str, dict[str, Json]]):
    """A journal in memory, without recorded failures, which are no answers."""

    def __init__(self, path: Path) -> None:
        """Of the journal at `path`, which another process may be writing. A later line under a key replaces
        an earlier one."""
        self.path = path
        lines = dict(read_lines(path)) if path.is_file() else {}
        super().__init__({key: one for key, one in lines.items() if one.get("status") not in ASKED_AGAIN})


Journal: TypeAlias = Store | Lines
"""What was written down of a run, by key."""


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """What came of the calls of one reply: a line of the journal."""

    id: str
    repeat: int
    number: int
    """Of the reply, from 1."""
    results: tuple[Step, ...]


async def keep(journal: Store, key: str, line: Answer | Results) -> None:
    """Writes a line, whatever ends the session meanwhile: an answer that came was paid for."""
    writing = asyncio.ensure_future(journal.put(key, msgspec.to_builtins(line)))
    try:
        await asyncio.shield(writing)
    except asyncio.CancelledError:
        await writing
        raise


def answer(journal: Journal, key: str) -> Answer | None:
    """The journal's latest answer under `key`."""
    found = journal.get(key)
    return None if found is None else as_answer(journal.path, found)


def as_answer(place: Path, line: dict[str, Json]) -> Answer:
    """A line of the journal at `place`. Raises UserError for what is no answer, or one of a later version."""
    try:
        return msgspec.convert(line, Answer)
    except msgspec.ValidationError as error:
        raise UserError(
            f"{place} holds other records than answers ({error}): it was changed by hand, or is of another "
            "version; begin again with --fresh"
        ) from None


def results(journal: Journal, dialogue: Dialogue) -> tuple[Step, ...] | None:
    """What came of the calls that wait; None where the journal has no line of them.

    Raises UserError where the journal has results of other calls than the reply and the defences made.
    """
    found = journal.get(dialogue.key())
    if found is None or dialogue.doing is None:
        return None
    try:
        steps = msgspec.convert(found, Results).results
    except msgspec.ValidationError:
        steps = ()
    if not came_of(dialogue.doing, steps):
        raise UserError(
            f"{dialogue.env.row.id}, repeat {dialogue.repeat}, answer {dialogue.number}: the journal was "
            "changed by hand (its results are not those of the answer's calls); begin again with --fresh"
        )
    return steps


def taken(journal: Journal, dialogue: Dialogue) -> Iterator[str]:
    """Answers the dialogue from a journal alone, as far as that goes; the keys of its lines, one by one."""
    while dialogue.ended is None and (line := journal.get(key := dialogue.key())) is not None:
        yield key
        if dialogue.doing is None:
            dialogue.reply(as_answer(journal.path, line))
        elif (steps := results(journal, dialogue)) is not None:
            dialogue.done(steps)


def replay(journal: Journal, dialogue: Dialogue) -> bool:
    """Answers the dialogue from a journal alone; False where a line is not there before it has ended."""
    for _ in taken(journal, dialogue):
        pass
    return dialogue.ended is not None


def finished(journal: Journal, rows: Iterable[Sample | LiveRow], settings: Settings) -> Iterator[Dialogue]:
    """The dialogues that the journal has to their end: rows in order, repeats of a row together."""
    for row in rows:
        for repeat in range(settings.repeat):
            if replay(journal, dialogue := begin(row, settings, repeat)):
                yield dialogue
