"""Answers that another run has already: `rbtc eval --reuse RUN` takes them instead of asking again."""

from collections.abc import Sequence
from pathlib import Path

from robustbench_tc.errors import UserError
from robustbench_tc.schema import Json

from . import growth
from .data import Selection
from .inputs import Dataset
from .journal import Lines, replay
from .live.inputs import LiveData
from .record import RunFolder, Settings, open_run
from .session import begin


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


def take(folder: RunFolder, data: Dataset | LiveData, selection: Selection, runs: Sequence[Path]) -> None:
    """Puts answers of `runs` that `folder` is to ask for into its journal; the other runs stay as they are.

    An answer is taken under its key: equal model, mode, decoding, prompts and what the row asks, in whatever
    version of the dataset and whatever is right there; with the calls of a live row goes what came of them.
    Recorded failures are not answers. What was taken, and how many rows are left to ask, is counted in the
    record and in the folder's notes.
    """
    if not runs:
        return
    settings, record, rows = folder.record.settings, folder.record, data.select(selection)
    with folder.journal() as journal:
        ours = Lines.of(journal.path)
        for path in runs:
            theirs = Lines.of(open_run(path).journal_path)
            taken: dict[str, dict[str, Json]] = {}
            for row in rows:
                for repeat in range(settings.repeat):
                    found = Lines(theirs.path, theirs.lines)
                    replay(found, begin(row, settings, repeat))
                    for key in found.read:
                        if key not in ours.lines:
                            taken[key] = theirs.lines[key] | {"id": row.id, "reused": True}
                        elif _said(ours.lines[key]) != _said(theirs.lines[key]):
                            break  # what follows is of another dialogue
            journal.extend(taken)
            ours.lines.update(taken)
            answers = sum("results" not in line for line in taken.values())
            record.reused[str(path)] = record.reused.get(str(path), 0) + answers
            folder.notes.append(f"reused {answers} answers of {path}")
        left = sum(
            not all(replay(ours, begin(row, settings, repeat)) for repeat in range(settings.repeat))
            for row in rows
        )
        folder.notes.append(f"{left} of {len(rows)} rows are left to ask")
    folder.save()


def _said(line: dict[str, Json]) -> Json:
    return line.get("text"), line.get("tool_calls"), line.get("results")
