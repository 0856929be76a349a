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


@lru_cache(maxsize=8)
def _bands(rows: int) -> NDArray[np.int64]:
    """[BANDS, BAND] rows, the same for every run of so many; nothing of a run without replies."""
    if not rows:
        return np.empty((0, BAND), np.int64)
    draw = seeding.rng(0, "bands of replies")
    return np.array([draw.choices(range(rows), k=BAND) for _ in range(BANDS)])


def equal(entries: Iterable[Entry], trusted: Collection[str] = ()) -> dict[str, Flag]:
    """Run → the earlier run of the same dataset whose replies it has.

    A run of `trusted` (those that would have a rank) is held against earlier ones of these alone, so that no
    upload can take a rank from anybody; any other run against all.
    """
    first: dict[tuple[bool, str, int, int, bytes], str] = {}
    known: dict[str, NDArray[np.uint16]] = {}
    found: dict[str, Flag] = {}
    for one in sorted(entries, key=lambda one: (one.day, one.run)):
        replies = np.frombuffer(b"" if one.core is None else one.core.replies, np.uint16)
        n, among = len(replies), one.run in trusted
        groups = [(one.fingerprint, n, at, replies[band].tobytes()) for at, band in enumerate(_bands(n))]
        others = dict.fromkeys(first[among, *group] for group in groups if (among, *group) in first)
        shares = {other: float((known[other] == replies).mean()) for other in others}
        best = max(shares, key=lambda other: shares[other], default="")
        if best and shares[best] >= SAME_REPLIES:
            found[one.run] = Flag(code=COPY, value=shares[best], n=n, of=best)
        known[one.run] = replies
        for group in groups:
            first.setdefault((False, *group), one.run)
            if among and one.run not in found:
                first.setdefault((True, *group), one.run)
    return found
