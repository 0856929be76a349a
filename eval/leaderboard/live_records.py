"""What is computed of a live run. Its record is a `Submission` of the kind `live`."""

from hashlib import sha256

import msgspec

from robustbench_tc.eval.live.counts import TypeCounts
from robustbench_tc.eval.live.show import Shown
from robustbench_tc.eval.parse import READER_VERSION
from robustbench_tc.eval.stats.intervals import Interval
from robustbench_tc.eval.stats.live import Line

from .shape import shape
from .tiers import Flag

LIVE_SCORES = 1
"""Raise it when worlds, faults, replay or statistics change what an entry says of the same journal."""


class LiveEntry(msgspec.Struct, frozen=True, kw_only=True):
    """What the board shows of one live run: the figures of `rbtc live report`."""

    episodes: int
    repeats: int
    clean: Interval
    """Success of the clean episodes."""
    lines: tuple[Line, ...]
    """`eval.stats.live.lines`: every kind, explicit, implicit, all, and registry types."""
    counts: tuple[TypeCounts, ...]
    """`eval.live.counts.counted`: information stands there, beside success and apart from it."""
    effects: dict[str, dict[str, int]]
    """`eval.live.report.side_effects`."""
    flags: tuple[Flag, ...] = ()
    drawn: tuple[Shown, ...] = ()
    """A few episodes, call by call."""

    def line(self, name: str) -> Line | None:
        """One of `lines`, by its name."""
        return next((one for one in self.lines if one.name == name), None)


_SHAPE = sha256(msgspec.json.encode(shape(msgspec.json.schema(LiveEntry)), order="sorted")).hexdigest()[:8]
LIVE_VERSION = f"live-reader{READER_VERSION}-scores{LIVE_SCORES}-{_SHAPE}"
"""What a live entry rests on beside the journal, as `records.ENTRY_VERSION` for others."""
