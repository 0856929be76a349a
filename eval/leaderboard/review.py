"""What the checker says of pull requests, and what it believes of those that were merged.

An answer is one comment for a commit, and names it: after the merge of that very commit its run gets its
entry. Of pull requests only what the checker's own account said is believed.
"""

import tempfile
import textwrap
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from robustbench_tc.errors import UserError

from . import entries, pulls
from .checker import ENTRY, checked, table
from .datasets import Datasets
from .entry import Entry, Refused
from .place import Files, Hub, Place, Pull, run_path
from .pulls import Remark


def fetch(place: Place, run: str, files: Files, into: Path, revision: str | None) -> Path:
    """The folder of a run under `into`. Raises Refused for what is not fetched, UserError."""
    pulls.check_run_files(run, files)
    place.fetch([f"{run_path(run)}/{name}" for name in sorted(files.keys() - {ENTRY})], into, revision)
    return into / run_path(run)


def score(folder: Path, run: str, files: Files, data: Datasets) -> Entry:
    """The entry of a fetched run, from a child with limits. Raises Refused."""
    entry = checked(folder, run, data)
    if not entries.scored(entry, files):
        raise pulls.refused(f"{run} could not be fetched as it is listed: check again")
    return entry


def answer(place: Hub, pull: Pull, data: Callable[[], Datasets]) -> Entry | str | None:
    """Checks a pull request and comments it: the entry that its run would get, or why it is refused. None: it
    has its answer. Raises UserError."""
    if any(remark.head == pull.head for remark in pulls.remarks(pull)):
        return None
    found: Entry | str
    try:
        run, files = _added(place, pull)
        with tempfile.TemporaryDirectory() as temporary:
            found = score(fetch(place, run, files, Path(temporary), pull.head), run, files, data())
        remark, text = Remark("taken", pull.head, run), table(found)
        then = "A maintainer may merge it; the entry is written after the merge of this commit, and no other."
    except Refused as error:
        found = str(error)
        remark, text = Remark("refused", pull.head), _quoted("\n".join((found, *error.details)))
        then = "It is not taken. A push to this pull request is checked anew."
    place.comment(pull.number, f"{remark}\n{text}\n\nChecked: commit `{pull.head}`. {then}")
    return found


def _added(place: Hub, pull: Pull) -> tuple[str, Files]:
    """What a pull request adds. Raises Refused where it does anything else."""
    before, after = place.files(pulls.base(place, pull)), place.files(pull.head)
    return pulls.added(before, after, datetime.now(UTC).date())


def _quoted(text: str) -> str:
    """A block of Markdown in which nothing is markup."""
    return textwrap.indent(text, "    ", lambda line: True)


class Merged:
    """The merged pull requests: which runs came as they were checked, and which did not."""

    def __init__(self, place: Hub, main: str, known: Mapping[int, tuple[str, Pull]]) -> None:
        self.main = main
        self.known = dict(known)
        """Number → the run that was merged as it had been checked, and the pull request."""
        self.barred: dict[str, str] = {}
        """Run → why it gets no entry."""
        self.problems: list[str] = []
        self._place = place

    def look(self, number: int, head: str | None) -> None:
        """At one of them. What one that was not checked changed of other files is put back."""
        if number in self.known:
            return
        pull = self._place.pull(number, head)
        remarks = pulls.remarks(pull)
        taken = [remark.run for remark in remarks if (remark.what, remark.head) == ("taken", pull.head)]
        before = [remark for remark in remarks if remark.what != "changed"]
        if taken:
            self.known[number] = (taken[-1], pull)
        elif before:
            so = "changed after it was checked" if before[-1].head != pull.head else "merged though refused"
            self._undo(pull, f"pull request {number} was {so} (commit {before[-1].head[:12]})")
        else:
            try:
                self.known[number] = (_added(self._place, pull)[0], pull)
            except Refused as error:
                self._undo(pull, f"pull request {number} was merged without a check: {error}")

    def _undo(self, pull: Pull, why: str) -> None:
        try:
            base = pulls.base(self._place, pull)
        except Refused as error:
            raise UserError(
                f"{self._place.name}: {why}, and what it changed cannot be told: {error}"
            ) from None
        before, after, main = (self._place.files(commit) for commit in (base, pull.head, self.main))
        restored, others = {}, []
        for path in pulls.changed(before, after):
            if path not in before:
                run = path.removeprefix("runs/").rpartition("/")[0]
                self.barred[run] = f"{why}: its files are not those of a checked commit"
                continue
            others.append(path)
            if main.get(path) == after.get(path):
                restored[path] = self._place.read(path, base)
        said = f"{why}: its new files get no entry"
        if others:
            said += f", and what it changed of {', '.join(others[:5])} ({len(others):,} files) is put back"
        if restored:
            message = f"Put back what pull request {pull.number} changed"
            self.main = self._place.commit(restored, message, onto=self.main)
        self.problems.append(said)
        if not any(remark.what == "changed" for remark in pulls.remarks(pull)):
            self._place.comment(pull.number, f"{Remark('changed', pull.head)}\n{_quoted(said)}")


def whose(place: Hub, run: str, pull: Pull, spaces: tuple[str, ...]) -> dict[str, Any]:
    """The fields of an entry that say where it came from."""
    organisation = run.split("/")[0]
    member = pull.author in (organisation, *spaces) or place.is_member(pull.author, organisation)
    return {"submitter": pull.author, "member": member, "commit": pull.head}
