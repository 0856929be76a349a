"""From logs to a plan: which faults tools really had, how often, and in which words."""

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

import msgspec
import numpy as np

from robustbench_tc.errors import UserError
from robustbench_tc.eval.stats.intervals import shares
from robustbench_tc.io.numbers import counted, counts
from robustbench_tc.option import Tell, silent
from robustbench_tc.own.logs.chat import Conversation, LoggedCall, TimedRun
from robustbench_tc.own.logs.log_files import read_log
from robustbench_tc.own.logs.proposals import as_json, take
from robustbench_tc.own.logs.redact import Redactor
from robustbench_tc.result_faults import MOST_SECONDS, MOST_TEXT
from robustbench_tc.safe_text import safe
from robustbench_tc.schema import dumps
from robustbench_tc.schema.running import RESULT_FAULTS
from robustbench_tc.shown import Part, Table

from .answer_kinds import (
    CUT_BY_THE_LOG,
    EMPTY,
    KINDS,
    PERHAPS_EMPTY,
    SLOW,
    TRUNCATED,
    Kind,
    bare,
    error_of,
    is_cut,
    is_empty,
    kind_of,
)

UNSEEN = ("silent_no_op", "stale_read", "injected_instruction")
"""Kinds of the plan that no log shows: the answer looks right."""

TEXTS = 3
"""Words of a kind that are shown."""
MORE_TEXTS = 10
"""Of a kind that no plan has."""
MOST_SHOWN = 300
"""Characters of one of them; the plan has them whole, up to its own limit."""
MOST_WAITING = 1_000
"""Calls of a conversation without an answer so far that one is looked for."""
AT_LEAST = 3
"""So many conversations have to agree on the number of the call that meets a fault."""


SLOWER, LATER = 3.0, 1.0
"""A slow run takes more than so many times its tool's median, and so many seconds more than that."""


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
    """Its most frequent words, personal data replaced; of slow, cut and empty answers their tools' names."""
    wordings: int
    """How many different ones there are."""
    seconds: tuple[float, float] | None = None
    """`latency`: how much later than the median nine of ten slow runs ended."""


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

    def shown(self) -> Iterator[Part]:
        """The faults with their rates, then their words."""
        lines = []
        for one in self.faults:
            plan = " or ".join((one.plan, *one.not_told_apart)) if one.plan else "none"
            plan += f", at call {', '.join(map(str, one.at))}" if one.at else ""
            lines.append(
                (one.kind, str(one.met), f"{one.rate:.2%}", f"{one.low:.2%} to {one.high:.2%}", plan)
            )
        title = f"{self.calls} answered calls in {self.conversations} conversations"
        yield Table(("fault", "calls", "rate", "95 %", "in a plan"), lines, title, ("in a plan",))
        for one in self.faults:
            yield from (f"{one.kind}: {' '.join(text.split())[:MOST_SHOWN]}" for text in one.texts)
            if (more := one.wordings - len(one.texts)) > 0:
                yield f"{one.kind}: {counted(more, 'other wording')}"
        if self.unanswered or self.refused:
            yield f"calls without an answer: {self.unanswered}, lines that cannot be read: {self.refused}"
        yield f"not to be seen in a log: {', '.join(UNSEEN)}"

    def plan(self) -> str:
        """A plan with these rates and words, for `rbtc proxy`."""
        named = safe(", ".join(self.logs), keep="")
        lines = [
            f"# Made from {self.calls} calls in {self.conversations} conversations of {named}.",
            f"# A log does not show {', '.join(UNSEEN)}, nor whether a time-out came after the effect.",
            "# The LLM door needs to know of which tools it may replace results: read_only, idempotent.",
            "version: 1",
        ]
        left = 1.0
        # The first of a plan that a call meets counts, and no draw may come before what is always there.
        for one in sorted((one for one in self.faults if one.plan is not None), key=lambda one: not one.at):
            lines += ["faults:"] * ("faults:" not in lines)
            lines.append(f"# {one.kind}: {one.met} of {one.calls}, {one.low:.4f} to {one.high:.4f}")
            when = f"at: {list(one.at)}"
            if not one.at:  # a call that met an earlier fault of the plan cannot meet this one
                when = f"rate: {min(1.0, max(one.rate / max(left, one.rate), 1e-6)):.9g}"
            left -= one.rate
            what = f"text: {as_json(one.texts[0][:MOST_TEXT])}"
            if one.seconds is not None:
                what = f"seconds: {list(one.seconds)}"
            entry = [f"kind: {one.plan}", when, what]
            lines.append(f"- {{{', '.join(entry[:2] if one.plan in RESULT_FAULTS else entry)}}}")
        if others := {one.kind: one.met for one in self.faults if one.plan is None}:
            lines.append(f"# Not in this plan, by calls: {counts(others)}.")
        return "\n".join(lines) + "\n"


def ground(paths: Sequence[Path], progress: Tell = silent) -> Ground:
    """What the logs at `paths` show. Raises UserError where none can be read, or no call is answered."""
    log = read_log(*paths, progress=progress)
    conversations, refused = log.conversations, len(log.refused)
    messages = [message for one in conversations for message in one.messages]
    answered, timed = _answers(conversations), [one.runs for one in conversations if one.runs]
    if not answered and not timed:
        said = f"; {refused} lines cannot be read" if refused else ""
        raise UserError(f"{', '.join(map(str, paths))}: it contains no answered tool call{said}")
    hide = Redactor()
    for message in messages:
        if message.role == "tool":
            hide.apply(message.text)
    slow, seconds = _slow(timed)
    met, calls = _kinds(answered), sum(map(len, answered))
    empty = [
        [
            (place, EMPTY if is_empty(one.text) else None, one.tool)
            for place, one in enumerate(several, 1)
            if one.elsewhere
        ]
        for several in answered
    ]
    tables = [(kind, met) for kind in (*KINDS, TRUNCATED, CUT_BY_THE_LOG, PERHAPS_EMPTY)]
    tables += [(EMPTY, empty), (SLOW, slow)]
    return Ground(
        logs=tuple(path.name for path in paths),
        conversations=len(conversations),
        calls=calls,
        unanswered=sum(len(message.calls) for message in messages) - calls,
        refused=refused,
        faults=tuple(
            _fault(kind, table, hide, seconds if kind is SLOW else None)
            for kind, table in tables
            if any(here is kind for several in table for _, here, _ in several)
        ),
    )


Met = Sequence[Sequence[tuple[int, Kind | None, str]]]
"""By conversation, of the calls that count for a kind: their numbers, the kinds that they met, the words."""


def _fault(kind: Kind, met: Met, hide: Redactor, seconds: tuple[float, float] | None) -> Fault:
    """A kind over conversations that meet it somewhere."""
    at = Counter(place for one in met for place, here, _ in one if here is kind)
    words = Counter(text for one in met for _, here, text in one if here is kind)
    number = np.array([sum(here is kind for _, here, _ in one) for one in met])
    long = Counter(place for one in met for place, _, _ in one)
    always = all(count == long[place] and count >= AT_LEAST for place, count in at.items())
    share = shares(number, np.array([len(one) for one in met]))
    return Fault(
        kind=kind.name,
        plan=kind.plan,
        not_told_apart=kind.same,
        met=at.total(),
        calls=long.total(),
        rate=at.total() / long.total(),
        low=float(share.low),
        high=float(share.high),
        # Where every conversation has one call, a rate of 1 and the first call are the same.
        at=tuple(sorted(at)) if always and len(long) > len(at) else (),
        texts=tuple(
            str(hide.apply(text)) for text, _ in words.most_common(TEXTS if kind.plan else MORE_TEXTS)
        ),
        wordings=len(words),
        seconds=seconds,
    )


class Answered(NamedTuple):
    """An answered call."""

    tool: str
    text: str
    elsewhere: bool
    """Whether another conversation made the same call, with arguments, and was answered something."""


def _answers(conversations: Sequence[Conversation]) -> list[list[Answered]]:
    """The answered calls of each conversation, in the order of their answers."""
    found: list[list[tuple[str, str, str]]] = []
    something = defaultdict[str, set[int]](set)
    """By call: the conversations that were answered something. One without arguments means whoever asks."""
    for number, conversation in enumerate(conversations):
        found.append([])
        waiting: list[tuple[str, LoggedCall]] = []
        for message in conversation.messages:
            waiting = [*waiting, *((call.id, call) for call in message.calls)][-MOST_WAITING:]
            if message.role == "tool" and (call := take(waiting, message.call_id)) is not None:
                text, key = bare(message.text), dumps((call.name, call.arguments))
                found[-1].append((call.name, text, key))
                is_right = not is_empty(text) and error_of(text) is None and not is_cut(text)
                if call.arguments and is_right:
                    something[key].add(number)
    return [
        [Answered(tool, text, len(something[key]) > (number in something[key])) for tool, text, key in calls]
        for number, calls in enumerate(found)
        if calls
    ]


def _kinds(answered: Sequence[Sequence[Answered]]) -> Met:
    lengths = Counter(len(one.text) for several in answered for one in several)
    limit = max(lengths, default=0)

    def met(one: Answered) -> tuple[Kind | None, str]:
        if (kind := kind_of(one.text)) is not None:
            return kind, one.text.strip()
        if is_cut(one.text):
            by_the_log = len(one.text) == limit and lengths[limit] >= AT_LEAST
            return CUT_BY_THE_LOG if by_the_log else TRUNCATED, one.tool
        return PERHAPS_EMPTY if is_empty(one.text) and not one.elsewhere else None, one.tool

    return [[(place, *met(one)) for place, one in enumerate(several, 1)] for several in answered]


def _slow(timed: Sequence[Sequence[TimedRun]]) -> tuple[Met, tuple[float, float]]:
    """The slow runs, and the bounds of how much later than the median nine of ten of them ended."""
    usual = defaultdict[str, list[float]](list)
    for run in itertools.chain(*timed):
        usual[run.tool] += [run.seconds] * (error_of(run.text) is None)
    medians = {tool: median(seconds or [0.0]) for tool, seconds in usual.items()}

    def later(run: TimedRun) -> float:
        """0 for one that is not slow; an error has its own kind."""
        middle = medians[run.tool]
        is_slow = error_of(run.text) is None and run.seconds > max(SLOWER * middle, middle + LATER)
        return run.seconds - middle if is_slow else 0.0

    met = [
        [(place, SLOW if later(run) else None, run.tool) for place, run in enumerate(several, 1)]
        for several in timed
    ]
    seconds = [late for run in itertools.chain(*timed) if (late := later(run))] or [0.0]
    low, high = np.quantile(seconds, (0.05, 0.95)).clip(max=MOST_SECONDS).round(3).tolist()
    return met, (low, high)
