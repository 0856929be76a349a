"""An audited folder as it lies on disk, read with suspicion: whatever is broken becomes a finding."""

import hashlib
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any, Literal, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from robustbench_tc.builders.sources import OWN_CASES
from robustbench_tc.errors import UserError
from robustbench_tc.io import files, marker, parquet
from robustbench_tc.io.files import Kind
from robustbench_tc.schema import DATASET, Json

from .report import Check, Failure, check

BROKEN = (OSError, ValueError, pa.ArrowException)
"""What reading a Parquet file raises that is not one, or is a damaged one."""

TABLES = ("taxonomy", "evidence", "known_issues")
"""Configs of a benchmark build that hold no samples."""


class Chunk(NamedTuple):
    """A row group of a split."""

    config: str
    split: str
    path: Path
    group: int
    first: int
    """Number of its first row in the split, from 0."""
    rows: int


SHARD = re.compile(r"(?P<config>[^/]+)/(?P<split>\w+)-\d{5}-of-\d{5}\.parquet")
"""Where a file of a split lies."""

SURPLUS = 100_000
"""Entries that are looked at: a folder with more is not a build, and the rest does not matter."""


def walk(root: Path) -> dict[str, Kind]:
    """Every entry under `root` by its path, sorted, without opening or following anything: `files.walk`."""
    return dict(sorted(islice(files.walk(root), SURPLUS)))


def empty_folders(there: Mapping[str, Kind]) -> list[str]:
    """Folders that hold nothing, however deep."""
    used = {
        str(above)
        for path, kind in there.items()
        if kind != "folder"
        for above in PurePosixPath(path).parents
    }
    return [path for path, kind in there.items() if kind == "folder" and path not in used]


class Folder:
    """A build: its report and its configs. Raises UserError where there is no build at all.

    Only regular files are ever opened: what is behind a link is not in the folder.
    """

    def __init__(self, path: Path) -> None:
        if not path.is_dir():
            raise UserError(f"no build at {path}: name the folder that `rbtc build` wrote")
        self.there = walk(path)
        """Every entry of the folder, by relative path."""
        if self.there.get(marker.BUILD, "file") != "file":
            raise UserError(f"{path / marker.BUILD} is not a regular file: name the folder of a build")
        try:
            self.report: dict[str, Json] = msgspec.json.decode(
                (path / marker.BUILD).read_bytes(), type=dict[str, Json]
            )
        except FileNotFoundError:
            raise UserError(
                f"{path} holds no build_report.json: name the folder that `rbtc build` wrote"
            ) from None
        except (OSError, ValueError, RecursionError) as error:
            raise UserError(f"{path / 'build_report.json'} is damaged ({error}): build it again") from None
        self.path = path
        self._hashes: dict[str, str] = {}
        self.unreadable: list[Failure] = []
        """Files and shard sets that could not be read, noted as they are met."""
        self._shards: dict[tuple[str, str], list[Path]] = {}
        """(config, split) → its files."""
        for name in self._parquet():
            if match := SHARD.fullmatch(name):
                self._shards.setdefault((match["config"], match["split"]), []).append(path / name)

    @property
    def kind(self) -> Literal["benchmark", "training", "live"]:
        said = self.report.get("kind")
        return "training" if said == "toolrl-dr" else "live" if said == DATASET else "benchmark"

    @property
    def is_own(self) -> bool:
        """Whether the build says that it was made of somebody's own tools (`rbtc build --cases`).

        Such a build has no upstream, no counts that are known beforehand, and as few cases as its maker
        wrote.
        """
        return self.report.get("profile") == OWN_CASES

    def sha256(self, path: str) -> str | None:
        """The sha256 of a regular file's bytes, "" if it cannot be read; None where there is no such file.

        Only what is asked for is hashed, once: a foreign file may be of any size.
        """
        if self.there.get(path) != "file":
            return None
        if path not in self._hashes:
            try:
                self._hashes[path] = marker.sha256(self.path / path)
            except OSError:
                self._hashes[path] = ""
        return self._hashes[path]

    def report_field(self, field: str) -> dict[str, Any]:
        """A mapping of the build report; {} where it has none of that name."""
        found = self.report.get(field)
        return found if isinstance(found, dict) else {}

    def data(self, path: str) -> bytes:
        """The bytes of a regular file; b"" where there is none that can be read."""
        try:
            return (self.path / path).read_bytes() if self.there.get(path) == "file" else b""
        except OSError:
            return b""

    def configs(self) -> list[str]:
        """Folders that hold Parquet files, by name."""
        folders = (path.split("/") for path in self._parquet())
        return sorted({parts[0] for parts in folders if len(parts) == 2})

    def splits(self, config: str) -> list[str]:
        """Splits of a config, by its files' names."""
        return sorted(split for its, split in self._shards if its == config)

    def shards(self, config: str, split: str) -> list[Path]:
        """The shards of a split; [] (and a note) where one is missing."""
        try:
            return parquet.complete(self._shards.get((config, split), []), self.path / config, split)
        except UserError as error:
            self._note(config, split, error)
            return []

    def _parquet(self) -> list[str]:
        """Regular files named like Parquet, in the order of `manifest.digest`."""
        found = [path for path, kind in self.there.items() if kind == "file" and path.endswith(".parquet")]
        return sorted(found, key=lambda path: PurePosixPath(path).parts)

    def rows(self, config: str, split: str = "test") -> Iterator[dict[str, Any]]:
        """Rows as Parquet has them. A broken file ends them, with a note."""
        for chunk in self.chunks(config, split):
            yield from self.read_chunk(chunk)

    def chunks(self, config: str, split: str = "test") -> list[Chunk]:
        """The row groups of a split, in order."""
        found: list[Chunk] = []
        first = 0
        for path in self.shards(config, split):
            try:
                about = pq.read_metadata(path)
            except BROKEN as error:
                self._note(config, split, error)
                continue
            for group in range(about.num_row_groups):
                rows = about.row_group(group).num_rows
                found.append(Chunk(config, split, path, group, first, rows))
                first += rows
        return found

    def read_chunk(self, chunk: Chunk, columns: list[str] | None = None) -> list[dict[str, Any]]:
        """The rows of a row group, or some of their columns; none (and a note) if it cannot be read."""
        try:
            with pq.ParquetFile(chunk.path) as file:
                rows: list[dict[str, Any]] = file.read_row_group(chunk.group, columns).to_pylist()
                return rows
        except BROKEN as error:
            self._note(chunk.config, chunk.split, error)
            return []

    def columns(self, config: str, split: str) -> dict[str, list[tuple[str, str]]]:
        """Per shard, the (name, type) of its columns."""
        found = {}
        for path in self.shards(config, split):
            try:
                found[path.name] = [(field.name, type_name(field.type)) for field in pq.read_schema(path)]
            except BROKEN as error:
                self._note(config, split, error)
        return found

    def digest(self) -> str:
        """sha256 over names and contents of all Parquet files: which bytes were audited."""
        lines = "".join(f"{path} {self.sha256(path)}\n" for path in self._parquet())
        return hashlib.sha256(lines.encode("utf-8", "surrogateescape")).hexdigest()

    def _note(self, config: str, split: str, error: Exception) -> None:
        what = (str(error).replace(f"{self.path}/", "").splitlines() or [type(error).__name__])[0][:200]
        note = Failure(f"{config}/{split}", what)
        if note not in self.unreadable:
            self.unreadable.append(note)


def type_name(kind: Any) -> str:
    """An Arrow type as text. Writers disagree about what they call a list's element: that is left out."""
    return re.sub(r"list<\w+: ", "list<", str(kind))


def unreadable(folder: Folder) -> Check:
    """Whatever could not be read on the way."""
    return check(
        "files.readable",
        "Every Parquet file can be read and every set of shards is complete.",
        max(1, len(folder.configs())),
        folder.unreadable,
    )
