"""The rows of a live dataset, a folder or one of the Hub, and which of them a run asks."""

from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from robustbench_tc import live_types, schema, taxonomy
from robustbench_tc.errors import UserError, unknown
from robustbench_tc.io import parquet
from robustbench_tc.io.resolve import resolve_dataset, version_of
from robustbench_tc.schema import LiveRow, row_hash
from robustbench_tc.worlds.find import BFCL, BUNDLED, find
from robustbench_tc.worlds.handle import WorldType

from .. import draw
from .row_check import mistake

if TYPE_CHECKING:
    from ..inputs import Selection

NEEDED = ("*/test-*.parquet", "README.md", "*.json")
"""What is downloaded from the Hub."""


class LiveData(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A loaded live dataset: the tasks, then the rows of each kind of fault and of each registry type."""

    name: str
    """The folder as an absolute path, or the Hub id."""
    revision: str | None = None
    version: str | None = None
    rows: tuple[LiveRow, ...]

    @cached_property
    def by_id(self) -> dict[str, LiveRow]:
        """The rows by their ids."""
        return {row.id: row for row in self.rows}

    def clean(self) -> dict[str, LiveRow]:
        """The clean row of each task."""
        return {row.clean_id: row for row in self.rows if row.clean}

    @cached_property
    def _hashes(self) -> dict[str, str]:
        return {row.id: row_hash(row) for row in self.rows}

    def hashes(self) -> dict[str, str]:
        """`row_hash` by row id."""
        return self._hashes

    def fingerprint(self) -> str:
        """32 hex digits over the sorted (id, row hash) pairs."""
        return schema.fingerprint(sorted(self.hashes().items()))

    def select(self, selection: "Selection") -> tuple[LiveRow, ...]:
        """As `select`."""
        return select(self, selection)


def load(dataset: str, *, revision: str | None = None) -> LiveData:
    """Every row of a live dataset. Raises UserError in one line that names what is wrong."""
    folder = resolve_dataset(dataset, revision, patterns=NEEDED)
    if not any((folder / schema.TASKS).glob("test-*.parquet")):
        raise UserError(
            f"{dataset} is not a live dataset: it has no {schema.TASKS}/test-*.parquet "
            "(`rbtc build live` makes one)"
        )
    return load_folder(folder, dataset)


def load_folder(folder: Path, dataset: str) -> LiveData:
    """The live dataset in `folder`, which is `dataset` as it was named. Raises UserError as `load`."""
    local = Path(dataset).expanduser().is_dir()
    configs = [schema.TASKS, *sorted(p.name for p in folder.glob("live_*") if p.is_dir())]
    order = {code: at for at, code in enumerate(live_types.type_codes())}
    configs.sort(key=lambda name: (name != schema.TASKS, order.get(name, len(order)), name))
    rows = [row for name in configs for row in _read(folder / name)]
    _check(dataset, rows)
    return LiveData(
        name=str(folder.resolve()) if local else dataset,
        revision=None if local else folder.name,
        version=version_of(folder),
        rows=tuple(rows),
    )


def _read(folder: Path) -> list[LiveRow]:
    rows = []
    for index, plain in enumerate(parquet.read_rows(parquet.shards(folder))):
        missing = [name for name in LiveRow.__struct_fields__ if name not in plain]
        if missing:
            raise UserError(f"{folder} is not of a live dataset: it has no column {', '.join(missing)}")
        try:
            row = schema.record(plain, LiveRow)
        except ValueError as error:
            raise UserError(f"{folder}, row {index}: {error}") from None
        if live_types.config_of(row.type_code) != folder.name:
            raise UserError(f"{folder}, row {index}: type {row.type_code!r} does not belong here")
        rows.append(row)
    return rows


def _check(name: str, rows: Iterable[LiveRow]) -> None:
    seen: set[str] = set()
    clean: dict[str, LiveRow] = {}
    for row in rows:  # the tasks come first
        if row.id in seen:
            raise UserError(f"{name}: the row id {row.id!r} occurs twice")
        seen.add(row.id)
        if row.clean:
            clean[row.clean_id] = row
        if row.clean_id not in clean:
            raise UserError(f"{name}: {row.id!r} has no clean row to be compared with")
        if wrong := mistake(row, clean[row.clean_id]):
            raise UserError(f"{name}, row {row.id!r}: {wrong}"[:600])


def select(data: LiveData, selection: "Selection") -> tuple[LiveRow, ...]:
    """The selected rows, in the dataset's order; kinds of faults bring the clean rows of their tasks along,
    which they are compared with. Raises UserError: an unknown name, or nothing is left."""
    known = tuple(dict.fromkeys(row.type_code for row in data.rows))
    for code in selection.types:
        if code not in known:
            raise unknown("type in this dataset", code, known)
    present = {row.id for row in data.rows} | {row.clean_id for row in data.rows}
    for wanted in selection.ids:
        if wanted not in present:
            raise unknown("row id", wanted, present)
    rows = [
        row
        for row in data.rows
        if (not selection.types or row.type_code in selection.types)
        and (not selection.ids or row.id in selection.ids or row.clean_id in selection.ids)
    ]
    if selection.types and not selection.ids:
        tasks, named = {row.clean_id for row in rows}, {row.id for row in rows}
        rows = [row for row in data.rows if row.id in named or (row.clean and row.clean_id in tasks)]
    if not rows:
        raise UserError(f"no row of {data.name} fits the selection: widen --types or --ids")
    return tuple(draw.part(rows, selection.limit, selection.samples, by="world"))


def codes(words: Iterable[str]) -> tuple[str, ...]:
    """Type codes for what a user named: `clean`, a code, a kind of fault, or a registry type."""
    known = {*schema.KINDS, *live_types.registry_types()}
    named = map(taxonomy.code_of, words)
    return tuple(dict.fromkeys(f"live_{one}" if one in known else one for one in named))


def world_types(
    rows: Iterable[LiveRow], files: Sequence[str] = (), python: str | None = None
) -> dict[str, WorldType]:
    """The world of each name that rows have. `files`: worlds that this package does not bring.

    A dataset never brings code along: whoever runs it names the file. Raises UserError.
    """
    own = {found.name: found for found in map(find, files)}
    names = dict.fromkeys(row.world for row in rows)
    for name in names:
        if name not in own and name not in (*BUNDLED, BFCL):
            raise UserError(f"world {name!r} is not bundled: name its Python file with --worlds")
    return {name: own.get(name) or find(name, python=python) for name in names}
