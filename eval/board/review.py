"""What the checker says of pull requests, and what it believes of those that were merged.

An answer is one comment for a commit, and names it: after the merge of that very commit its run gets its
entry. Of pull requests only what the checker's own account said is believed.
"""

import tempfile
import textwrap
from collections.abc import Callable
from pathlib import Path

import msgspec

from . import entries, pulls
from .checker import ENTRY, checked, table
from .datasets import Datasets
from .entry import Entry, Refused
from .place import Files, Hub, Place, Pull, run_path
from .pulls import Remark


def fetch(place: Place, run: str, files: Files, into: Path, revision: str | None = None) -> Path:
    """The folder of a run under `into`. Raises Refused for what is not fetched, UserError."""
    pulls.check_run_files(run, files)
    folder = into / run_path(run)
    folder.mkdir(parents=True)
    for name in sorted(files.keys() - {ENTRY}):
        (folder / name).write_bytes(place.read(f"{run_path(run)}/{name}", revision))
    return folder


def score(place: Place, run: str, files: Files, data: Datasets, revision: str | None) -> Entry:
    """The entry of a run, from a child with limits. Raises Refused, UserError."""
    with tempfile.TemporaryDirectory() as temporary:
        entry = checked(fetch(place, run, files, Path(temporary), revision), run, data)
    if not entries.scored(entry, files):
        raise Refused("pull", f"{run} could not be fetched as it is listed: check again")
    return entry


def answer(place: Hub, pull: Pull, data: Callable[[], Datasets]) -> Entry | str | None:
    """Checks a pull request and comments it: the entry that its run would get, or why it is refused. None: it
    has its answer. Raises UserError."""
    if any(remark.head == pull.head for remark in pulls.remarks(pull)):
        return None
    found: Entry | str
    try:
        run, files = pulls.added(place, pull)
        found = score(place, run, files, data(), pull.head)
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
    said = [remark for remark in pulls.remarks(pull) if remark.what != "undone"]
    if not said:
        return pulls.added(place, pull)[0]
    for remark in said:
        if (remark.what, remark.head) == ("taken", pull.head):
            return remark.run
    so = "refused" if said[-1].head == pull.head else "changed after it was checked"
    raise Refused("pull", f"it was {so} (commit {said[-1].head[:12]})")


def undo(place: Hub, pull: Pull, why: str, main: str) -> tuple[str, list[str]]:
    """Puts back what a merged pull request did to files that were there before, unless they have changed
    since, and says so below it, once. What main is then, and the runs of its new files."""
    earlier, merged = pulls.span(place, pull)
    before, after, now = map(place.files, (earlier, merged, main))
    changed = [path for path, file in before.items() if after.get(path) != file]
    if not any(remark.what == "undone" for remark in pulls.remarks(pull)):
        restored = {path: place.read(path, earlier) for path in changed if now.get(path) == after.get(path)}
        if restored:
            main = place.commit(restored, f"Put back what pull request {pull.number} changed", head=main)
        listed = f"{', '.join(changed[:5]) or 'nothing'} ({len(changed):,} files)"
        text = f"{why}: its new files get no entry; what it changed is put back: {listed}"
        place.comment(pull.number, f"{Remark('undone', pull.head)}\n{_quoted(text)}")
    return main, [*pulls.runs({path: file for path, file in after.items() if path not in before})]


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
