"""Faults of logs with their rates and words, and the plan that has them."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from robustbench_tc.errors import UserError
from robustbench_tc.own.logs.read import read_log
from robustbench_tc.own.logs.redact import Redactor
from robustbench_tc.own.logs.types import Conversation
from robustbench_tc.safe_text import safe
from robustbench_tc.shown import Part, Table

from ..plan import MOST_TEXT
from .kinds import KINDS, UNSEEN, Kind, kind_of
from .rates import rate

TEXTS = 3
"""Words of a kind that are shown."""
MOST_SHOWN = 300
"""Characters of one of them; the plan has them whole, up to its own limit."""
AT_LEAST = 3
"""So many conversations have to agree on the number of the call that meets a fault."""


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of fault of the logs."""

    kind: str
    plan: str | None
    """Its kind in a plan; None where a door cannot do it, or the agent itself is the cause."""
    not_told_apart: tuple[str, ...] = ()
    """Kinds of a plan that look the same in a log."""
    met: int
    calls: int
    rate: float
    low: float
    high: float
    at: tuple[int, ...] = ()
    """The calls of a conversation that always meet it, where no other one does."""
    texts: tuple[str, ...]
    """Its most frequent words, personal data replaced."""

    def cells(self) -> tuple[str, ...]:
        """Its line of the table."""
        plan = " or ".join((self.plan, *self.not_told_apart)) if self.plan else "none"
        plan += f", at call {', '.join(map(str, self.at))}" if self.at else ""
        return self.kind, str(self.met), f"{self.rate:.2%}", f"{self.low:.2%} to {self.high:.2%}", plan


class Ground(msgspec.Struct, frozen=True, kw_only=True):
    """What logs show."""

    logs: tuple[str, ...]
    conversations: int
    calls: int
    """Answered ones."""
    unanswered: int
    refused: int
    """Lines of the logs that could not be read."""
    faults: tuple[Fault, ...]
    unseen: tuple[str, ...] = UNSEEN

    def shown(self) -> Iterator[Part]:
        """The faults with their rates, then their words."""
        yield Table(
            ("fault", "calls", "rate", "95 %", "in a plan"),
            [one.cells() for one in self.faults],
            f"{self.calls} answered calls in {self.conversations} conversations",
            ("in a plan",),
        )
        for one in self.faults:
            yield from (f"{one.kind}: {' '.join(text.split())[:MOST_SHOWN]}" for text in one.texts)
        if self.unanswered:
            yield f"calls without an answer: {self.unanswered}"
        if self.refused:
            yield f"lines that cannot be read: {self.refused} (`rbtc cases import` names them)"
        yield f"not to be seen in a log: {', '.join(self.unseen)}"

    def plan(self) -> str:
        """A plan with these rates and words, for `rbtc proxy`."""
        named = safe(", ".join(self.logs), keep="")
        lines = [
            f"# Made from {self.calls} calls in {self.conversations} conversations of {named}.",
            f"# A log does not show {', '.join(self.unseen)}, nor whether a time-out came after the effect.",
            "# The LLM door needs to know of which tools it may replace results: read_only, idempotent.",
            "version: 1",
        ]
        faults = [one for one in self.faults if one.plan is not None]
        if faults:
            lines.append("faults:")
        left = 1.0
        for one in faults:
            lines.append(f"# {one.kind}: {one.met} of {one.calls}, {one.low:.4f} to {one.high:.4f}")
            when = f"at: [{', '.join(map(str, one.at))}]"
            if not one.at:  # a call that met an earlier fault of the plan cannot meet this one
                when = f"rate: {min(1.0, max(one.rate / max(left, one.rate), 1e-6)):.9g}"
                left -= one.rate
            text = msgspec.json.encode(one.texts[0][:MOST_TEXT]).decode()
            lines.append(f"- {{kind: {one.plan}, {when}, text: {text}}}")
        return "\n".join(lines) + "\n"


def ground(paths: Sequence[Path], progress: Callable[[str], None] = lambda line: None) -> Ground:
    """What the logs at `paths` show. Raises UserError where none can be read, or no call is answered."""
    conversations: list[Conversation] = []
    refused = 0
    for path in paths:
        progress(f"reading {path.name}")
        log = read_log(path)
        conversations += log.conversations
        refused += len(log.refused)
    met = list(map(_met, conversations))
    clusters = [[name for name, _ in answers] for answers in met if answers]
    if not clusters:
        said = f"; {refused} lines cannot be read" if refused else ""
        raise UserError(f"{', '.join(map(str, paths))}: no tool call is answered in it{said}")
    hide = Redactor()
    for message in (message for one in conversations for message in one.messages):
        if message.role == "tool":
            hide.apply(message.text)
    texts: dict[str | None, Counter[str]] = defaultdict(Counter)
    for name, text in (answer for answers in met for answer in answers):
        texts[name][text] += 1
    return Ground(
        logs=tuple(path.name for path in paths),
        conversations=len(conversations),
        calls=sum(map(len, clusters)),
        unanswered=sum(len(message.calls) for one in conversations for message in one.messages)
        - sum(map(len, met)),
        refused=refused,
        faults=tuple(
            fault(kind, clusters, [str(hide.apply(text)) for text, _ in texts[kind.name].most_common(TEXTS)])
            for kind in KINDS
            if kind.name in texts
        ),
    )


def fault(kind: Kind, clusters: Sequence[Sequence[str | None]], texts: Iterable[str]) -> Fault:
    """A kind over conversations, each the kinds that its answered calls met, in order."""
    clustered = [(sum(name == kind.name for name in one), len(one)) for one in clusters]
    at = Counter(place for one in clusters for place, name in enumerate(one, 1) if name == kind.name)
    long = Counter(place for one in clusters for place in range(1, len(one) + 1))
    always = all(count == long[place] and count >= AT_LEAST for place, count in at.items())
    # Where every conversation has one call, a rate of 1 and the first call are the same.
    fixed = always and len(long) > len(at)
    met, calls = map(sum, zip(*clustered, strict=True))
    low, high = rate(clustered)
    return Fault(
        kind=kind.name,
        plan=kind.plan,
        not_told_apart=kind.same,
        met=met,
        calls=calls,
        rate=met / calls,
        low=low,
        high=high,
        at=tuple(sorted(at)) if fixed else (),
        texts=tuple(texts),
    )


def _met(conversation: Conversation) -> list[tuple[str | None, str]]:
    """The kind that each answered call met, if any, and its answer, the first one that came."""
    said = [message for message in conversation.messages if message.role == "tool"]
    answers = {message.call_id: message.text for message in reversed(said)}
    calls = (call.id for message in conversation.messages for call in message.calls)
    texts = [answers[call] for call in calls if call in answers]
    return [(kind and kind.name, text.strip()) for kind, text in zip(map(kind_of, texts), texts, strict=True)]
