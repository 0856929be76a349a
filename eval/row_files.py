"""The rows of a release where they lie: found by id, a few row groups in memory, however large it is."""

from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from robustbench_tc import taxonomy
from robustbench_tc.compute.parallel import Workers, map_ordered
from robustbench_tc.errors import UserError
from robustbench_tc.io import parquet
from robustbench_tc.own.book import read_book
from robustbench_tc.schema import Sample, Tool, fingerprint, written_hash

from .agents import blind
from .agents.blind import TypeFigures
from .inputs import sample

GROUPS = 4
"""Row groups in memory: rows of a type and their clean rows, where each of both may run on into the next."""

_IDENTITY = ["id", "clean_id", "type_code"]
_HASHED = [*_IDENTITY, "messages", "tools", "golden_answers", "output_format", "injected_error"]


class Group(NamedTuple):
    """A row group of a file."""

    code: str
    file: Path
    number: int
    rows: int


class RowFiles:
    """The rows of a release folder, by id. In memory are an index of ids, and `GROUPS` row groups.

    Raises UserError for files that are not as a build writes them.
    """

    def __init__(self, folder: Path, num_proc: int = 1) -> None:
        self._folder, self.book = folder, read_book(folder)
        self._groups = list(_groups(folder))
        self._firsts: list[int] = []
        self._places: dict[str, int] = {}
        self._anchors, self._hashes = array("q"), array("Q")
        clean: dict[str, int] = {}
        found = map_ordered(_identities, self._groups, Workers(num_proc=num_proc))
        for group, table in zip(self._groups, found, strict=True):
            self._firsts.append(len(self._anchors))
            for one, clean_id, code, digest in zip(*table.to_pydict().values(), strict=True):
                place = len(self._anchors)
                if code == taxonomy.CLEAN:
                    clean[clean_id] = place
                if code != group.code or one in self._places or clean_id not in clean:
                    raise UserError(
                        f"{group.file}: {one!r} has no clean row, is of another type, or is there twice"
                    )
                self._places[one] = place
                self._anchors.append(clean[clean_id])
                self._hashes.append(int(digest, 16))
        self._group = lru_cache(GROUPS)(self._read)

    def hash_of(self, row_id: str) -> str | None:
        """Its `content_hash`, if there is such a row."""
        place = self._places.get(row_id)
        return None if place is None else f"{self._hashes[place]:016x}"

    def needs_no_reading(self) -> tuple[TypeFigures, ...]:
        """As that of an `inputs.Dataset` with the same rows."""
        rows: Counter[str] = Counter()
        for group in self._groups:
            rows[group.code] += group.rows
        found = blind.audited(self._folder, rows)
        if found or rows.total() > blind.COUNTED:
            return found
        tables = map(self._read, range(len(self._groups)))
        registries: dict[str, tuple[Tool, ...]] = {}
        return blind.counted(sample(row, registries) for table in tables for row in table.to_pylist())

    def fingerprint(self) -> str:
        """As that of an `inputs.Dataset` with the same rows."""
        places = self._places
        return fingerprint((one, f"{self._hashes[places[one]]:016x}") for one in sorted(places))

    def take(self, ids: Iterable[str]) -> pa.Table:
        """The rows with these ids, and the clean rows that they are judged against; each once."""
        asked = {self._places[one] for one in ids}
        places = sorted(asked | {self._anchors[place] for place in asked})
        found = []
        for number, inside in groupby(places, key=lambda place: bisect_right(self._firsts, place) - 1):
            found.append(self._group(number).take([place - self._firsts[number] for place in inside]))
        return pa.concat_tables(found)

    def _read(self, number: int) -> pa.Table:
        group = self._groups[number]
        with pq.ParquetFile(group.file) as file:
            return file.read_row_group(group.number, columns=list(Sample.__struct_fields__))


def _groups(folder: Path) -> Iterator[Group]:
    for code in taxonomy.configs(folder):
        for file in parquet.shards(folder / code):
            metadata = parquet.about(file)
            for number in range(metadata.num_row_groups):
                if rows := metadata.row_group(number).num_rows:
                    yield Group(code, file, number, rows)


def _identities(group: Group) -> pa.Table:
    """id, clean_id, type_code and content hash of every row."""
    try:
        with pq.ParquetFile(group.file) as file:
            table = file.read_row_group(group.number, columns=_HASHED)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise UserError(f"{group.file} is not as a build writes it: {error}") from None
    hashes = [written_hash(row) for row in table.to_pylist()]
    return table.select(_IDENTITY).append_column("hash", pa.array(hashes, pa.string()))
