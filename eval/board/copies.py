"""Runs with the replies of another one: a sketch of each run's, and groups of rows to find equal ones."""

import hashlib
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from robustbench_tc import seeding
from robustbench_tc.schema import Prediction, dumps

from .entry import Entry, Flag

COPY = "copy"

SKETCHED = 512
"""Rows of a sketch: those of a smaller dataset are all there."""

SAME_REPLIES = 0.95
"""The share of rows with the same replies that makes a run equal to another."""

BANDS, BAND = 24, 16
"""So many groups of so many rows: two runs that agree in `SAME_REPLIES` of the replies agree wholly in one of
them but for one time in a million."""


def sketch(predictions: Sequence[Prediction]) -> bytes:
    """The replies of a run, two bytes for each of up to SKETCHED rows, which the number of rows decides.

    The ids of native calls do not count: servers draw them.
    """
    rows: dict[str, list[Prediction]] = {}
    for one in predictions:
        rows.setdefault(one.id, []).append(one)
    answers = [rows[row_id] for row_id in sorted(rows)]
    if len(answers) > SKETCHED:
        draw = seeding.rng(0, "rows of a sketch")
        answers = [answers[at] for at in draw.sample(range(len(answers)), SKETCHED)]
    return b"".join(hashlib.blake2b(_replied(one), digest_size=2).digest() for one in answers)


def _replied(answers: Sequence[Prediction]) -> bytes:
    said = [
        (one.status, one.raw_output, _bare(one.tool_calls), one.first_output, _bare(one.first_tool_calls))
        for one in sorted(answers, key=lambda one: one.repeat)
    ]
    return dumps(said).encode()


def _bare(calls: object) -> list[object]:
    return [[call["name"], call["arguments"]] for call in (calls if isinstance(calls, list) else ())]


class _Known:
    """Runs by their replies, in the order in which they came."""

    def __init__(self) -> None:
        self._first: dict[tuple[str, int, bytes], str] = {}
        self._replies: dict[str, NDArray[np.uint16]] = {}

    def meet(self, one: Entry, replies: NDArray[np.uint16]) -> Flag | None:
        """The flag of a run that says what an earlier one said in almost all rows."""
        others = dict.fromkeys(self._first[key] for key in _keys(one, replies) if key in self._first)
        shares = {other: float((self._replies[other] == replies).mean()) for other in others}
        best = max(shares, key=lambda other: shares[other], default="")
        if not best or shares[best] < SAME_REPLIES:
            return None
        return Flag(code=COPY, value=shares[best], n=len(replies), of=best)

    def add(self, one: Entry, replies: NDArray[np.uint16]) -> None:
        for key in _keys(one, replies):
            self._first.setdefault(key, one.run)
        self._replies[one.run] = replies


def _keys(one: Entry, replies: NDArray[np.uint16]) -> list[tuple[str, int, bytes]]:
    """(Dataset, number of the group, its replies.)"""
    return [(one.fingerprint, at, replies[band].tobytes()) for at, band in enumerate(_bands(len(replies)))]


@lru_cache(maxsize=8)
def _bands(rows: int) -> NDArray[np.int64]:
    """[BANDS, BAND] rows, the same for every run of so many."""
    draw = seeding.rng(0, "bands of replies")
    return np.array([draw.choices(range(rows), k=BAND) for _ in range(BANDS)])


def equal(entries: Iterable[Entry], trusted: Collection[str] = ()) -> dict[str, Flag]:
    """Run → the earlier run of the same dataset whose replies it has.

    A run of `trusted` (those that would have a rank) is held against earlier ones of these alone, so that no
    upload can take a rank from anybody; any other run against all.
    """
    every, ranked = _Known(), _Known()
    found: dict[str, Flag] = {}
    for one in sorted(entries, key=lambda one: (one.day, one.run)):
        if one.core is None or not one.core.replies:
            continue
        replies = np.frombuffer(one.core.replies, np.uint16)
        flag = (ranked if one.run in trusted else every).meet(one, replies)
        every.add(one, replies)
        if flag is not None:
            found[one.run] = flag
        elif one.run in trusted:
            ranked.add(one, replies)
    return found
