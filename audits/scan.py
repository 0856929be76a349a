"""One pass over a benchmark build, on as many processes as the machine has cores for.

What comes out are columns for the expectations to look at; it is the same with any number of processes.
"""

import os
from collections.abc import Iterator

from robustbench_tc import taxonomy
from robustbench_tc.compute import parallel
from robustbench_tc.compute.parallel import Workers
from robustbench_tc.schema import Sample

from .folder import TABLES, Chunk, Folder
from .report import Failure
from .rows import Found, RowChecks

ALONE_BELOW = 20_000
"""Rows that one process checks by itself: another would hardly be faster."""


class Scan:
    """The pass over `folder`: every row decoded once and held against its clean row."""

    def __init__(self, folder: Folder, *, processes: int | None = None) -> None:
        self.folder = folder
        self.found = Found()
        self.counts: dict[str, int] = {}
        """Config → rows."""
        self.present: dict[str, set[str]] = {}
        """Config → clean ids of its rows."""
        self._checks = RowChecks(own=folder.is_own, seed=folder.report.get("seed"))
        # Whatever calls itself a config is looked at: a type that nobody knows fails by its rows too.
        there = [config for config in folder.configs() if config not in TABLES]
        for config in there:
            self.counts[config], self.present[config] = 0, set()
        for chunk in folder.chunks(taxonomy.CLEAN) if taxonomy.CLEAN in there else ():
            self._add(chunk.config, *self._check(chunk))
        chunks = [chunk for config in there if config != taxonomy.CLEAN for chunk in folder.chunks(config)]
        if processes is None:
            many = sum(chunk.rows for chunk in chunks) > ALONE_BELOW
            processes = len(os.sched_getaffinity(0)) if many else 1
        done = parallel.map_ordered(self._check, chunks, Workers(num_proc=processes))
        for chunk, (found, notes) in zip(chunks, done, strict=True):
            self._add(chunk.config, found, notes)

    def clean_rows(self) -> Iterator[Sample]:
        """The clean rows, in order; of two with the same clean id the first."""
        return self._checks.clean_rows()

    def _add(self, config: str, found: Found, notes: list[Failure]) -> None:
        self.counts[config] += len(found.rows["id"])
        self.present[config] |= {clean_id for clean_id in found.rows["clean_id"] if clean_id is not None}
        self.found.add(found)
        self.folder.unreadable += [note for note in notes if note not in self.folder.unreadable]

    def _check(self, chunk: Chunk) -> tuple[Found, list[Failure]]:
        found = self._checks.check(chunk.config, chunk.first, self.folder.read_chunk(chunk))
        return found, list(self.folder.unreadable)
