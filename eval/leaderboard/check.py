"""`rbtc leaderboard check`: pull requests get their answer, and the runs on main their entries.

Everything that is written follows from what lies in the repository, so a check that was killed is made good
by the next one. What is wrong with one run or pull request costs no other its entry.
"""

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from robustbench_tc.compute.parallel import Workers, map_ordered
from robustbench_tc.errors import UserError

from . import entries, pulls, review
from .checker import CHECKER, ENTRY, encode
from .datasets import Datasets
from .entry import Digest, Entry, Refused
from .place import Files, Folder, Hub, Pull, open_place, run_path

Said = Callable[[str], None]


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


class Known(msgspec.Struct):
    """What a process remembers from one check to the next, so that nothing is asked or scored twice."""

    merged: dict[int, tuple[str, Pull]] = {}
    """Merged pull request → the run that it brought as it had been checked."""
    datasets: dict[tuple[str, str | None, tuple[str, ...]], Datasets] = {}


def check(
    place: str,
    *,
    pr: int | None = None,
    everything: bool = False,
    dataset: str | None = None,
    jobs: int = 1,
    said: Said = lambda line: None,
    known: Known | None = None,
) -> Report:
    """Answers every open pull request, or `pr` alone, and writes the entries that runs on main lack.

    `everything`: those of all runs are made again. `dataset`: instead of the one in status.yaml. `jobs`:
    processes. Raises UserError where the repository cannot be read or written.
    """
    there, known = open_place(place), known or Known()
    if isinstance(there, Folder):
        if pr is not None:
            raise UserError(f"{place} is a folder, and has no pull requests")
        work = _Check(there, None, dataset, known, said)
        work.score_runs({}, {}, everything, jobs)
        return work.report
    main, heads = there.heads()
    waiting, merged = there.pulls("open"), there.pulls("merged")
    if pr is not None and pr not in (*waiting, *merged):
        raise UserError(f"{place} has no pull request {pr} that is open or merged")
    believed = review.Merged(there, main, known.merged)
    for number in merged:
        believed.look(number, heads.get(number))
    known.merged = believed.known
    # Only now: what a pull request did to status.yaml has been put back.
    work = _Check(there, believed.main, dataset, known, said)
    work.report.problems += believed.problems
    for number in waiting:
        if pr in (None, number):
            try:
                found = review.answer(there, there.pull(number, heads.get(number)), work.data)
            except UserError as error:
                found = None
                work.report.problems.append(f"pull request {number}: {error}")
            if found is not None:
                work.report.pulls[number] = found
    if pr not in waiting:
        # A run that several brought is the first one's.
        brought = dict(come for _, come in sorted(believed.known.items(), reverse=True))
        work.score_runs(brought, believed.barred, everything, jobs)
    return work.report


class _Check:
    """One check of a repository whose main is at `main`."""

    def __init__(
        self, place: Hub | Folder, main: str | None, dataset: str | None, known: Known, said: Said
    ) -> None:
        self.report = Report()
        self._place, self._main, self._known, self._said = place, main, known, said
        self._status = entries.read_status(place, main)
        if dataset is not None:
            self._status = msgspec.structs.replace(self._status, dataset=dataset)

    def data(self) -> Datasets:
        """Loaded when the first run needs it."""
        named = (self._status.dataset, self._status.live, self._status.own)
        if named not in self._known.datasets:
            folder = Path(self._place.name) if isinstance(self._place, Folder) else None
            self._known.datasets[named] = Datasets.of_status(self._status, folder)
        return self._known.datasets[named]

    def score_runs(
        self, brought: Mapping[str, Pull], barred: Mapping[str, str], everything: bool, jobs: int
    ) -> None:
        """Writes the entries that are wanted, in one commit. `brought`: the pull requests of runs; `barred`:
        runs that get none, unless another pull request brought them."""
        listed = self._place.files(self._main)
        there = pulls.runs(listed)
        fitting, left_out = entries.fits(entries.stored(self._place, listed, self._main), listed)
        known = {entry.run: entry for entry in fitting}
        wanted = []
        for run in there:
            old = known.get(run)
            if old is not None and not (everything or old.checker != CHECKER):
                continue
            if old is not None and old.fingerprint not in self.data().fingerprints:
                continue  # of an earlier version of the dataset: it stays on a board of its own
            if run in barred and run not in brought:
                self.report.refused[run] = barred[run]
            else:
                wanted.append(run)
        for run, found in self._scored(wanted, there, jobs):
            if isinstance(found, str):
                self.report.refused[run] = found
                known.pop(run, None)
            else:
                old = known.get(run, found)
                whose = {"submitter": old.submitter, "member": old.member, "commit": old.commit}
                if run in brought and run not in known and isinstance(self._place, Hub):
                    whose = review.whose(self._place, run, brought[run], self._status.spaces)
                known[run] = msgspec.structs.replace(found, **whose)
                self.report.new.append(known[run])
        self.report.dropped = {run: why for run, why in left_out.items() if run not in there}
        self.report.entries = len(known)
        files = {f"{run_path(run)}/{ENTRY}": encode(entry) for run, entry in sorted(known.items())}
        files |= entries.write_entries(known.values())
        new = {
            path: data
            for path, data in files.items()
            if path not in listed or not entries.same(Digest.of(data), listed[path])
        }
        if new:
            self._place.commit(new, f"Entries: {len(self.report.new)} new", onto=self._main)

    def _scored(
        self, wanted: Sequence[str], there: Mapping[str, Files], jobs: int
    ) -> Iterator[tuple[str, Entry | str]]:
        """Each run with its entry, or why it gets none. Fetched here, scored in children."""
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)

            def fetched() -> Iterator[str]:
                for run in wanted:
                    self.data()  # here, so that no child loads it
                    self._said(run)
                    try:
                        review.fetch(self._place, run, there[run], folder, self._main)
                    except (Refused, UserError) as error:
                        self.report.refused[run] = str(error)
                    else:
                        yield run

            def scored(run: str) -> tuple[str, Entry | str]:
                try:
                    return run, review.score(folder / run_path(run), run, there[run], self.data())
                except Refused as error:
                    return run, str(error)

            for run, found in map_ordered(scored, fetched(), Workers(num_proc=jobs)):
                shutil.rmtree(folder / run_path(run), ignore_errors=True)
                yield run, found


def watch(place: str, seconds: float, *, jobs: int = 1, said: Said = lambda line: None) -> None:
    """Checks again and again, until it is interrupted. What fails is said, and tried again."""
    known = Known()
    while True:
        try:
            report = check(place, jobs=jobs, said=said, known=known)
            said(f"{report.entries:,} entries, {len(report.new):,} new")
        except UserError as error:
            said(str(error))
        time.sleep(seconds)
