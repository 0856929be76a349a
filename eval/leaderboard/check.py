"""`rbtc leaderboard check`: pull requests get their answer, and the runs on main their entries.

A pull request may add the files of one new run, and nothing else; that is decided from listings alone, before
anything of it is fetched. An answer is one comment for a commit, and names it: after the merge of that very
commit its run gets its entry. Of pull requests only what the checker's own account said is believed.

Everything that is written follows from what lies in the repository, so a check that was killed is made good
by the next one. What is wrong with one run or pull request costs no other its entry.
"""

import re
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple, NoReturn

import msgspec

from robustbench_tc.compute.parallel import Workers, map_ordered
from robustbench_tc.errors import UserError
from robustbench_tc.shown import Line, Part

from . import repository
from .checker import CHECKER, ENTRY, checked, encode, table
from .datasets import Datasets
from .entry import Digest, Entry, Refused, Status, shown
from .repository import Files, Folder, Hub, Place, Pull, open_place, run_path, runs


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
    repository.check_run_files(run, files)
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
        entry = checked(repository.fetch(place, run, files, Path(temporary), revision), run, data)
    if not repository.scored(entry, files):
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
        restored = {
            path: place.read_file(path, earlier) for path in changed if now.get(path) == after.get(path)
        }
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


# --- the whole repository ---------------------------------------------------------------------------------


class Report(msgspec.Struct, kw_only=True):
    """What a check did."""

    pulls: dict[int, Entry | str] = {}
    """Pull request → the entry that its run would get, or why it is refused."""
    new: list[Entry] = []
    """Entries that were written."""
    refused: dict[str, str] = {}
    """Runs on main without an entry, and why."""
    dropped: dict[str, str] = {}
    """Runs whose entry went, and why."""
    problems: list[str] = []
    """What a maintainer has to look at."""
    entries: int = 0
    """That there are now."""

    @property
    def exit_code(self) -> int:
        """1: a maintainer has to look at something."""
        return int(bool(self.problems))

    def shown(self) -> Iterator[Part]:
        """What was done, in turn."""
        for number, found in self.pulls.items():
            told = f"refused: {found}" if isinstance(found, str) else table(found)
            yield Line(f"pull request {number}: {told}")
        yield from (f"new: {entry.run}" for entry in self.new)
        yield from (f"refused: {run}: {why}" for run, why in self.refused.items())
        yield from (f"to look at: {problem}" for problem in self.problems)
        yield f"entries: {self.entries}"


class Checker:
    """Checks one repository, and remembers which merges it believes."""

    def __init__(
        self,
        place: str,
        *,
        dataset: str | None = None,
        jobs: int = 1,
        said: Callable[[str], None] = lambda line: None,
    ) -> None:
        self._place, self._dataset, self._jobs, self.said = open_place(place), dataset, jobs, said
        self._brought: dict[int, tuple[str, Pull]] = {}
        """Merged pull request → the run that it brought as it had been checked."""

    def check(self, pr: int | None = None, everything: bool = False) -> Report:
        """Answers every open pull request, or `pr` alone, and writes the entries that runs on main lack.

        `everything`: those of all runs are made again. Raises UserError where the repository cannot be read
        or written.
        """
        place, report = self._place, Report()
        if isinstance(place, Folder):
            if pr is not None:
                raise UserError(f"{place.repo} is a folder, and has no pull requests")
            status = repository.read_status(place, dataset=self._dataset)
            self._enter(report, status, Datasets.of_status(status, place.folder), None, {}, everything)
            return report
        main, heads = place.heads()
        stands = {number: one.status for number, one in place.pulls().items()}
        if pr is not None and stands.get(pr) not in ("open", "merged"):
            raise UserError(f"{place.repo} has no pull request {pr} that is open or merged")
        barred: dict[str, str] = {}
        for number in [one for one in stands if stands[one] == "merged" and one not in self._brought]:
            pull = place.pull(number, heads.get(number))
            try:
                self._brought[number] = brought(place, pull), pull
            except Refused as error:
                why = f"pull request {number} is merged, and {error}"
                main, new = undo(place, pull, why, main)
                barred |= dict.fromkeys(new, why)
                report.problems.append(why)
        # Only now: what a pull request did to status.yaml has been put back.
        status = repository.read_status(place, main, self._dataset)
        data = Datasets.of_status(status, place.folder)
        for number in [one for one in stands if stands[one] == "open" and pr in (None, one)]:
            try:
                pull = place.pull(number, heads.get(number))
                found = answer(place, pull, data)
            except UserError as error:
                report.problems.append(f"pull request {number}: {error}")
                continue
            if found is not None:
                report.pulls[number] = found
        if pr is None or stands[pr] == "merged":
            self._enter(report, status, data, main, barred, everything)
        return report

    def _enter(
        self,
        report: Report,
        status: Status,
        data: Datasets,
        main: str | None,
        barred: Mapping[str, str],
        everything: bool,
    ) -> None:
        """Writes the entries that are wanted, in one commit. `barred` runs get none, unless another pull
        request brought them."""
        place = self._place
        listed = place.files(main)
        there = runs(listed)
        fitting, left_out = repository.fits(repository.stored(place, listed, main), listed)
        known = {entry.run: entry for entry in fitting}
        old = {entry.run for entry in fitting if everything or entry.checker != CHECKER}
        # Of an earlier version of the dataset: it stays as it is, on a board of its own.
        old -= {run for run in old if known[run].fingerprint not in data.fingerprints}
        # A run that several brought is the first one's.
        came = dict(come for _, come in sorted(self._brought.items(), reverse=True))
        report.refused = {
            run: barred[run] for run in there if run in barred and run not in known and run not in came
        }
        wanted = [run for run in there if (run in old or run not in known) and run not in report.refused]

        def scored(run: str) -> tuple[Entry | None, str]:
            try:
                return score(place, run, there[run], data, main), ""
            except Refused as error:
                return None, str(error)
            except UserError as error:  # it could not be read, and what it has stays
                return known.get(run), str(error)

        for run, (entry, why) in zip(
            wanted, map_ordered(scored, wanted, Workers(num_proc=self._jobs)), strict=True
        ):
            self.said(run)
            before = known.pop(run, None)
            if why:
                report.refused[run] = why
            elif entry is not None:
                entry = signed(place, entry, before, came.get(run), status.spaces)
                report.new.append(entry)
            if entry is not None:
                known[run] = entry
        report.dropped = {run: why for run, why in left_out.items() if run not in there}
        report.entries = len(known)
        files = {f"{run_path(run)}/{ENTRY}": encode(entry) for run, entry in sorted(known.items())}
        files |= repository.write_entries(known.values())
        new = {
            path: data
            for path, data in files.items()
            if path not in listed or not repository.same(Digest.of_bytes(data), listed[path])
        }
        if new:
            place.commit(new, f"Entries: {len(report.new)} new", head=main)


def watching(checker: Checker, seconds: float, pr: int | None = None, everything: bool = False) -> NoReturn:
    """Checks again and again, until it is interrupted. What fails is said, and tried again."""
    while True:
        try:
            report = checker.check(pr, everything)
            checker.said(f"{report.entries:,} entries, {len(report.new):,} new")
        except UserError as error:
            checker.said(str(error))
        time.sleep(seconds)
