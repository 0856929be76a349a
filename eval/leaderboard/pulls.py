"""Pull requests: what one may do, what the checker answers, and which of those that were merged it believes.

One may add the files of one new run, and nothing else; that is decided from listings alone, before anything
of it is fetched. An answer is one comment for a commit, and names it: after the merge of that very commit its
run gets its entry. Of pull requests only what the checker's own account said is believed.
"""

import re
import tempfile
import textwrap
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import msgspec

from robustbench_tc.errors import UserError

from . import entries
from .checker import ENTRY, checked, table
from .datasets import Datasets
from .entries import runs
from .entry import Entry, Refused, shown
from .place import Files, Hub, Place, Pull


class Remark(NamedTuple):
    """What the checker's account says of a commit of a pull request, in a comment that begins with it."""

    what: str
    """`taken`: its run may be listed; `refused`."""
    head: str
    run: str = "-"

    def __str__(self) -> str:
        return f"<!-- rbtc {self.what} {self.head} {self.run} -->"


UNDONE = "<!-- rbtc undone -->"
"""How the comment begins that says of a merged pull request that it is not what had been checked."""


def remarks(pull: Pull) -> dict[str, Remark]:
    """Those of a pull request, by commit. A comment is one by how it begins: nothing that it quotes is."""
    form = re.compile(r"<!-- rbtc (taken|refused) ([0-9a-f]{40}) (\S+) -->")
    return {mark[2]: Remark(*mark.groups()) for mark in map(form.match, pull.comments) if mark}


def span(place: Hub, pull: Pull) -> tuple[str, str]:
    """Two commits; what differs between them is a pull request's doing. An open one's are where it came from
    main, and its head; a merged one's are main before it, and after. Raises Refused where it never was of
    main, UserError where main no longer has its merge."""
    main = place.history("main")
    if pull.merged in main:
        older = main[main.index(pull.merged) + 1 :]
        return next(commit for commit in older if commit not in pull.commits), pull.merged
    if pull.merged is not None:
        raise UserError(f"{place.repo}: the history of main lacks pull request {pull.number}: put it back")
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
    entries.check_run_files(run, files)
    if ENTRY in files:
        raise Refused("pull", f"it adds {ENTRY}, which only the checker writes")
    if run.casefold() in map(str.casefold, runs(before)):
        raise Refused("pull", f"{run} is there already")
    if run.rpartition("/")[2] > f"{datetime.now(UTC) + timedelta(2):%Y%m%d}":  # it may be tomorrow elsewhere
        raise Refused("pull", f"the run id of {run} begins with a day that has not come")
    return run, files


def score(place: Place, run: str, files: Files, data: Datasets, revision: str | None) -> Entry:
    """The entry of a run, from a child with limits. Raises Refused, UserError."""
    with tempfile.TemporaryDirectory() as temporary:
        entry = checked(entries.fetch(place, run, files, Path(temporary), revision), run, data)
    if not entries.scored(entry, files):
        raise Refused("pull", f"{run} could not be fetched as it is listed: check again")
    return entry


def answer(place: Hub, pull: Pull, data: Datasets) -> Entry | str | None:
    """Checks a pull request and comments it: the entry that its run would get, or why it is refused. None: it
    has its answer. Raises UserError."""
    if pull.head in remarks(pull):
        return None
    found: Entry | str
    try:
        run, files = added(place, pull)
        found = score(place, run, files, data, pull.head)
        remark, text = Remark("taken", pull.head, run), table(found)
        then = "A maintainer may merge it; the entry is written after the merge of this commit, and no other."
    except Refused as error:
        found = str(error)
        remark, text = Remark("refused", pull.head), _quoted("\n".join((found, *error.details)))
        then = "It is not taken. A push to this pull request is checked anew."
    place.comment(pull.number, f"{remark}\n{text}\n\nChecked: commit `{pull.head}`. {then}")
    return found


def brought(place: Hub, pull: Pull) -> str:
    """The run that a merged pull request brought as it had been checked; where none was checked, the one that
    it adds. Raises Refused where it is not so."""
    said = remarks(pull)
    if not said:
        return added(place, pull)[0]
    if pull.head not in said:
        raise Refused("pull", f"it was changed after it was checked (commit {[*said][-1][:12]})")
    if said[pull.head].what != "taken":
        raise Refused("pull", f"it was refused (commit {pull.head[:12]})")
    return said[pull.head].run


def undo(place: Hub, pull: Pull, why: str, main: str) -> tuple[str, list[str]]:
    """Puts back what a merged pull request did to files that were there before, unless they have changed
    since, and says so below it, once. What main is then, and the runs of its new files."""
    earlier, merged = span(place, pull)
    before, after, now = map(place.files, (earlier, merged, main))
    changed = [path for path, file in before.items() if after.get(path) != file]
    if not any(text.startswith(UNDONE) for text in pull.comments):
        restored = {path: place.read(path, earlier) for path in changed if now.get(path) == after.get(path)}
        if restored:
            main = place.commit(restored, f"Put back what pull request {pull.number} changed", head=main)
        listed = f"{', '.join(changed[:5]) or 'nothing'} ({len(changed):,} files)"
        text = f"{why}: its new files get no entry; what it changed is put back: {listed}"
        place.comment(pull.number, f"{UNDONE}\n{_quoted(text)}")
    return main, [*runs({path: file for path, file in after.items() if path not in before})]


def signed(
    place: Place, entry: Entry, before: Entry | None, pull: Pull | None, spaces: tuple[str, ...]
) -> Entry:
    """The entry, and where its run came from: as the one before says, or the pull request that brought it."""
    if before is not None:
        said = {name: getattr(before, name) for name in ("submitter", "member", "commit")}
    elif pull is not None and isinstance(place, Hub):
        organisation = entry.run.split("/")[0]
        member = pull.author in (organisation, *spaces) or place.is_member(pull.author, organisation)
        said = {"submitter": pull.author, "member": member, "commit": pull.head}
    else:
        said = {}
    return msgspec.structs.replace(entry, **said)


def _quoted(text: str) -> str:
    """A block of Markdown in which nothing is markup."""
    return textwrap.indent(text, "    ", lambda line: True)
