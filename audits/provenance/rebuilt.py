"""A build held against the same build made again: schema, cells, row order, footers, bytes, reports."""

import contextlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from robustbench_tc.errors import UserError
from robustbench_tc.io import marker, parquet
from robustbench_tc.schema import Json, dumps

from ..folder import BROKEN, SHARD, Folder
from ..report import Check, Failure, check, not_run, without
from .files import GENERATIONS, of_kind

Row: TypeAlias = Mapping[str, Any]

_ARROW = b"ARROW:schema"
"""The footer key in which Arrow keeps the schema: compared as a schema, versions write it differently."""

CHECKS = {
    "provenance.rows": "Every cell is what sources, seed and kept answers make of it, rows in their order.",
    "provenance.footers": "Columns, types, row groups, footer keys are the builder's: readers believe them.",
    "provenance.bytes": "The same pyarrow writes the same bytes: nothing is hidden between the rows.",
    "provenance.report": "Counts, skips, flags, pins: the build report is what building again reports.",
    "provenance.card": "README.md and build_report.md say what the build report says, and nothing else.",
    "provenance.generations": "The kept answers are those that the build asks for, each passing its check.",
}


CARD = "provenance.card"
"""Of a release, which has cards of its own, this is held against what `rbtc release` renders."""


ANSWERS = "provenance.generations"
"""Of builds whose texts a generator writes."""


TEXTS = {"README.md": CARD, "build_report.md": CARD, GENERATIONS: ANSWERS}
"""Files of a build that are compared as texts, and the check that they are held against."""


def _checked(folder: Folder, released: bool) -> list[str]:
    """The checks that a folder of this kind has."""
    left_out = {CARD: released, ANSWERS: GENERATIONS not in of_kind(folder)}
    return [id for id in CHECKS if not left_out.get(id)]


def nothing_compared(
    folder: Folder, reason: str, may_be_left_out: str | None = None, *, released: bool = False
) -> list[Check]:
    """The checks where the build could not be made again: they block, unless that is allowed."""
    return [not_run(id, CHECKS[id], reason, may_be_left_out) for id in _checked(folder, released)]


class Comparison:
    """What differs between a build and the same build made again in the folder `again`."""

    def __init__(self, folder: Folder, again: Path, *, released: bool) -> None:
        self._folder, self._again = folder, again
        self._theirs = marker.hashes(again, but=marker.BUILD)
        self._writer = str(folder.report.get("pyarrow") or "")
        self._found: dict[str, list[Failure]] = {id: [] for id in _checked(folder, released)}
        self._held: Counter[str] = Counter()
        self._files()
        checksums = self._report()
        for name, id in TEXTS.items():
            if id in self._found:
                wanted = (again / name).read_bytes()
                for theirs, mine in checksums:  # the rebuild's card, with those of the build's own files
                    wanted = wanted.replace(theirs.encode(), mine.encode())
                self._held[id] += max(1, wanted.count(b"\n")) if id == ANSWERS else 1
                if (data := folder.data(name)) != wanted:
                    self._fail(id, name, first_difference(data, wanted))

    def checks(self) -> list[Check]:
        """One check per entry of CHECKS; `provenance.bytes` only where the same pyarrow wrote the build."""
        made = [check(id, CHECKS[id], self._held[id], found) for id, found in self._found.items()]
        if self._writer != pa.__version__ and not self._found["provenance.bytes"]:
            reason = (
                f"pyarrow {self._writer} wrote the build and {pa.__version__} is installed: cells, schemas "
                "and footers were compared instead"
            )
            return without(made, "provenance.bytes", reason, "another pyarrow writes other bytes")
        return made

    def _fail(self, id: str, where: str, what: str) -> None:
        self._found[id].append(Failure(where, what))

    def _files(self) -> None:
        """Every Parquet file, and of every split whose bytes differ what is other."""
        known = {*self._folder.report_field("files"), *self._theirs}
        mine = {
            path: self._folder.sha256(path) if path in known else ""
            for path, kind in self._folder.there.items()
            if kind == "file" and path.endswith(".parquet")
        }
        theirs = {path: sha for path, sha in self._theirs.items() if path.endswith(".parquet")}
        tables: dict[tuple[str, str], list[str]] = {}
        for path in sorted({*mine, *theirs}):
            self._held["provenance.bytes"] += 1
            if match := SHARD.fullmatch(path):
                tables.setdefault((match.group(1), match.group(2)), []).append(path)
            if path not in mine:
                self._fail("provenance.bytes", path, "the rebuild has it, the build has not")
                continue
            self._writers_name(path)
            if path not in theirs:
                self._fail("provenance.bytes", path, "the rebuild has no such file")
            elif mine[path] != theirs[path] and self._writer == pa.__version__:
                self._fail("provenance.bytes", path, "its bytes are not those of the rebuild")
        for (config, split), inside in tables.items():
            if any(mine.get(path) != theirs.get(path) for path in inside):
                self._table(config, split)
            else:
                rows = [pq.read_metadata(self._again / path).num_rows for path in inside]
                self._held.update({"provenance.rows": sum(rows), "provenance.footers": len(rows)})

    def _writers_name(self, path: str) -> None:
        """The footer names the writer that the report names: nobody excuses other bytes with another one."""
        with contextlib.suppress(*BROKEN):  # the rows will say so
            named = str(pq.read_metadata(self._folder.path / path).created_by)
            if named != f"parquet-cpp-arrow version {self._writer}":
                what = f"written by {named}, the report says pyarrow {self._writer}"
                self._fail("provenance.footers", path, what)

    def _table(self, config: str, split: str) -> None:
        where, mine, theirs = f"{config}/{split}", self._folder.shards(config, split), list[Path]()
        with contextlib.suppress(UserError):  # the rebuild has no such config: no file is its own
            theirs = parquet.shards(self._again / config, split)
        if len(mine) != len(theirs):
            what = f"{len(mine)} readable files, the rebuild has {len(theirs)}"
            self._fail("provenance.rows", where, what)
            return
        try:
            for ours, other in zip(mine, theirs, strict=True):
                a, b = _footer(ours), _footer(other)
                self._held["provenance.footers"] += 1
                for what in [what for what in a if what in b and a[what] != b[what]]:
                    said = f"{what}: {str(a[what])[:80]}, the rebuild has {str(b[what])[:80]}"
                    self._fail("provenance.footers", f"{config}/{ours.name}", said)
            rows, wanted = list(parquet.read_rows(mine)), list(parquet.read_rows(theirs))
        except (*BROKEN, UserError) as error:
            self._fail("provenance.rows", where, f"it cannot be read: {str(error)[:120]}")
            return
        self._held["provenance.rows"] += len(wanted)
        for name, what in _cells(where, rows, wanted):
            self._fail("provenance.rows", name, what)

    def _report(self) -> list[tuple[str, str]]:
        """The report is what building again reports; what only describes bytes is taken from the files.

        Gives the configs' checksums that the rebuild has, beside those of the build's own files.
        """
        said = self._folder.report
        wanted: dict[str, Json] = msgspec.json.decode((self._again / marker.BUILD).read_bytes())
        theirs: dict[str, str] = wanted.get("checksums") or {}
        mine = {  # of a config's shards, one after the other, as the builder has it
            config: marker.sha256_of(b"".join(map(Path.read_bytes, self._folder.shards(config, "test"))))
            for config in theirs
        }
        wanted |= {"checksums": mine} if "checksums" in wanted else {}
        wanted["files"] = {path: self._folder.sha256(path) or "" for path in self._theirs}
        wanted |= {"pyarrow": said.get("pyarrow"), "own_sha256": ""}
        self._held["provenance.report"] = len(wanted)
        if marker.sealed(wanted) != (self._folder.path / marker.BUILD).read_bytes():
            for field in dict.fromkeys((*wanted, *said)):
                if field != "own_sha256" and (what := _differs(said, wanted, field)):
                    self._fail("provenance.report", f"{marker.BUILD}: {field}", what)
            if not self._found["provenance.report"]:
                what = "its text is not the one that the builder writes"
                self._fail("provenance.report", marker.BUILD, what)
        return [(theirs[config], mine[config]) for config in theirs]


def _cells(where: str, mine: Sequence[Row], theirs: Sequence[Row]) -> Iterator[tuple[str, str]]:
    """(row, what is other about it) of a split, and of its rows as a whole."""
    if len(mine) != len(theirs):
        yield where, f"{len(mine)} rows, the rebuild has {len(theirs)}"
    names, wanted = ([_name(where, n, row) for n, row in enumerate(rows)] for rows in (mine, theirs))
    known, times = dict(zip(wanted, theirs, strict=True)), Counter(names)
    yield from ((name, "the row is missing") for name in wanted if name not in times)
    yield from ((name, "the rebuild has no such row") for name in names if name not in known)
    yield from ((name, "the row stands twice") for name in times if times[name] > 1 and name in known)
    if names != wanted and sorted(names) == sorted(wanted):
        first = next(n for n, (a, b) in enumerate(zip(names, wanted, strict=True)) if a != b)
        yield names[first], f"the rows are in another order from row {first} on"
    for name, a in zip(names, mine, strict=True):
        b = known.get(name, a)
        if other := [column for column in {**b, **a} if _cell(a, column) != _cell(b, column)]:
            yield name, f"{', '.join(other)}: not what the rebuild has"


def _footer(path: Path) -> dict[str, Any]:
    """All about a file besides its cells that does not depend on the writer, under what it is called."""
    with pq.ParquetFile(path) as file:
        schema, about = file.schema_arrow, file.metadata
    keys = dict(about.metadata or {})
    groups: list[Any] = [about.row_group(number).to_dict() for number in range(about.num_row_groups)]
    stored = ("physical_type", "compression")
    return {
        "columns": [(field.name, str(field.type), field.nullable) for field in schema],
        "metadata of columns": [field.metadata for field in schema],
        "footer keys": sorted(keys),
        **{
            f"footer key {key.decode('utf-8', 'replace')}": keys[key] for key in sorted(keys) if key != _ARROW
        },
        "schema metadata": schema.metadata,
        "row groups": [
            (one["num_rows"], [tuple(map(c.get, stored)) for c in one["columns"]]) for one in groups
        ],
    }


def _name(where: str, number: int, row: Row) -> str:
    found = row.get("id")
    return found if isinstance(found, str) and found else f"{where}[{number}]"


def _cell(row: Row, column: str) -> bytes:
    """A cell as JSON text, so that 85 is not 85.0, true not 1, a missing cell not a null."""
    return msgspec.json.encode(row[column], enc_hook=repr) if column in row else b""


def _differs(said: Mapping[str, Json], wanted: Mapping[str, Json], field: str) -> str:
    """What is other about a field of the report, or ""."""
    if field not in said or field not in wanted:
        return "it is missing" if field not in said else "the builder writes no such field"
    mine, theirs = said[field], wanted[field]
    if dumps(mine) == dumps(theirs):
        return ""
    ours, others = _places(mine), _places(theirs)
    for place in dict.fromkeys((*others, *ours)):
        a, b = ours.get(place), others.get(place)
        if dumps(a) != dumps(b):
            return f"{place}{short(a)}, building again gives {short(b)}"
    return "its entries are in another order"


def _places(value: Json) -> dict[str, Json]:
    """The parts of a field, by what is said in front of each."""
    if isinstance(value, dict):
        return {f"{key}: ": inner for key, inner in value.items()}
    if isinstance(value, list):
        return {f"entry {number}: ": inner for number, inner in enumerate(value)}
    return {"": value}


def short(value: Json) -> str:
    """A value as JSON text, cut where it is long."""
    text = dumps(value)
    return text if len(text) <= 80 else text[:80] + "…"


def first_difference(mine: bytes, theirs: bytes) -> str:
    """The first line in which two texts differ, in words; for texts that are not equal."""
    ours, other = mine.split(b"\n"), theirs.split(b"\n")
    for number, (a, b) in enumerate(zip(ours, other, strict=False), 1):
        if a != b:
            return f"line {number} is not the rebuild's"
    return f"{len(ours)} lines, the rebuild has {len(other)}"
