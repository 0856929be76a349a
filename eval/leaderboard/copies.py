"""Runs with the replies of another one: a sketch of each run's, and groups of rows to find equal ones.

A run that has a rank is held against ranked runs only, so that no upload can take a rank from anybody; any
other run against all of its board.
"""

import base64
import hashlib
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from robustbench_tc import seeding
from robustbench_tc.schema import Prediction, dumps

from . import tiers
from .row import Row
from .tiers import Flag

COPY = "copy"

SKETCHED = 512
"""Rows of a sketch: those of a smaller dataset are all there."""

SAME_REPLIES = 0.95
"""The share of rows with the same replies that makes a run equal to another."""

BANDS, BAND = 24, 16
"""So many groups of so many rows: two runs that agree in `SAME_REPLIES` of the replies agree wholly in one of
them but for one time in a million."""


def sketch(predictions: Sequence[Prediction]) -> str:
    """The replies of a run, two bytes for each of up to SKETCHED rows, which the number of rows decides.

    As base64. The ids of native calls do not count: servers draw them.
    """
    rows: dict[str, list[Prediction]] = {}
    for one in predictions:
        rows.setdefault(one.id, []).append(one)
    answers = [rows[row_id] for row_id in sorted(rows)]
    if len(answers) > SKETCHED:
        draw = seeding.rng(0, "rows of a sketch")
        answers = [answers[at] for at in draw.sample(range(len(answers)), SKETCHED)]
    digests = (hashlib.blake2b(_replied(one), digest_size=2).digest() for one in answers)
    return base64.b64encode(b"".join(digests)).decode()


def _replied(answers: Sequence[Prediction]) -> bytes:
    said = [
        (one.status, one.raw_output, _bare(one.tool_calls), one.first_output, _bare(one.first_tool_calls))
        for one in sorted(answers, key=lambda one: one.repeat)
    ]
    return dumps(said).encode()


def _bare(calls: object) -> list[object]:
    return [
        [call.get("name"), call.get("arguments")] if isinstance(call, dict) else call
        for call in (calls if isinstance(calls, list | tuple) else ())
    ]


class Said(NamedTuple):
    """The replies of a run, and the groups of them by which equal runs are found."""

    replies: NDArray[np.uint16]
    keys: tuple[tuple[int, int, bytes], ...]
    """(Rows of the run, number of the group, its replies.)"""

    @classmethod
    def of(cls, sketched: bytes) -> "Said":
        replies = np.frombuffer(sketched, np.uint16)
        if not len(replies):
            return cls(replies, ())
        groups, width = replies[_bands(len(replies))].tobytes(), BAND * replies.itemsize
        return cls(
            replies,
            tuple((len(replies), at, groups[at * width : (at + 1) * width]) for at in range(BANDS)),
        )


@lru_cache(maxsize=8)
def _bands(rows: int) -> NDArray[np.int64]:
    """[BANDS, BAND] rows, the same for every run of so many."""
    draw = seeding.rng(0, "bands of replies")
    return np.array([draw.choices(range(rows), k=BAND) for _ in range(BANDS)])


class Replies:
    """Runs of one dataset by their replies, in the order in which they came."""

    def __init__(self) -> None:
        self._first: dict[tuple[int, int, bytes], str] = {}
        self._known: dict[str, NDArray[np.uint16]] = {}

    def equal(self, said: Said) -> Flag | None:
        """The flag of a run with these replies: the earlier one that it agrees with in almost all."""
        others = dict.fromkeys(self._first[key] for key in said.keys if key in self._first)
        shares = {
            other: float((self._known[other] == said.replies).mean())
            for other in others
            if len(self._known[other]) == len(said.replies)
        }
        best = max(shares, key=lambda other: shares[other], default=None)
        if best is None or shares[best] < SAME_REPLIES:
            return None
        return Flag(code=COPY, value=shares[best], n=len(said.replies), of=best)

    def add(self, row_id: str, said: Said) -> None:
        """Takes a run in, behind those that are there."""
        for key in said.keys:
            self._first.setdefault(key, row_id)
        self._known[row_id] = said.replies


def flagged(rows: Iterable[Row]) -> tuple[list[Row], dict[str, Flag]]:
    """The rows of a board, the earliest first, those that are copies with that flag; and the flags with
    their figures."""
    every, of_ranked = Replies(), Replies()
    done: list[Row] = []
    found: dict[str, Flag] = {}
    for row in rows:
        said = Said.of(row.figures.replies)
        flag = (of_ranked if row.tier in tiers.TRUSTED else every).equal(said)
        if flag is not None:
            found[row.id] = flag
            if COPY not in row.cleared:
                row = msgspec.structs.replace(row, flags=(*row.flags, COPY))
        every.add(row.id, said)
        if tiers.is_ranked(row):
            of_ranked.add(row.id, said)
        done.append(row)
    return done, found
