"""The datasets that a results repository takes runs of: the core, live episodes, rows of own tools."""

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from robustbench_tc import taxonomy
from robustbench_tc.errors import UserError
from robustbench_tc.eval import inputs
from robustbench_tc.eval.inputs import load_live
from robustbench_tc.eval.live import inputs as live_inputs
from robustbench_tc.worlds.find import BUNDLED

from . import flags
from .entry import Kind, Status


class Rows(inputs.Dataset, frozen=True, kw_only=True, dict=True):
    """Rows that a model is asked: the core, or rows of somebody's own tools."""

    kind: Kind
    title: str
    """ORG/NAME, or the name of the folder."""
    digest: str
    """`fingerprint`, worked out once."""

    @cached_property
    def known(self) -> flags.Known:
        """What runs are held against: seconds of work for the paper's 3,994 rows."""
        return flags.known(self)


class LiveRows(live_inputs.LiveData, frozen=True, kw_only=True, dict=True):
    """The rows that live runs have played; the rest as `Rows`."""

    kind: Kind
    title: str
    digest: str


_Taken = TypeVar("_Taken", Rows, LiveRows)


class Datasets(msgspec.Struct, frozen=True, kw_only=True):
    """What runs are checked against."""

    core: Rows
    live: LiveRows | None = None
    own: tuple[Rows, ...] = ()

    @classmethod
    def of_status(cls, status: Status, base: Path | None = None) -> "Datasets":
        """Loads what `status.yaml` names; folders lie relative to `base`. Raises UserError."""
        core = _load(Rows, inputs.load_samples, "core", status.dataset, base)
        there = {row.type_code for row in core.rows}
        if missing := [code for code in (taxonomy.CLEAN, *taxonomy.codes()) if code not in there]:
            raise UserError(
                f"{core.title} has no rows of {', '.join(missing)}: a board needs a dataset with every type"
            )
        live = None
        if status.live is not None:
            live = _load(LiveRows, load_live, "live", status.live, base)
            if other := sorted({row.world for row in live.rows} - set(BUNDLED)):  # nobody's code is run here
                raise UserError(
                    f"{live.title} has rows of the world {other[0]}: a board replays the bundled worlds "
                    f"alone ({', '.join(BUNDLED)}), so give one of `rbtc build live`"
                )
        own = tuple(_load(Rows, inputs.load_samples, "own", one, base) for one in status.own)
        published = {row.source for row in core.rows}
        for one in own:
            if both := sorted(published & {row.source for row in one.rows}):
                raise UserError(f"{one.title} has rows of {both[0]}: `own` takes datasets of own tools alone")
        return cls(core=core, live=live, own=own)

    @property
    def fingerprints(self) -> set[str]:
        """Of all of them."""
        return {one.digest for one in (*self.rows, self.live) if one is not None}

    @property
    def rows(self) -> tuple[Rows, ...]:
        """Those whose runs are predictions."""
        return (self.core, *self.own)


def _load(
    as_kind: type[_Taken], load: Callable[..., Any], kind: Kind, word: str, base: Path | None
) -> _Taken:
    """What `ORG/NAME@VERSION` or a folder names."""
    folder = (base or Path()) / Path(word).expanduser()
    title, _, revision = word.partition("@")
    if folder.is_dir():
        title, found = folder.resolve().name, load(str(folder))
    else:
        found = load(title, revision=revision or None)
    same = {name: getattr(found, name) for name in found.__struct_fields__}
    return as_kind(kind=kind, title=title, digest=found.fingerprint(), **same)
