"""The live dataset of a board: what live runs play, and the worlds that the server replays them in."""

from functools import cached_property
from pathlib import Path

import msgspec

from robustbench_tc.errors import UserError
from robustbench_tc.eval.live import inputs
from robustbench_tc.eval.live.inputs import LiveData
from robustbench_tc.live import LiveRow
from robustbench_tc.worlds.find import BUNDLED, find
from robustbench_tc.worlds.handle import WorldType

CLOSED = "it was started without a live dataset (--live-dataset)"
"""Why a board takes no live runs."""


class LiveAsked(msgspec.Struct, frozen=True, dict=True):
    """The rows that live runs of a board have played."""

    data: LiveData

    @classmethod
    def of(cls, data: LiveData) -> "LiveAsked":
        """Raises UserError for a dataset that no board can replay."""
        other = sorted({row.world for row in data.rows} - set(BUNDLED))
        if other:
            raise UserError(
                f"{data.name} has rows of the world {other[0]}: a board replays the bundled worlds alone "
                f"({', '.join(BUNDLED)}), so give one of `rbtc build live`"
            )
        if not any(row.fault is not None for row in data.rows):
            raise UserError(f"{data.name} has no row with a fault: a live board needs some")
        return cls(data)

    @property
    def label(self) -> str:
        """The version as it is shown and stored."""
        return self.data.version or "unversioned"

    @cached_property
    def fingerprint(self) -> str:
        return self.data.fingerprint()

    @cached_property
    def by_id(self) -> dict[str, LiveRow]:
        return {row.id: row for row in self.data.rows}

    @cached_property
    def clean(self) -> dict[str, LiveRow]:
        return self.data.clean()

    @cached_property
    def worlds(self) -> dict[str, WorldType]:
        """The world of each name in the rows."""
        return {name: find(name) for name in sorted({row.world for row in self.data.rows})}


def load_live(dataset: str | Path, revision: str | None = None) -> LiveAsked:
    """A live dataset for a board. Raises UserError."""
    return LiveAsked.of(inputs.load(str(dataset), revision=revision))
