"""The datasets that a results repository takes runs of: the core, live episodes, rows of own tools."""

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import msgspec

from robustbench_tc import taxonomy
from robustbench_tc.errors import UserError
from robustbench_tc.eval.inputs import Dataset, load_live, load_samples
from robustbench_tc.eval.live.inputs import LiveData
from robustbench_tc.worlds.find import BUNDLED

from . import flags
from .entry import Status

Data = TypeVar("Data", Dataset, LiveData)


class Datasets(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """What runs are checked against."""

    core: Dataset
    live: LiveData | None = None
    own: tuple[Dataset, ...] = ()

    @classmethod
    def of_status(cls, status: Status, base: Path | None = None) -> "Datasets":
        """Loads what `status.yaml` names; folders lie relative to `base`. Raises UserError."""
        core = _load(load_samples, status.dataset, base)
        there = {row.type_code for row in core.rows}
        if missing := [code for code in (taxonomy.CLEAN, *taxonomy.codes()) if code not in there]:
            raise UserError(
                f"{title(core)} has no rows of {', '.join(missing)}: a board needs a dataset with every type"
            )
        live = None
        if status.live is not None:
            live = _load(load_live, status.live, base)
            if other := sorted({row.world for row in live.rows} - set(BUNDLED)):  # nobody's code is run here
                raise UserError(
                    f"{title(live)} has rows of the world {other[0]}: a board replays the bundled worlds "
                    f"alone ({', '.join(BUNDLED)}), so give one of `rbtc build live`"
                )
        own = tuple(_load(load_samples, one, base) for one in status.own)
        published = {row.source for row in core.rows}
        for one in own:
            if both := sorted(published & {row.source for row in one.rows}):
                raise UserError(
                    f"{title(one)} has rows of {both[0]}: `own` takes datasets of own tools alone"
                )
        return cls(core=core, live=live, own=own)

    @property
    def fingerprints(self) -> set[str]:
        """Of all of them."""
        return {one.fingerprint() for one in (*self.rows, self.live) if one is not None}

    @property
    def rows(self) -> tuple[Dataset, ...]:
        """Those whose runs are predictions."""
        return (self.core, *self.own)

    @cached_property
    def known(self) -> flags.Known:
        """What runs over the core are held against: seconds of work for the paper's 3,994 rows."""
        return flags.known(self.core)


def _load(load: Callable[..., Data], word: str, base: Path | None) -> Data:
    """What `ORG/NAME@VERSION` or a folder names."""
    folder = (base or Path()) / Path(word).expanduser()
    if folder.is_dir():
        return load(str(folder))
    name, _, revision = word.partition("@")
    return load(name, revision=revision or None)


def title(data: Dataset | LiveData) -> str:
    """ORG/NAME, or the name of the folder."""
    folder = Path(data.name)
    return folder.resolve().name if folder.is_dir() else data.name
