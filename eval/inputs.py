"""The rows to evaluate: a release folder, a Hub dataset, or the layout of the paper's public release."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import msgspec
import pyarrow as pa

from robustbench_tc import live_types, taxonomy
from robustbench_tc.errors import UserError
from robustbench_tc.io import parquet
from robustbench_tc.io.resolve import resolve_dataset, version_of
from robustbench_tc.own.book import Book, read_book
from robustbench_tc.schema import TASKS, Json, LiveRow, Sample, Tool, arrow_table, content_hash, record

from . import paper_layout
from .agents import blind
from .agents.blind import TypeFigures
from .data import Data, Row, Selection
from .live import inputs as live_inputs
from .live.inputs import LiveData, mistake

Kind = TypeVar("Kind", bound=Data[Any])

Names: TypeAlias = str | Sequence[str]
"""One or several, each possibly comma-separated."""


NEEDED = ("*/test-*.parquet", "README.md", "*.json")
"""What is downloaded from the Hub."""


class Dataset(Data[Sample], frozen=True, kw_only=True, dict=True):
    """Samples: every row of every sample config, clean first, in taxonomy order."""

    digest_of = staticmethod(content_hash)
    audited: tuple[TypeFigures, ...] = ()
    """What needs no reading, as the dataset's audit counted it."""
    book: Book | None = None
    """Of own tools: what their cases say beside the rows."""

    @property
    def results(self) -> Mapping[str, Mapping[str, Sequence[Json]]]:
        """By clean id and tool what a tool answers, in turn; only of own tools."""
        return {} if self.book is None else self.book.results

    def anchors(self) -> dict[str, Sample]:
        """For each row id the clean row that it is judged against; see `anchors`."""
        return anchors(self.rows)

    def needs_no_reading(self) -> tuple[TypeFigures, ...]:
        """How far one gets without the request: by the dataset's audit, else counted in the rows."""
        if self.audited or len(self.rows) > blind.COUNTED:
            return self.audited
        return blind.counted(self.rows)

    def hash_of(self, row_id: str) -> str | None:
        """Its `content_hash`, if there is such a row."""
        return self.hashes.get(row_id)

    def take(self, ids: Iterable[str]) -> pa.Table:
        """The rows of the samples that these ids are of."""
        wanted = {self.by_id[one].clean_id for one in ids}
        return arrow_table((row for row in self.rows if row.clean_id in wanted), Sample)


def anchors(rows: Iterable[Sample]) -> dict[str, Sample]:
    """For each row id the clean row among `rows` that it is judged against.

    A row of the paper's release may have none: then it is the row itself without its same-named tools.
    """
    rows = tuple(rows)
    clean = {row.clean_id: row for row in rows if row.type_code == taxonomy.CLEAN}
    return {row.id: clean.get(row.clean_id) or _without_namesakes(row) for row in rows}


def _without_namesakes(row: Sample) -> Sample:
    index = row.gold_tool_index
    if index is None:
        return row
    gold = row.tools[index]
    tools = tuple(tool for tool in row.tools if tool is gold or tool.name != gold.name)
    return msgspec.structs.replace(row, tools=tools, gold_tool_index=tools.index(gold))


def names_of(given: Names) -> list[str]:
    """The names, one by one."""
    items: Iterable[str] = [given] if isinstance(given, str) else given
    return [word.strip() for item in items for word in item.split(",") if word.strip()]


def selection_of(
    types: Names = (),
    sources: Names = (),
    ids: str | Sequence[str] = (),
    limit: int | None = None,
    samples: int | None = None,
    *,
    live: bool = False,
) -> Selection:
    """Which rows these words mean; components stand for their types, and of `live` rows kinds of faults for
    theirs. `Data.select` checks names."""
    if live and sources:
        raise UserError("--sources: live rows are of no source; select them by --types, --ids or --samples")
    codes: list[str] = []
    if live:
        codes += live_inputs.codes(taxonomy.split(types))
    else:
        for word in taxonomy.split(types):
            codes += taxonomy.codes_of(word) if word in taxonomy.COMPONENTS else [taxonomy.find(word)]
    return Selection(
        types=tuple(dict.fromkeys(codes)),
        sources=tuple(dict.fromkeys(names_of(sources))),
        ids=tuple(dict.fromkeys([ids] if isinstance(ids, str) else ids)),
        limit=limit,
        samples=samples,
    )


def load(dataset: str, *, revision: str | None = None) -> Dataset | LiveData:
    """Every row of `dataset`: a release folder, a live dataset's, one in the paper's layout, or `org/name`
    on the Hub; what lies in it says which.

    `revision` of a local release is checked against its manifest. Raises UserError with one line that names
    what is wrong and what was looked for.
    """
    local = Path(dataset).expanduser()
    is_file = local.is_file() and revision is None
    folder = local if is_file else resolve_dataset(dataset, revision, patterns=NEEDED)
    name, commit = dataset, None
    if is_file or local.is_dir():
        folder = folder.resolve()
        name = str(folder)
    else:
        commit = folder.name  # the cache keeps each commit in a folder of its name
    if is_dataset(folder):
        return _load_live(folder, name, commit)
    if any((folder / taxonomy.CLEAN).glob("test-*.parquet")):
        return _load_release(folder, name, commit)
    if (found := paper_rows(folder)) is not None:
        return found
    raise UserError(
        f"{name} is not a RobustBench-TC dataset: it has neither clean/test-*.parquet nor "
        "api_eval/clean.jsonl"
    )


def load_live(dataset: str, *, revision: str | None = None) -> LiveData:
    """`load` for what takes a live dataset alone. Raises UserError."""
    otherwise = f"{dataset} is not a live dataset (`rbtc build live` makes one)"
    return only(load(dataset, revision=revision), LiveData, otherwise)


def load_samples(dataset: str, *, revision: str | None = None) -> Dataset:
    """`load` for what takes no live dataset. Raises UserError for one."""
    otherwise = f"{dataset} is a live dataset: its rows are episodes, which `rbtc eval` alone plays"
    return only(load(dataset, revision=revision), Dataset, otherwise)


def only(data: Dataset | LiveData, kind: type[Kind], otherwise: str) -> Kind:
    """The data, if they are of this kind. Raises UserError."""
    if not isinstance(data, kind):
        raise UserError(otherwise)
    return data


def paper_rows(folder: Path) -> Dataset | None:
    """The rows of a folder in the layout of the paper's release; None for another one. Raises UserError."""
    for paper in (folder, folder / "api_eval"):
        if paper_layout.is_release(paper):
            rows, left_out = paper_layout.read_release(paper)
            return Dataset(name=str(folder), rows=rows, left_out=left_out)
    return None


def _load_release(folder: Path, name: str, revision: str | None) -> Dataset:
    rows: list[Sample] = []
    read = partial(sample, registries={})
    for code in taxonomy.configs(folder):
        rows += _read_rows(folder / code, Sample, read, str)
    _clean_of(name, rows)
    return Dataset(
        name=name,
        revision=revision,
        version=version_of(folder),
        rows=tuple(rows),
        audited=blind.audited(folder, Counter(row.type_code for row in rows)),
        book=read_book(folder),
    )


def _load_live(folder: Path, name: str, revision: str | None) -> LiveData:
    configs = [TASKS, *sorted(path.name for path in folder.glob("live_*") if path.is_dir())]
    order = {code: at for at, code in enumerate(live_types.type_codes())}
    configs.sort(key=lambda code: (code != TASKS, order.get(code, len(order)), code))
    rows: list[LiveRow] = []
    read = partial(record, kind=LiveRow)
    for config in configs:
        rows += _read_rows(folder / config, LiveRow, read, live_types.config_of)
    clean = _clean_of(name, rows)
    for row in rows:
        if wrong := mistake(row, clean[row.clean_id]):
            raise UserError(f"{name}, row {row.id!r}: {wrong}"[:600])
    return LiveData(name=name, revision=revision, version=version_of(folder), rows=tuple(rows))


def _clean_of(name: str, rows: Iterable[Row]) -> dict[str, Row]:
    """The clean row of each sample. Raises UserError for an id that occurs twice, and where there is none."""
    seen: set[str] = set()
    clean: dict[str, Row] = {}
    for row in rows:  # clean ones come first
        if row.id in seen:
            raise UserError(f"{name}: the row id {row.id!r} occurs twice")
        seen.add(row.id)
        if row.type_code == taxonomy.CLEAN:
            clean[row.clean_id] = row
        if row.clean_id not in clean:
            raise UserError(f"{name}: {row.id!r} has no clean row to compare with")
    return clean


def _read_rows(
    folder: Path, kind: type[Row], read: Callable[[dict[str, Any]], Row], config_of: Callable[[str], str]
) -> Iterator[Row]:
    """The rows of one config. Raises UserError naming the file's folder and the row."""
    for index, plain in enumerate(parquet.read_rows(parquet.shards(folder))):
        missing = [name for name in kind.__struct_fields__ if name not in plain]
        if missing:
            raise UserError(
                f"{folder} is not a dataset of this benchmark: it has no column {', '.join(missing)}"
            )
        try:
            row = read(plain)
        except ValueError as error:
            raise UserError(f"{folder}, row {index}: {error}") from None
        if config_of(row.type_code) != folder.name:
            raise UserError(f"{folder}, row {index}: type {row.type_code!r} in the config {folder.name!r}")
        yield row


def sample(plain: dict[str, Any], registries: dict[str, tuple[Tool, ...]]) -> Sample:
    """A row of a release file. Equal registries become one object, remembered in `registries`."""
    registry = plain["tools"]
    known = registries.get(registry)
    row = record(plain if known is None else plain | {"tools": known}, Sample)
    registries[registry] = row.tools
    return row


def is_dataset(folder: Path) -> bool:
    """Whether a folder holds a live dataset."""
    return any((folder / TASKS).glob("test-*.parquet"))
