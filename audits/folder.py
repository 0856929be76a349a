"""An audited folder as it lies on disk, read with suspicion: whatever is broken becomes a finding."""

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec
import pyarrow.parquet as pq

from robustbench_tc import parquet
from robustbench_tc.errors import UserError
from robustbench_tc.schema import Json

from .report import Check, Failure, check


class Chunk(NamedTuple):
    """A row group of a split."""

    config: str
    split: str
    path: Path
    group: int
    first: int
    """Number of its first row in the split, from 0."""
    rows: int


class Folder:
    """A build: its report and its configs. Raises UserError where there is no build at all."""

    def __init__(self, path: Path) -> None:
        if not path.is_dir():
            raise UserError(f"no build at {path}: name the folder that `rbtc build` wrote")
        try:
            self.report: dict[str, Json] = msgspec.json.decode(
                (path / "build_report.json").read_bytes(), type=dict[str, Json]
            )
        except FileNotFoundError:
            raise UserError(
                f"{path} holds no build_report.json: name the folder that `rbtc build` wrote"
            ) from None
        except ValueError as error:
            raise UserError(f"{path / 'build_report.json'} is damaged ({error}): build it again") from None
        self.path = path
        self.unreadable: list[Failure] = []
        """Files and shard sets that could not be read, noted as they are met."""

    @property
    def kind(self) -> Literal["benchmark", "training"]:
        return "benchmark" if "profile" in self.report else "training"

    def configs(self) -> list[str]:
        """Folders that hold Parquet files, by name."""
        return sorted(p.name for p in self.path.iterdir() if p.is_dir() and any(p.glob("*.parquet")))

    def splits(self, config: str) -> list[str]:
        """Splits of a config, by its files' names."""
        names = (
            re.match(r"(\w+)-\d{5}-of-\d{5}\.parquet$", p.name)
            for p in (self.path / config).glob("*.parquet")
        )
        return sorted({match.group(1) for match in names if match})

    def shards(self, config: str, split: str) -> list[Path]:
        """The shards of a split; [] (and a note) where one is missing."""
        try:
            return parquet.shards(self.path / config, split)
        except UserError as error:
            self._note(config, split, error)
            return []

    def rows(self, config: str, split: str = "test") -> Iterator[dict[str, Any]]:
        """Rows as Parquet has them. A broken file ends them, with a note."""
        for chunk in self.chunks(config, split):
            yield from self.read(chunk)

    def chunks(self, config: str, split: str = "test") -> list[Chunk]:
        """The row groups of a split, in order."""
        found: list[Chunk] = []
        first = 0
        for path in self.shards(config, split):
            try:
                about = pq.read_metadata(path)
            except (OSError, ValueError) as error:
                self._note(config, split, error)
                continue
            for group in range(about.num_row_groups):
                rows = about.row_group(group).num_rows
                found.append(Chunk(config, split, path, group, first, rows))
                first += rows
        return found

    def read(self, chunk: Chunk) -> list[dict[str, Any]]:
        """The rows of a row group; none (and a note) if it cannot be read."""
        try:
            with pq.ParquetFile(chunk.path) as file:
                rows: list[dict[str, Any]] = file.read_row_group(chunk.group).to_pylist()
                return rows
        except (OSError, ValueError) as error:
            self._note(chunk.config, chunk.split, error)
            return []

    def columns(self, config: str, split: str) -> dict[str, list[tuple[str, str]]]:
        """Per shard, the (name, type) of its columns."""
        found = {}
        for path in self.shards(config, split):
            try:
                found[path.name] = [(field.name, type_name(field.type)) for field in pq.read_schema(path)]
            except (OSError, ValueError) as error:
                self._note(config, split, error)
        return found

    def digest(self) -> str:
        """sha256 over names and contents of all Parquet files: which bytes were audited."""
        total = hashlib.sha256()
        for path in sorted(self.path.rglob("*.parquet")):
            with path.open("rb") as file:
                one = hashlib.file_digest(file, "sha256").hexdigest()
            total.update(f"{path.relative_to(self.path).as_posix()} {one}\n".encode())
        return total.hexdigest()

    def _note(self, config: str, split: str, error: Exception) -> None:
        what = str(error).replace(f"{self.path}/", "").splitlines()[0][:200]
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
