"""What journals say: the MCP doors' lines as replies of a model, and a summary without a dataset.

A session may have a door before each of several MCP servers. Its lines are one attempt until a door of it is
opened again; calls whose times overlap are one batch, whichever door they went through, and one reply. The
doors do not see what the agent says: an attempt that stops calling has answered with a text, which is empty
here, and cases without a right call are never seen.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import msgspec

from robustbench_tc.io.numbers import counts
from robustbench_tc.shown import Part, Table

from .journal import LLM, OTHER_TOOLS, Exchange


def as_replies(exchanges: Iterable[Exchange]) -> list[Exchange]:
    """The lines of both kinds of doors, those of the MCP's as exchanges with a model."""
    found: list[Exchange] = []
    sessions: dict[str, list[Exchange]] = defaultdict(list)
    for one in exchanges:
        if one.door == LLM:
            found.append(one)
        else:
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


OUTCOMES = ("met", "spared", "called_again", "called_others", "answered", "stopped")
"""Of a result that a fault was meant for: it took its place, or the plan does not allow that for the tool;
then what the model did in the same exchange: call the tool again, others, answer with text, or nothing."""


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """A journal in figures."""

    sessions: int
    exchanges: int
    calls: int
    """What the model called, distractors included."""
    held: int
    """Calls that the door answered: distractors."""
    errors: dict[str, int]
    """Exchanges that ended with an error, by status."""
    types: dict[str, int]
    """Sessions by type."""
    skipped: dict[str, int]
    """Exchanges that did not get their type, by reason."""
    other_tools: dict[str, int]
    """Sessions by type that never listed a tool of their case: the type did nothing."""
    faults: dict[str, dict[str, int]]
    """By kind: how often each of OUTCOMES."""

    def shown(self) -> Iterator[Part]:
        """Counts, then a line for each kind of fault."""
        yield (
            f"{self.sessions} sessions, {self.exchanges} exchanges, {self.calls} calls of the model's, "
            f"{self.held} of them answered by the door"
        )
        for title, counted in (
            ("sessions by type", self.types),
            ("without their type", self.skipped),
            ("sessions in which no list had a tool of the case, by type", self.other_tools),
            ("errors by status", self.errors),
        ):
            if counted:
                yield f"{title}: {counts(counted)}"
        if not self.faults:
            yield "faults met: none"
            return
        yield Table(
            tuple(name.replace("_", " ") for name in ("fault", *OUTCOMES)),
            [[kind, *(str(one[name]) for name in OUTCOMES)] for kind, one in self.faults.items()],
            "results replaced by faults, and what the model did next",
        )


def summary(exchanges: Sequence[Exchange]) -> Summary:
    """Of the lines of both doors; calls that a client made at once are one exchange of the MCP door's."""
    ours = as_replies(exchanges)
    # The calls of an agent with doors of both kinds are known from its model's.
    models = {one.session for one in ours if one.door == LLM}
    once = [one for one in ours if one.door == LLM or one.session not in models]
    faults = Counter[tuple[str, str]]()
    for one in ours:
        names = {call["name"] for reply in one.replies for call in reply.get("tool_calls") or ()}
        for spared in one.spared:
            faults[spared.kind, "spared"] += 1
        for replaced in one.replaced:
            again = replaced.tool in names
            faults[replaced.kind, "met"] += 1
            faults[replaced.kind, "called_again"] += again
            faults[replaced.kind, "called_others"] += bool(names) and not again
            faults[replaced.kind, "answered"] += bool(one.replies) and not names
            faults[replaced.kind, "stopped"] += not one.replies
    types = {one.session: one.type for one in once}
    listed = {one.session for one in once if one.skipped != OTHER_TOOLS}
    kinds = sorted({kind for kind, _ in faults})
    return Summary(
        sessions=len(types),
        exchanges=len(once),
        calls=sum(len(reply.get("tool_calls") or ()) for one in once for reply in one.replies),
        held=sum(len(one.held) for one in once),
        errors=_counted(str(one.status) for one in exchanges if one.status >= 400),
        types=_counted(types.values()),
        skipped=_counted(one.skipped for one in once if one.skipped),
        other_tools=_counted(code for session, code in types.items() if session not in listed),
        faults={kind: {name: faults[kind, name] for name in OUTCOMES} for kind in kinds},
    )


def _counted(words: Iterable[str]) -> dict[str, int]:
    return dict(Counter(words).most_common())
