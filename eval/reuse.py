"""Answers that another run has already: `rbtc eval --reuse RUN` takes them instead of asking again."""

from collections.abc import Container, Sequence
from pathlib import Path

import msgspec

from robustbench_tc.errors import UserError
from robustbench_tc.llm import Store
from robustbench_tc.llm.store import read_lines
from robustbench_tc.schema import ASKED_AGAIN, Json, Sample, asked_hash

from . import growth
from .journal import answer, as_answer
from .predictions import kept
from .prompts import wording
from .record import Answer, RunFolder, Settings, open_run
from .scripted import most_replies


def check(runs: Sequence[Path], settings: Settings, out: Path) -> None:
    """UserError for a folder whose answers cannot be taken: no run, other settings, the run itself."""
    for path in runs:
        if path.resolve() == out.resolve():
            raise UserError(f"--reuse {path} is the run itself: the same command goes on in it")
        folder = open_run(path)
        if found := growth.answers_differ(folder.record.settings, settings):
            raise UserError(f"--reuse {path}: its answers were got under other settings: {'; '.join(found)}")
        if not folder.journal_path.is_file():
            raise UserError(f"--reuse {path}: it has no journal.jsonl to take answers from")


def take(folder: RunFolder, rows: Sequence[Sample], runs: Sequence[Path]) -> None:
    """Puts answers of `runs` that `folder` is to ask for into its journal; the other runs stay as they are.

    An answer is taken under its key: equal model, mode, decoding, prompts and what the row asks, in whatever
    version of the dataset and whatever is right there. Recorded failures are not answers. What was taken, and
    how many rows are left to ask, is counted in the run record and in the folder's notes.
    """
    if not runs:
        return
    settings, record = folder.record.settings, folder.record
    keys = [
        (
            row,
            [settings.key(asked_hash(row), repeat, n + 1, wording(row)) for n in range(most_replies(row))],
        )
        for row in rows
        for repeat in range(settings.repeat)
    ]
    with folder.journal() as journal:
        for path in runs:
            there = _answers(path, {key for _, of_row in keys for key in of_row})
            taken: dict[str, dict[str, Json]] = {}
            for row, of_row in keys:
                for key in _missing(journal, of_row, there):
                    taken[key] = msgspec.to_builtins(
                        msgspec.structs.replace(there[key], id=row.id, reused=True)
                    )
            journal.extend(taken)
            record.reused[str(path)] = record.reused.get(str(path), 0) + len(taken)
            folder.notes.append(f"reused {len(taken)} answers of {path}")
        left = {row.id for row in rows if not _answered(journal, row, settings)}
        folder.notes.append(f"{len(left)} of {len(rows)} rows are left to ask")
    folder.save()


def _answered(journal: Store, row: Sample, settings: Settings) -> bool:
    """Whether all repeats of a row have every pass."""
    found = [kept(journal, row, settings, repeat) for repeat in range(settings.repeat)]
    return all(answers and _kept(answers[-1]) is not None for answers in found)


def _missing(journal: Store, passes: Sequence[str], there: dict[str, Answer]) -> list[str]:
    """Which of a row's answers are taken: those that lack here, a later one only behind its own earlier."""
    found = []
    for key in passes:
        ours, theirs = _kept(answer(journal, key)), there.get(key)
        if theirs is None:
            break
        if ours is None:
            found.append(key)
        elif (ours.text, ours.tool_calls) != (theirs.text, theirs.tool_calls):
            break
    return found


def _kept(found: Answer | None) -> Answer | None:
    """An answer; a recorded failure is none."""
    return None if found is None or found.status in ASKED_AGAIN else found


def _answers(path: Path, wanted: Container[str]) -> dict[str, Answer]:
    """The answers of a run by key. A later line under a key replaces an earlier one, as in its journal."""
    place = open_run(path).journal_path
    found = {key: as_answer(place, line) for key, line in read_lines(place) if key in wanted}
    return {key: one for key, one in found.items() if _kept(one) is not None}
