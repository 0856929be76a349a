"""What a pull request may do: add the files of one new run, and nothing else.

It is decided from listings alone, before anything of it is fetched.
"""

import re
from collections.abc import Mapping
from datetime import date, datetime
from typing import Literal, NamedTuple, cast

from . import names, reading
from .checker import ENTRY, EPISODES, PREDICTIONS, RECORD, SUBMISSION
from .entry import Refused
from .names import shown
from .place import File, Files, Hub, Pull

BYTES: Mapping[str, int] = {
    RECORD: reading.RECORD_BYTES,
    SUBMISSION: names.SUBMISSION_BYTES,
    PREDICTIONS: reading.FILE_BYTES,
    EPISODES: reading.FILE_BYTES,
}
"""What each file of a run may have."""

What = Literal["taken", "refused", "changed"]

_MARK = re.compile(r"<!-- rbtc (taken|refused|changed) ([0-9a-f]{40}) (\S+) -->")


class Remark(NamedTuple):
    """What a comment of the checker's account says of a commit: its run may be listed, it may not, or it was
    merged and is not what had been checked."""

    what: What
    head: str
    run: str = "-"

    def __str__(self) -> str:
        return f"<!-- rbtc {self.what} {self.head} {self.run} -->"


def remarks(pull: Pull) -> list[Remark]:
    """Those of a pull request. A comment is one by how it begins: nothing that it quotes is another."""
    found = (_MARK.match(text) for text in pull.remarks)
    return [Remark(cast(What, mark[1]), mark[2], mark[3]) for mark in found if mark]


def runs(files: Files) -> dict[str, Files]:
    """Run → its files by name, of every folder in a listing where a run would lie."""
    found: dict[str, Files] = {}
    for path, file in files.items():
        top, _, rest = path.partition("/")
        run, _, name = rest.rpartition("/")
        if top == "runs":
            found.setdefault(run, {})[name] = file
    return dict(sorted(found.items()))


def complete(files: Mapping[str, object]) -> bool:
    """Whether these are the files of a run, with its entry or without."""
    return {*files} - {ENTRY} in ({RECORD, SUBMISSION, PREDICTIONS}, {RECORD, SUBMISSION, EPISODES})


def changed(before: Files, after: Files) -> dict[str, File | None]:
    """Path → what it became (None: nothing), of every file that is another."""
    paths = sorted(before.keys() | after.keys())
    return {path: after.get(path) for path in paths if before.get(path) != after.get(path)}


def added(before: Files, after: Files, today: date) -> tuple[str, Files]:
    """The one run that a pull request adds, and its files by name. Raises Refused for anything else."""
    new: Files = {}
    for path, file in changed(before, after).items():
        if path in before or file is None:
            what = "removes" if file is None else "changes"
            raise refused(f"it {what} {shown(path, 120)}, and may only add the files of one new run")
        new[path] = file
    found = runs(new)
    if len(found) != 1 or sum(map(len, found.values())) != len(new):
        listed = ", ".join(shown(path, 120) for path in list(new)[:5])
        raise refused(f"it adds {listed or 'nothing'}: add the files of one run, and nothing else")
    [(run, files)] = found.items()
    check_run_files(run, files)
    if ENTRY in files:
        raise refused(f"it adds {ENTRY}, which only the checker writes")
    if run.casefold() in {other.casefold() for other in runs(before)}:
        raise refused(f"{run} is there already")
    day = datetime.strptime(run.rpartition("/")[2][:8], "%Y%m%d").date()
    if (day - today).days > 1:  # it may be tomorrow elsewhere
        raise refused(f"the run id of {run} begins with a day that has not come")
    return run, files


def check_run_files(run: str, files: Files) -> None:
    """Raises Refused for what no run is called, has other files, or would be too large to fetch."""
    names.of_run(run)
    if not complete(files):
        raise refused(f"a run is {RECORD}, {PREDICTIONS} or {EPISODES}, and {SUBMISSION}: {run} is not")
    for name, most in BYTES.items():
        if name in files and files[name].size > most:
            raise refused(f"{name} has {files[name].size:,} bytes, at most {most:,}")


def base(place: Hub, pull: Pull) -> str:
    """The commit of main that a pull request came from: what differs from there is its doing. Its own commits
    are left out, which a merge may have brought into main. Raises Refused where main never was that."""
    main = place.history("main")
    before = {*main[main.index(pull.merged) + 1 :]} if pull.merged in main else {*main}
    for commit in place.history(pull.head):
        if commit in before and commit not in pull.commits:
            return commit
    raise refused("it does not come from main: open another one")


def refused(text: str) -> Refused:
    """Of a pull request as such."""
    return Refused("pull", text)
