"""Reviewing the proposed cases of a file: which are open, decisions, edits."""

import getpass
import os
import shlex
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from robustbench_tc.errors import UserError, unknown
from robustbench_tc.io.files import atomic_file
from robustbench_tc.schema import Json

from . import yaml
from .cases import PROBLEM, PROPOSED_BY, Decision, Review, fingerprint, place, read_reviews
from .cases_file import Checker, read_cases
from .files import read_bytes
from .logs.proposals import as_json

Status: TypeAlias = Literal["open", "accepted", "dropped"]


_STATUS: dict[Decision, Status] = {"accept": "accepted", "drop": "dropped", "edit": "open"}


class Proposed(msgspec.Struct, frozen=True, kw_only=True):
    """A proposed case of the file."""

    id: str
    line: int
    last: int
    """The line that it ends on; the one before `line` where it shares that with others."""
    sha256: str
    status: Status
    problem: str = ""
    data: dict[str, Json]

    def plain(self) -> dict[str, Json]:
        """What a script gets to know of it."""
        names = ("id", "line", "sha256", "status", "problem")
        return {name: getattr(self, name) for name in names} | {PROPOSED_BY: self.data[PROPOSED_BY]}


class Reviewing:
    """A cases file under review. Every decision is on disk when its method returns."""

    def __init__(self, path: Path, by: str = "") -> None:
        """`by`: who decides; default: the user's name. Raises UserError for a file that cannot be read."""
        self.path = path
        try:
            self.by = by or getpass.getuser()
        except (OSError, KeyError, ImportError):  # a container whose user has no name
            self.by = "unknown"
        self.read_file()

    def read_file(self) -> None:
        """The file as it stands: everything that changed in it is to be looked at."""
        self.tools = read_cases(self.path).tools
        reviews = read_reviews(self.path)
        self._bytes = read_bytes(self.path, "a cases file")
        root = yaml.load(self._bytes, str(self.path))
        self._data = root.data()
        self._cases: dict[str, Proposed] = {}
        self.hand_written = set[str]()
        entries = root.value["cases"].value
        ends = [entry.line for entry in entries[1:]]
        later = [line for line in root.keys.values() if line > entries[-1].line]
        ends.append(min(later, default=len(self._lines()) + 1))
        for entry, end, data in zip(entries, ends, self._data["cases"], strict=True):
            name, sha256 = data["id"], fingerprint(data)
            if PROPOSED_BY not in data:
                self.hand_written.add(name)
                continue
            decided = reviews.get((name, sha256))
            self._cases[name] = Proposed(
                id=name,
                line=entry.line,
                last=end - 1,
                sha256=sha256,
                status=_STATUS[decided.decision] if decided else "open",
                problem=str(data.get(PROBLEM, "")),
                data=data,
            )

    @property
    def cases(self) -> tuple[Proposed, ...]:
        """The proposed cases, in the file's order."""
        return tuple(self._cases.values())

    def case(self, name: str) -> Proposed:
        """The case of an id. Raises UserError where there is none."""
        if name in self.hand_written:
            raise UserError(f"{self.path}: you wrote the case {name}: it needs no review")
        if name not in self._cases:
            raise unknown("case", name[:80], self._cases)
        return self._cases[name]

    def decide(self, name: str, decision: Decision) -> None:
        """Records a decision about a case as it stands."""
        case = self.case(name)
        if decision == "accept" and case.problem:
            raise UserError(
                f"{self.path}:{case.line}: {name} cannot be built: {case.problem}; edit or drop it"
            )
        review = Review(
            id=name,
            sha256=case.sha256,
            decision=decision,
            by=self.by,
            at=datetime.now(UTC).isoformat(timespec="seconds"),
        )
        path = place(self.path)
        if path.is_symlink() or (path.exists() and not path.is_file()):
            raise UserError(f"{path}: not a file, which is needed for the decisions")
        with path.open("ab") as file:
            file.write(msgspec.json.encode(review) + b"\n")
            os.fsync(file.fileno())
        self._cases[name] = msgspec.structs.replace(case, status=_STATUS[decision])

    # Editing

    def text(self, name: str) -> str:
        """What is given to an editor: the case's own lines, without its `problem`."""
        case = self.case(name)
        if case.last < case.line:
            raise UserError(
                f"{self.path}:{case.line}: {name} shares its lines with other cases: edit the file"
            )
        lines = self._lines()[case.line - 1 : case.last]
        return "".join(line for line in lines if not line.lstrip(" -").startswith(f"{PROBLEM}:"))

    def edited(self, name: str, text: str) -> bytes:
        """The file with a case's lines replaced. Raises UserError where it could not be built then."""
        case = self.case(name)
        if read_bytes(self.path, "a cases file") != self._bytes:
            raise UserError(f"{self.path} was changed meanwhile: run the same command again")
        found = yaml.load(text.encode(errors="replace"), "the edited case")
        entries = found.value if isinstance(found.value, list) else [found]
        if len(entries) != 1 or not isinstance(entries[0].value, dict):
            raise UserError("the edited text is not one case")
        data = entries[0].data()
        if data.get("id") != name or data.get(PROPOSED_BY) != case.data[PROPOSED_BY]:
            raise UserError(f"'id' and {PROPOSED_BY!r} stay as they are: they say where the case comes from")
        if why := Checker(self.tools, self.path).problem(data):
            raise UserError(f"the edited case cannot be built: {why}")
        lines = self._lines()
        lines[case.line - 1 : case.last] = [text if text.endswith("\n") else text + "\n"]
        made = "".join(lines).encode()
        cases = [data if one["id"] == name else one for one in self._data["cases"]]
        try:
            again = yaml.load(made, str(self.path)).data()
        except UserError:
            again = None
        if again != self._data | {"cases": cases}:
            raise UserError("the edited text does not fit into the file: keep the dash and the indentation")
        return made

    def _lines(self) -> list[str]:
        text = self._bytes.decode("utf-8-sig").replace("\r\n", "\n")
        return [line + "\n" for line in text.removesuffix("\n").split("\n")]


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
        place, word = f"{number} of {len(names)}", ""
        while word not in ("skip", "accept", "drop"):
            for line in _lines(found.case(name), place) if place else ():
                say(line)
            typed, place = ask("[a]ccept, [e]dit, [d]rop, [s]kip, [q]uit? "), ""
            word = "quit" if typed is None else _WORDS.get(typed.lower(), typed.lower())
            try:
                if word == "quit":
                    return
                if word in ("accept", "drop"):
                    found.decide(name, "accept" if word == "accept" else "drop")
                if word == "edit" and _edit(found, name):
                    place = "edited"
            except UserError as error:
                word = ""
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
            new = path.read_text()
        except (OSError, ValueError) as error:
            raise UserError(
                f"{editor[0]} cannot be run, or left no text: nothing was changed: {error}"
            ) from None
    if code:
        raise UserError(f"{editor[0]} ended with status {code}: nothing was changed")
    if new == text and not found.case(name).problem:
        return False
    made = found.edited(name, new)
    found.decide(name, "edit")
    with atomic_file(found.path.resolve(), replace=True) as beside:
        beside.write_bytes(made)
    found.read_file()
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
                said = f"{one['role']}: {one['content']}" + (f"\n{as_json(rest)}" if rest else "")
            text = said if isinstance(said, str) else as_json(one)
            for number, line in enumerate(text[:TEXT].split("\n")):
                yield f"  {key if number == 0 else '':<9}| {line}"
            if len(text) > TEXT:
                yield f"  {'':<9}| ({len(text) - TEXT:,} more characters)"
