"""`rbtc leaderboard check`: pull requests get their answer, and the runs on main their entries.

Everything that is written follows from what lies in the repository, so a check that was killed is made good
by the next one. What is wrong with one run or pull request costs no other its entry.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from typing import NoReturn

import msgspec

from robustbench_tc.compute.parallel import Workers, map_ordered
from robustbench_tc.errors import UserError
from robustbench_tc.shown import Line, Part

from . import entries, pulls
from .checker import CHECKER, ENTRY, encode, table
from .datasets import Datasets
from .entry import Digest, Entry, Refused, Status
from .place import Folder, Pull, open_place, run_path


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
            status = entries.read_status(place, dataset=self._dataset)
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
                self._brought[number] = pulls.brought(place, pull), pull
            except Refused as error:
                why = f"pull request {number} is merged, and {error}"
                main, new = pulls.undo(place, pull, why, main)
                barred |= dict.fromkeys(new, why)
                report.problems.append(why)
        # Only now: what a pull request did to status.yaml has been put back.
        status = entries.read_status(place, main, self._dataset)
        data = Datasets.of_status(status, place.folder)
        for number in [one for one in stands if stands[one] == "open" and pr in (None, one)]:
            try:
                pull = place.pull(number, heads.get(number))
                found = pulls.answer(place, pull, data)
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
        there = entries.runs(listed)
        fitting, left_out = entries.fits(entries.stored(place, listed, main), listed)
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
                return pulls.score(place, run, there[run], data, main), ""
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
                entry = pulls.signed(place, entry, before, came.get(run), status.spaces)
                report.new.append(entry)
            if entry is not None:
                known[run] = entry
        report.dropped = {run: why for run, why in left_out.items() if run not in there}
        report.entries = len(known)
        files = {f"{run_path(run)}/{ENTRY}": encode(entry) for run, entry in sorted(known.items())}
        files |= entries.write_entries(known.values())
        new = {
            path: data
            for path, data in files.items()
            if path not in listed or not entries.same(Digest.of(data), listed[path])
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
