"""Why requests of a run failed: the most frequent reasons with their counts, one example each."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import get_args

import msgspec

from robustbench_tc.io import parquet
from robustbench_tc.schema import Status

from .record import EPISODES, Session

FINISHED = frozenset({"stop", "tool_calls", "function_call", "length", "content_filter"})
"""Finish reasons that say how a reply ended; of any other nobody knows what it means."""

MOSTLY = 0.9
"""Share of the rows that are rejected for one reason above which a run says nothing of its model."""

_FAILED = frozenset(get_args(Status)) - {"ok"}

SHOWN = 15
"""Reasons that get a line of their own; of the others the codes are counted."""

_COUNTED = {
    "request_error": "",
    "agent_error": ", counted as a wrong answer, asked again by the same command",
}
"""What becomes of a row without an answer; of any other status it is a wrong answer."""

_VARIES = re.compile(r"HTTP \d{3}|[\w-]*\d[\w-]*")
"""What differs between two messages of one reason: numbers and ids, but not the status."""


class Reason(msgspec.Struct, frozen=True):
    """Failed requests whose messages are the same but for numbers and ids."""

    status: str
    """One of `schema.Status` other than ok."""
    code: str
    """Of `LLMError`."""
    count: int
    message: str
    """Of the first of them, the code in front."""
    id: str
    """Its row."""


def of_predictions(path: Path) -> list[Reason]:
    """The reasons in a run's `predictions.parquet`, `episodes.parquet` or scored predictions, the most
    frequent first."""
    if not path.is_file():
        return []
    status = "ended" if path.name == EPISODES else "status"
    rows = parquet.read_rows([path], ["id", status, "error"])
    return reasons((row["id"], row[status], row["error"]) for row in rows)


def reasons(failed: Iterable[tuple[str, str, str | None]]) -> list[Reason]:
    """The same of (row id, status, error)s; those with an answer are left out."""
    found: dict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
    for row, status, error in failed:
        if status in _FAILED:
            said = error or "unknown error"
            alike = _VARIES.sub(lambda part: part[0] if part[0].startswith("HTTP ") else "#", said)
            found[status, alike].append((said, row))
    return [
        Reason(status, many[0][0].partition(":")[0], len(many), *many[0])
        for (status, _), many in sorted(found.items(), key=lambda one: (-len(one[1]), one[0]))
    ]


def mostly_rejected(found: Sequence[Reason], rows: int) -> str:
    """The reason for which more than nine of ten rows were rejected; "" where there is none.

    Equal names of two tools are no such reason: to send them is what some types are about.
    """
    for one in found:
        if one.status == "rejected" and one.code != "duplicate_tools" and one.count > MOSTLY * rows:
            return f"{one.count} of {rows} rows were rejected for one reason: {one.message}"
    return ""


def unknown_finishes(finished: Mapping[str, int]) -> str:
    """Finish reasons that are none of the known, with their counts; "" where there are none."""
    return _counts({word: count for word, count in finished.items() if word not in FINISHED})


def lines(found: Sequence[Reason], session: Session | None = None) -> Iterator[str]:
    """For people. `session`: also what was asked again in it, and what was not sent."""
    if found:
        yield "why requests failed, the most frequent first:"
    for one in found[:SHOWN]:
        what = _COUNTED.get(one.status, ", counted as a wrong answer")
        yield f"  {one.count} × {one.message} (such as {one.id}{what})"
    rest: Counter[str] = Counter()
    for one in found[SHOWN:]:
        rest[one.code] += one.count
    if rest:
        yield f"  {rest.total()} × {len(found) - SHOWN} other reasons: {_counts(rest)}"
    if session is not None and session.retried:
        yield f"attempts that failed and were made again: {_counts(session.retried)}"
    if session is not None and session.left_out:
        yield f"not sent, the endpoint does not take it: {', '.join(session.left_out)}"


def _counts(found: dict[str, int]) -> str:
    ordered = sorted(found.items(), key=lambda one: (-one[1], one[0]))
    return ", ".join(f"{count} × {code}" for code, count in ordered)
