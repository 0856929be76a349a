"""The datasets that a results repository takes runs of: the core, live episodes, rows of own tools."""

from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import msgspec

from robustbench_tc import taxonomy
from robustbench_tc.errors import UserError
from robustbench_tc.eval import inputs
from robustbench_tc.eval.inputs import Dataset
from robustbench_tc.eval.live import inputs as live_inputs
from robustbench_tc.eval.live.inputs import LiveData
from robustbench_tc.live import LiveRow
from robustbench_tc.schema import Sample
from robustbench_tc.worlds.find import BUNDLED

from . import flags
from .entry import Kind
from .status import Status

_Loaded = TypeVar("_Loaded", Dataset, LiveData)


class Rows(Dataset, frozen=True, kw_only=True, dict=True):
    """Rows that a model is asked: the core, or rows of somebody's own tools."""

    kind: Kind
    title: str
    """ORG/NAME, or the name of the folder."""
    label: str
    """The version as it is shown and stored."""
    digest: str
    """`fingerprint`, worked out once."""

    @classmethod
    def of(cls, found: Dataset, title: str, kind: Kind) -> "Rows":
        """Raises UserError for a core dataset that lacks a type."""
        there = {row.type_code for row in found.rows}
        missing = [code for code in (taxonomy.CLEAN, *taxonomy.codes()) if code not in there]
        if kind == "core" and missing:
            raise UserError(
                f"{title} has no rows of {', '.join(missing)}: a board needs a dataset with every type"
            )
        same = {name: getattr(found, name) for name in Dataset.__struct_fields__}
        label = found.version or "unversioned"
        return cls(kind=kind, title=title, label=label, digest=found.fingerprint(), **same)

    @cached_property
    def by_id(self) -> dict[str, Sample]:
        return {row.id: row for row in self.rows}

    @cached_property
    def known(self) -> flags.Known:
        """What runs are held against: seconds of work for the paper's 3,994 rows."""
        return flags.known(self)


class LiveRows(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The rows that live runs have played. Their worlds are bundled: nobody's code is run here."""

    data: LiveData
    kind: Kind = "live"
    title: str
    label: str
    digest: str

    @classmethod
    def of(cls, data: LiveData, title: str) -> "LiveRows":
        """Raises UserError for a dataset that no board can replay."""
        if other := sorted({row.world for row in data.rows} - set(BUNDLED)):
            raise UserError(
                f"{title} has rows of the world {other[0]}: a board replays the bundled worlds alone "
                f"({', '.join(BUNDLED)}), so give one of `rbtc build live`"
            )
        if not any(row.fault is not None for row in data.rows):
            raise UserError(f"{title} has no row with a fault: a live board needs some")
        return cls(data=data, title=title, label=data.version or "unversioned", digest=data.fingerprint())

    @cached_property
    def by_id(self) -> dict[str, LiveRow]:
        return {row.id: row for row in self.data.rows}


class Datasets(msgspec.Struct, frozen=True, kw_only=True):
    """What runs are checked against."""

    core: Rows
    live: LiveRows | None = None
    own: tuple[Rows, ...] = ()

    @classmethod
    def of_status(cls, status: Status, base: Path | None = None) -> "Datasets":
        """Loads what `status.yaml` names; folders lie relative to `base`. Raises UserError."""
        core = Rows.of(*_loaded(inputs.load, status.dataset, base), "core")
        live = None
        if status.live is not None:
            live = LiveRows.of(*_loaded(live_inputs.load, status.live, base))
        own = [Rows.of(*_loaded(inputs.load, one, base), "own") for one in status.own]
        published = {row.source for row in core.rows}
        for one in own:
            if both := sorted(published & {row.source for row in one.rows}):
                raise UserError(f"{one.title} has rows of {both[0]}: `own` takes datasets of own tools alone")
        return cls(core=core, live=live, own=tuple(own))

    @property
    def fingerprints(self) -> set[str]:
        """Of all of them."""
        return {one.digest for one in (*self.rows, self.live) if one is not None}

    @property
    def rows(self) -> Iterator[Rows]:
        """Those whose runs are predictions."""
        yield self.core
        yield from self.own


def _loaded(load: Callable[..., _Loaded], word: str, base: Path | None) -> tuple[_Loaded, str]:
    """What `ORG/NAME@VERSION` or a folder names, and its title."""
    folder = (base or Path()) / Path(word).expanduser()
    if folder.is_dir():
        return load(str(folder)), folder.resolve().name
    name, _, revision = word.partition("@")
    return load(name, revision=revision or None), name
