"""The MCP doors' lines as replies of a model: the calls that a client made at once are one reply.

A session may have a door before each of several servers. Its lines are one attempt until a door of it is
opened again; calls whose times overlap are one batch, whichever door they went through. The doors do not see
what the agent says. An attempt that stops calling has answered with a text, which is empty here: cases
without a right call are never seen, and stay unasked.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import msgspec

from ..journal import LLM, MCP, Exchange


def as_replies(exchanges: Iterable[Exchange]) -> list[Exchange]:
    """The lines of both kinds of doors, those of this one as exchanges with a model; others are left out."""
    found: list[Exchange] = []
    sessions: dict[str, list[Exchange]] = defaultdict(list)
    for one in exchanges:
        if one.door == LLM:
            found.append(one)
        elif one.door == MCP:
            sessions[one.session].append(one)
    for lines in sessions.values():
        for attempt in _attempts(lines):
            found += _replies(attempt)
    return found


def _attempts(lines: Sequence[Exchange]) -> list[list[Exchange]]:
    """The calls of each attempt. Another begins when a door that the last one knows is opened again."""
    attempts: list[list[Exchange]] = []
    known: dict[str, float] = {}
    """Doors of the attempt, and when they were opened."""
    for one in sorted(lines, key=lambda one: (one.opening or 0.0, one.by)):
        opening = one.opening or 0.0
        if not attempts or known.get(one.by, opening) != opening:
            attempts.append([])
            known = {}
        known[one.by] = opening
        if one.replies:
            attempts[-1].append(one)
    return [attempt for attempt in attempts if attempt]


def _replies(calls: Sequence[Exchange]) -> Iterator[Exchange]:
    """One exchange for each batch of calls, and the end; faults stand where their results were read."""
    batches: list[list[Exchange]] = []
    until = -math.inf
    for one in sorted(calls, key=lambda one: (one.began or 0.0, one.number)):
        if (one.began or 0.0) > until:
            batches.append([])
        batches[-1].append(one)
        until = max(until, one.ended)
    row = next((one for one in calls if one.row is not None), calls[0])
    for turn, (before, batch) in enumerate(pairwise([[], *batches, []])):
        called = [call for one in batch for reply in one.replies for call in reply.get("tool_calls") or ()]
        said = {"text": "", "tool_calls": called or None, "finish_reason": "tool_calls" if called else "stop"}
        yield msgspec.structs.replace(
            row,
            door=LLM,
            opened=None,
            number=turn + 1,
            turn=turn,
            replies=[said],
            replaced=tuple(fault for one in before for fault in one.replaced),
            spared=tuple(fault for one in before for fault in one.spared),
            held=[call for one in batch for call in one.held],
            executed=None,
            status=200,
            error=None,
        )
