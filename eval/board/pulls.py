"""What a pull request may do: add the files of one new run, and nothing else.

It is decided from listings alone, before anything of it is fetched.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from robustbench_tc.errors import UserError

from . import names, reading
from .checker import ENTRY, EPISODES, PREDICTIONS, RECORD, SUBMISSION
from .entry import Refused
from .names import shown
from .place import Files, Hub, Pull

BYTES: Mapping[str, int] = {
    RECORD: reading.RECORD_BYTES,
    SUBMISSION: names.SUBMISSION_BYTES,
    PREDICTIONS: reading.FILE_BYTES,
    EPISODES: reading.FILE_BYTES,
}
"""What each file of a run may have."""


class Remark(NamedTuple):
    """What the checker's account says of a commit of a pull request, in a comment that begins with it."""

    what: str
    """`taken`: its run may be listed; `refused`; `undone`: it was merged and is not what had been checked."""
    head: str
    run: str = "-"

    def __str__(self) -> str:
        return f"<!-- rbtc {self.what} {self.head} {self.run} -->"


def remarks(pull: Pull) -> list[Remark]:
    """Those of a pull request. A comment is one by how it begins: nothing that it quotes is another."""
    form = re.compile(r"<!-- rbtc (taken|refused|undone) ([0-9a-f]{40}) (\S+) -->")
    return [Remark(*mark.groups()) for mark in map(form.match, pull.comments) if mark]


def runs(files: Files) -> dict[str, Files]:
    """Run → its files by name, of every folder in a listing where a run would lie."""
    found: dict[str, Files] = {}
    for path, file in files.items():
        top, _, rest = path.partition("/")
        run, _, name = rest.rpartition("/")
        if top == "runs":
            found.setdefault(run, {})[name] = file
    return dict(sorted(found.items()))


def complete(files: Files) -> bool:
    """Whether these are the files of a run, with its entry or without."""
    return {*files} - {ENTRY} in ({RECORD, SUBMISSION, PREDICTIONS}, {RECORD, SUBMISSION, EPISODES})


def span(place: Hub, pull: Pull) -> tuple[str, str]:
    """Two commits; what differs between them is a pull request's doing. An open one's are where it came from
    main, and its head; a merged one's are main before it, and after. Raises Refused where it never was of
    main, UserError where main no longer has its merge."""
    main = place.history("main")
    if pull.merged in main:
        older = main[main.index(pull.merged) + 1 :]
        return next(commit for commit in older if commit not in pull.commits), pull.merged
    if pull.merged is not None:
        raise UserError(f"{place.name}: the history of main lacks pull request {pull.number}: put it back")
    for commit in place.history(pull.head):
        if commit in main:
            return commit, pull.head
    raise Refused("pull", "it does not come from main: open another one")


def added(place: Hub, pull: Pull) -> tuple[str, Files]:
    """The one run that a pull request adds, and its files by name. Raises Refused for anything else."""
    before, after = map(place.files, span(place, pull))
    for path in sorted(before):
        if before[path] != after.get(path):
            what = "changes" if path in after else "removes"
            raise Refused("pull", f"it {what} {shown(path, 120)}, and may only add the files of one new run")
    new = {path: file for path, file in after.items() if path not in before}
    found = runs(new)
    if len(found) != 1 or sum(map(len, found.values())) != len(new):
        listed = ", ".join(shown(path, 120) for path in sorted(new)[:5])
        raise Refused("pull", f"it adds {listed or 'nothing'}: add the files of one run, and nothing else")
    [(run, files)] = found.items()
    check_run_files(run, files)
    if ENTRY in files:
        raise Refused("pull", f"it adds {ENTRY}, which only the checker writes")
    if run.casefold() in map(str.casefold, runs(before)):
        raise Refused("pull", f"{run} is there already")
    if run.rpartition("/")[2] > f"{datetime.now(UTC) + timedelta(2):%Y%m%d}":  # it may be tomorrow elsewhere
        raise Refused("pull", f"the run id of {run} begins with a day that has not come")
    return run, files


def check_run_files(run: str, files: Files) -> None:
    """Raises Refused for what no run is called, has other files, or would be too large to fetch."""
    names.of_run(run)
    if not complete(files):
        raise Refused(
            "pull", f"a run is {RECORD}, {PREDICTIONS} or {EPISODES}, and {SUBMISSION}: {run} is not"
        )
    for name, most in BYTES.items():
        if name in files and files[name].bytes > most:
            raise Refused("pull", f"{name} has {files[name].bytes:,} bytes, at most {most:,}")
