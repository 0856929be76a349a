"""A review in a terminal: each open case is shown, and decided as the answer says."""

import os
import shlex
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from robustbench_tc.errors import UserError
from robustbench_tc.io.files import atomic_file
from robustbench_tc.schema import Json

from .logs.written import value
from .reviewing import Proposed, Reviewing

TEXT = 2_000
"""Characters of a text that are shown."""

Ask = Callable[[str], str | None]
"""The answer to a question, in small letters; None at the end of the input."""
Say = Callable[[str], None]


class Reviewed(NamedTuple):
    """The cases after their review."""

    cases: tuple[Proposed, ...]

    @property
    def counts(self) -> dict[str, int]:
        """Cases by status."""
        return {
            status: sum(one.status == status for one in self.cases)
            for status in ("open", "accepted", "dropped")
        }

    def shown(self) -> Iterator[str]:
        """How many are decided."""
        left = self.counts
        yield f"{left['accepted']:,} accepted, {left['dropped']:,} dropped, {left['open']:,} to be reviewed"

    def json(self) -> dict[str, Json]:
        """Every case, and how many are decided."""
        return {"cases": [one.plain() for one in self.cases], **self.counts}


_WORDS = {word[0]: word for word in ("accept", "edit", "drop", "skip", "quit")}
"""What a letter means. Other words, and a mere return, are asked again."""


def ask_all(found: Reviewing, ask: Ask, say: Say) -> None:
    """Asks about every open case, until somebody has enough."""
    names = [one.id for one in found.cases if one.status == "open"]
    for number, name in enumerate(names, 1):
        for line in _lines(found.case(name), f"{number} of {len(names)}"):
            say(line)
        if not _decided(found, name, ask, say):
            return


def _decided(found: Reviewing, name: str, ask: Ask, say: Say) -> bool:
    """Asks about one case until it is decided or skipped; False: no more."""
    while True:
        typed = ask("[a]ccept, [e]dit, [d]rop, [s]kip, [q]uit? ")
        word = "quit" if typed is None else _WORDS.get(typed.lower(), typed.lower())
        try:
            if word in ("quit", "skip"):
                return word == "skip"
            if word in ("accept", "drop"):
                found.decide(name, "accept" if word == "accept" else "drop")
                return True
            if word == "edit" and _edit(found, name):
                for line in _lines(found.case(name), "edited"):
                    say(line)
        except UserError as error:
            say(str(error))


def _edit(found: Reviewing, name: str) -> bool:
    """Gives a case to the user's editor; True where it changed."""
    editor = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "")
    if not editor:
        raise UserError("no editor: set EDITOR, or edit the file yourself and run the same command again")
    text = found.text(name)
    with tempfile.TemporaryDirectory(prefix="rbtc-") as folder:
        path = Path(folder) / "case.yaml"
        path.write_text(text)
        try:
            code = subprocess.run([*editor, str(path)], check=False).returncode
        except OSError as error:
            raise UserError(f"{editor[0]}: cannot be run: {error.strerror}") from None
        if code:
            raise UserError(f"{editor[0]} ended with status {code}: nothing was changed")
        try:
            new = path.read_text()
        except (OSError, ValueError):
            raise UserError("the edited text cannot be read: nothing was changed") from None
    if new == text and not found.case(name).problem:
        return False
    made = found.edited(name, new)
    found.decide(name, "edit")
    with atomic_file(found.path.resolve(), replace=True) as beside:
        beside.write_bytes(made)
    found.read()
    return True


def _lines(case: Proposed, place: str) -> Iterator[str]:
    """A case as it stands. Every line of a text has a bar before it: none can pose as a line of ours."""
    yield ""
    yield f"{case.id} ({place}; {case.data['proposed_by']})"
    if case.problem:
        yield f"  cannot be built: {case.problem}"
    for key, found in case.data.items():
        if key in ("id", "proposed_by", "problem"):
            continue
        for one in found if isinstance(found, list) else [found]:
            said = one if key == "request" else None
            if isinstance(one, dict) and isinstance(one.get("content"), str) and "role" in one:
                rest = {name: inner for name, inner in one.items() if name not in ("role", "content")}
                said = f"{one['role']}: {one['content']}" + (f"\n{value(rest)}" if rest else "")
            text = said if isinstance(said, str) else value(one)
            for number, line in enumerate(text[:TEXT].split("\n")):
                yield f"  {key if number == 0 else '':<9}| {line}"
            if len(text) > TEXT:
                yield f"  {'':<9}| ({len(text) - TEXT:,} more characters)"
