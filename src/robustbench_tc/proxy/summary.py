"""What a door's journal says without a dataset: calls, errors, and what the agent did after a fault."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from robustbench_tc.io.numbers import counts
from robustbench_tc.shown import Part, Table

from .journal import LLM, MCP, Exchange
from .mcp.replies import as_replies

CALLED_AGAIN, CALLED_OTHERS, ANSWERED, STOPPED = "called again", "called others", "answered", "stopped"


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """Results that one kind of fault took the place of."""

    kind: str
    met: int
    spared: int
    """Not replaced: the plan does not allow it for their tool."""
    called_again: int
    """In the same exchange the model called the tool again."""
    called_others: int
    """It called other tools."""
    answered: int
    """It answered with text."""
    stopped: int
    """It gave no reply."""


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
    faults: tuple[Fault, ...]
    others: dict[str, int]
    """Lines of other kinds of doors, by kind."""

    def shown(self) -> Iterator[Part]:
        """Counts, then a line for each kind of fault."""
        yield (
            f"{self.sessions} sessions, {self.exchanges} exchanges, {self.calls} calls of the model's, "
            f"{self.held} of them answered by the door"
        )
        for title, counted in (
            ("sessions by type", self.types),
            ("without their type", self.skipped),
            ("errors by status", self.errors),
            ("lines of other doors", self.others),
        ):
            if counted:
                yield f"{title}: {counts(counted)}"
        if not self.faults:
            yield "faults met: none"
            return
        yield Table(
            ("fault", "met", "spared", "called again", "called others", "answered", "stopped"),
            [list(map(str, msgspec.structs.astuple(one))) for one in self.faults],
            "results replaced by faults, and what the model did next",
        )


def summary(exchanges: Sequence[Exchange]) -> Summary:
    """Of the lines of both doors; calls that a client made at once are one exchange of the MCP door's."""
    ours = as_replies(exchanges)
    met: Counter[str] = Counter()
    spared: Counter[str] = Counter()
    then: Counter[tuple[str, str]] = Counter()
    for one in ours:
        spared.update(fault.kind for fault in one.spared)
        for fault in one.replaced:
            names = {call["name"] for reply in one.replies for call in reply.get("tool_calls") or ()}
            did = CALLED_AGAIN if fault.tool in names else CALLED_OTHERS if names else ANSWERED
            met[fault.kind] += 1
            then[fault.kind, did if one.replies else STOPPED] += 1
    types = {one.session: one.type for one in ours}
    return Summary(
        sessions=len(types),
        exchanges=len(ours),
        calls=sum(len(reply.get("tool_calls") or ()) for one in ours for reply in one.replies),
        held=sum(len(one.held) for one in ours),
        errors=_counted(str(one.status) for one in exchanges if one.status >= 400),
        types=_counted(types.values()),
        skipped=_counted(one.skipped for one in ours if one.skipped),
        faults=tuple(
            Fault(
                kind=kind,
                met=met[kind],
                spared=spared[kind],
                called_again=then[kind, CALLED_AGAIN],
                called_others=then[kind, CALLED_OTHERS],
                answered=then[kind, ANSWERED],
                stopped=then[kind, STOPPED],
            )
            for kind in sorted({*met, *spared})
        ),
        others=_counted(one.door for one in exchanges if one.door not in (LLM, MCP)),
    )


def _counted(words: Iterable[str]) -> dict[str, int]:
    return dict(Counter(words).most_common())
