"""One line of a board: what tables, filters and tests need of an entry, packed so that thousands fit in
memory. The whole entry is read from the store when a model's own page asks for it."""

import base64
import math
import struct
from collections.abc import Iterator, Sequence
from typing import Literal, get_args

import msgspec
import numpy as np
from numpy.typing import NDArray

from robustbench_tc import taxonomy
from robustbench_tc.eval.stats import levels
from robustbench_tc.eval.stats.intervals import Interval
from robustbench_tc.eval.stats.lattice import Ints
from robustbench_tc.eval.stats.values import HEADS, METRICS, codes_of
from robustbench_tc.eval.stats.verified import Beside

from .records import Entry, Metric
from .tiers import Tier

LEVELS = tuple(level for level in get_args(taxonomy.Level) if codes_of(level) != (level,))
"""The levels that the core has types of."""

FOCUSES = ("perturbed", taxonomy.CLEAN, *taxonomy.COMPONENTS, *LEVELS, *taxonomy.codes())
"""What a board can be ranked by; the first is the default."""

CONDITIONS = (taxonomy.CLEAN, *taxonomy.codes())
"""The rows of `Figures.columns`: clean and the core types, in the taxonomy's order."""

Weights = Literal["open", "closed"]

_SIZES = {"metric": 4, "level": 4, "accuracy": 4, "delta": 4, "counts": 2, "verified": 5}
KEYS = (
    *(("metric", name) for name in METRICS),
    *(("level", name) for name in LEVELS),
    *((kind, code) for code in taxonomy.codes() for kind in ("accuracy", "delta")),
    *(("counts", name) for name in FOCUSES),
    *(("verified", name) for name in HEADS),
)


def _places() -> Iterator[tuple[tuple[str, str], int]]:
    at = 0
    for kind, name in KEYS:
        yield (kind, name), at
        at += _SIZES[kind]


_AT = dict(_places())
_ONE, _TWO = struct.Struct("<d"), struct.Struct("<2d")
WIDTH = sum(_SIZES[kind] for kind, _ in KEYS)
"""Numbers of one entry. NaN stands for what it does not have."""


class Figures(msgspec.Struct, frozen=True):
    """The numbers of an entry and its verdicts, as bytes: about 8 KB, and read without being decoded."""

    numbers: bytes
    """WIDTH floats, little-endian. Counts are exact: they are far below 2**53."""
    verdicts: bytes | None
    """CONDITIONS × clean ids in sorted order, one character each as in `Entry.verdicts`; None: only counts
    are known, so nothing can be paired."""
    repeats: int = 1
    replies: bytes = b""
    """`copies.sketch` of the run."""

    @classmethod
    def of(cls, entry: Entry) -> "Figures":
        """Raises ValueError for an entry that lacks what it is ranked by, or is not one of a run."""
        numbers = np.full(WIDTH, math.nan)

        def put(kind: str, name: str, *values: float | None) -> None:
            at = _AT[kind, name]
            numbers[at : at + len(values)] = [math.nan if value is None else value for value in values]

        for name in HEADS:
            correct, n = entry.counts.get(name, (0, 0))
            if not 0 <= correct <= n or not 0 < n < 2**26:
                raise ValueError(f"it has no count of {name}")
        for name in METRICS:
            if name not in entry.metrics and name != "retention_with_transition":
                raise ValueError(f"it has no figure of {name}")
        if not 1 <= entry.repeats <= 9:
            raise ValueError("its number of repeats is out of range")
        try:
            for name in METRICS:
                if name in entry.metrics:
                    put("metric", name, *_four(entry.metrics[name]))
            for code in taxonomy.codes():
                if code in entry.types:
                    put("accuracy", code, *_four(entry.types[code].accuracy))
                    put("delta", code, *_four(entry.types[code].delta))
            for name in FOCUSES:
                if (found := _counts(entry, name)) is not None:
                    put("counts", name, *found)
            for name in LEVELS:
                put("level", name, *_four(_level(entry, name)))
            for name in HEADS:
                if (one := entry.verified.get(name)) is not None:
                    put("verified", name, one.correct, one.n, one.accuracy, one.left_out, one.best)
        except OverflowError:
            raise ValueError("it holds a number that is too large") from None
        return cls(numbers.astype("<f8").tobytes(), _verdicts(entry), entry.repeats, _replies(entry.replies))

    def check(self) -> None:
        """Raises ValueError for bytes that `of` cannot have made."""
        if len(self.numbers) != 8 * WIDTH or len(self.verdicts or b"") % len(CONDITIONS):
            raise ValueError("these are no figures")

    def _get(self, kind: str, name: str) -> tuple[float | None, ...]:
        found = struct.unpack_from(f"<{_SIZES[kind]}d", self.numbers, 8 * _AT[kind, name])
        return tuple(None if math.isnan(one) else one for one in found)

    def _metric(self, kind: str, name: str) -> Metric:
        value, low, high, n = self._get(kind, name)
        return Metric(value, low, high, int(n or 0))

    def metric(self, name: str) -> Metric:
        """One of `stats.values.METRICS`."""
        return self._metric("metric", name)

    def value(self, name: str, part: int = 0) -> float | None:
        """One of the numbers of `metric` alone, its value first: what thousands of rows are sorted by."""
        [found] = _ONE.unpack_from(self.numbers, 8 * (_AT["metric", name] + part))
        return None if math.isnan(found) else float(found)

    def type(self, code: str) -> tuple[Metric, Metric]:
        """Accuracy and Δ of a core type; empty where the entry lacks it."""
        return self._metric("accuracy", code), self._metric("delta", code)

    def accuracy(self, focus: str) -> Metric:
        """The accuracy in one of FOCUSES; of a level without an interval for entries of before."""
        if focus in ("perturbed", taxonomy.CLEAN):
            return self.metric(focus)
        if focus in taxonomy.COMPONENTS:
            return self.metric(f"accuracy_{focus}")
        return self._metric("level" if focus in LEVELS else "accuracy", focus)

    def delta(self, focus: str) -> Metric:
        """Δ in one of FOCUSES, of a level without an interval; empty for clean and for all perturbed rows."""
        if focus in ("perturbed", taxonomy.CLEAN):
            return Metric()
        if focus in taxonomy.COMPONENTS:
            return self.metric(f"delta_{focus}")
        if focus not in LEVELS:
            return self._metric("delta", focus)
        clean, found = self.metric(taxonomy.CLEAN).value, self.accuracy(focus).value
        return Metric() if clean is None or found is None else Metric(clean - found)

    def counts(self, name: str) -> tuple[int, int] | None:
        """(correct, n) in one of FOCUSES; None where the entry lacks it. A level's are of its core types."""
        correct, n = _TWO.unpack_from(self.numbers, 8 * _AT["counts", name])
        return None if math.isnan(correct) or math.isnan(n) else (int(correct), int(n))

    def verified(self, name: str) -> Beside | None:
        """Clean, perturbed or a component without the rows that nobody could answer."""
        correct, n, accuracy, left_out, best = self._get("verified", name)
        if correct is None or n is None or left_out is None:
            return None
        return Beside(int(correct), int(n), accuracy, int(left_out), best)

    @property
    def samples(self) -> int:
        """Clean ids that verdicts are known of."""
        return len(self.verdicts or b"") // len(CONDITIONS)

    def columns(self) -> tuple[Ints, Ints]:
        """[conditions, clean ids] right answers, and whether there is a row. Empty without verdicts."""
        codes = np.frombuffer(self.verdicts or b"", np.uint8).reshape(len(CONDITIONS), -1).astype(np.int64)
        there = codes != ord("-")
        return np.where(there, codes - ord("0"), 0), there.astype(np.int64)

    def right(self, focus: str) -> Ints:
        """Per clean id the right answers in a focus."""
        found: Ints = right_values([self], focus)[0]
        return found


def right_values(rows: Sequence[Figures], focus: str) -> Ints:
    """[rows, clean ids] right answers in a focus, of entries of the same samples."""
    where = [CONDITIONS.index(code) for code in codes_of(focus)]
    every = np.frombuffer(b"".join(one.verdicts or b"" for one in rows), np.uint8)
    codes = every.reshape(len(rows), len(CONDITIONS), -1)[:, where]
    found: Ints = np.where(codes == ord("-"), 0, codes - ord("0")).sum(axis=1, dtype=np.int64)
    return found


def count_values(rows: Sequence[Figures], focus: str) -> NDArray[np.float64]:
    """[rows, 2] right answers and answers in a focus, NaN where an entry lacks it."""
    at = _AT["counts", focus]
    return _columns(rows, [at, at + 1])


def metric_values(rows: Sequence[Figures], names: Sequence[str]) -> dict[str, NDArray[np.float64]]:
    """Metric → its values of these rows, NaN where an entry lacks it."""
    found = _columns(rows, [_AT["metric", name] for name in names])
    return {name: found[:, i] for i, name in enumerate(names)}


def type_values(rows: Sequence[Figures]) -> dict[str, NDArray[np.float64]]:
    """Core type → [rows, 2] accuracies and Δ; NaN where an entry lacks it."""
    found = _columns(rows, [_AT[kind, code] for code in taxonomy.codes() for kind in ("accuracy", "delta")])
    return {code: found[:, 2 * i : 2 * i + 2] for i, code in enumerate(taxonomy.codes())}


def _columns(rows: Sequence[Figures], at: Sequence[int]) -> NDArray[np.float64]:
    """[rows, at] numbers of many entries, without an object for each."""
    every = np.frombuffer(b"".join(one.numbers for one in rows), "<f8").reshape(-1, WIDTH)
    return every[:, at]


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a board."""

    id: str
    """The submission's, or `paper-MODEL`."""
    model: str
    family: str
    user: str | None
    """None: the paper published it."""
    params_b: float | None
    mode: str | None
    submitted_at: str | None
    tier: Tier
    flags: tuple[str, ...] = ()
    """Short codes of what speaks against taking the row at its word."""
    cleared: tuple[str, ...] = ()
    """Those that a maintainer has cleared: they count no more."""
    defence: str = ""
    """The chain of `--defend`; empty for an undefended run."""
    card: str | None = None
    licence: str | None = None
    weights: Weights | None = None
    tokens: float | None = None
    """Mean total tokens of a row that was answered; None where the run does not say."""
    latency_s: float | None = None
    """Median over the rows that were answered."""
    price: float | None = None
    """US dollars for 1,000 rows, from the tokens and the prices that the submitter stated."""
    figures: Figures
    superseded_by: str | None = None
    rank: int = 0
    """By perturbed accuracy, among runs that have one (`tiers`); 0 for all others."""
    p_leader: float | None = None
    """Of "as good as the leader", see `board.marked`; None for the leader and where nobody asked."""


def _replies(text: str) -> bytes:
    """The bytes of a sketch (`copies.sketch`); none for what is none."""
    try:
        found = base64.b64decode(text, validate=True)
    except ValueError:
        return b""
    return found if len(found) % 2 == 0 else b""


def _four(one: Metric) -> tuple[float | None, float | None, float | None, int]:
    return one.value, one.low, one.high, one.n


def _counts(entry: Entry, focus: str) -> tuple[int, int] | None:
    if focus not in LEVELS:
        return entry.counts.get(focus)
    counts = [entry.counts[code] for code in codes_of(focus) if code in entry.counts]
    if len(counts) < len(codes_of(focus)):
        return None
    return sum(correct for correct, _ in counts), sum(n for _, n in counts)


def _level(entry: Entry, level: str) -> Metric:
    """Accuracy over the level's core types; entries of before there were levels have no interval."""
    for table in entry.tables:
        for row in table.rows if table.name == "levels" else ():
            found = row[levels.ACCURACY]
            if row[:2] == (level, "core") and isinstance(found, Interval):
                return Metric(found.value, found.low, found.high, found.n)
    correct, n = _counts(entry, level) or (0, 0)
    return Metric(correct / n, n=n) if n else Metric()


def _verdicts(entry: Entry) -> bytes | None:
    if entry.verdicts is None:
        return None
    sizes = {len(text) for text in entry.verdicts.values()}
    if len(sizes) != 1:
        raise ValueError("its verdicts are not all of the same samples")
    nothing = "-" * sizes.pop()
    found = "".join(entry.verdicts.get(code, nothing) for code in CONDITIONS)
    if not set(found) <= set("-0123456789"):
        raise ValueError("its verdicts are not digits")
    return found.encode()
