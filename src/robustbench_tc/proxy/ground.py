"""From logs to a plan: which faults tools really had, how often, and in which words."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from robustbench_tc.errors import UserError
from robustbench_tc.eval.stats.intervals import shares
from robustbench_tc.option import Tell, silent
from robustbench_tc.own.logs.chat import Conversation
from robustbench_tc.own.logs.log_files import read_log
from robustbench_tc.own.logs.redact import Redactor
from robustbench_tc.result_faults import MOST_TEXT
from robustbench_tc.safe_text import safe
from robustbench_tc.schema import Json
from robustbench_tc.shown import Part, Table

from .scenes import loaded

LONGEST = 4_000
"""Characters of an answer that are looked at; an error is short."""


class Kind(NamedTuple):
    """A fault as a log shows it."""

    name: str
    plan: str | None
    """The plan's kind that it becomes; None: a door has none."""
    words: str
    same: tuple[str, ...] = ()
    """Other kinds of the plan that a log cannot tell from it."""


KINDS = (
    Kind(
        "rate limit",
        "transient_rate_limit",
        r"\b429\b|rate.?limit|too many requests|quota (?:exceeded|exhausted)|throttl",
    ),
    Kind(
        "credentials refused",
        "transient_auth_error",
        r"\b40[13]\b|unauthori[sz]ed|forbidden|(?:access|permission) denied|not authenticated"
        r"|(?:invalid|expired|missing|wrong) (?:api.?key|credentials?|(?:access )?token)"
        r"|credentials are (?:invalid|expired)",
    ),
    Kind(
        "time-out",
        "transient_timeout",
        r"\b(?:408|504)\b|time[ds]?[ -]?out|deadline exceeded|took too long",
        ("timeout_after_effect",),
    ),
    Kind(
        "server error",
        "transient_server_error",
        r"\b50[0-35-9]\b|internal (?:server )?error|bad gateway|service (?:is )?unavailable|overloaded"
        r"|temporarily unavailable",
    ),
    Kind(
        "no connection",
        "transient_server_error",
        r"connection (?:was )?(?:refused|reset|aborted|closed|error|failed)|network (?:is )?error"
        r"|unreachable|econn\w+|broken pipe|name resolution|could not connect",
    ),
    Kind(
        "schema changed",
        "transient_schema_drift",
        r"schema validation|(?:does|did) not match (?:the |its )?(?:\w+ ){0,4}schema"
        r"|(?:extra|unexpected) fields?",
    ),
    Kind(
        "answer broken",
        "transient_malformed_response",
        r"malformed|(?:could|can) ?not be parsed|invalid json|not valid json|unexpected (?:token|end of)"
        r"|json ?decode|truncated",
    ),
    Kind("not found", None, r"\b404\b|not found|no such|does(?: not|n't) exist|unknown (?:tool|function)"),
    Kind(
        "arguments refused",
        None,
        r"\b4(?:00|22)\b|validation error|is required|required (?:property|field|parameter|argument)"
        r"|(?:invalid|missing|unexpected|bad) (?:\w+ )?(?:arguments?|parameters?|values?|inputs?|request)",
    ),
    Kind("other error", None, r""),
)
"""The first whose words are there; the last three are no fault of the tools, or none that a plan has."""

UNSEEN = ("silent_no_op", "stale_read", "injected_instruction")
"""Kinds of the plan that no log shows: the answer looks right."""

_STARTS = re.compile(
    r"\s*(?:\W{0,3}\s*)(?:tool |an? |the )?(?:error|exception|traceback|fail(?:ed|ure)|http[ /]|[45]\d\d\b"
    r"|tool execution|malformed|schema validation|time[ds]?[ -]?out|request (?:failed|timed)|connection "
    r"|rate.?limit|too many|unauthori|forbidden|access denied|permission denied|internal (?:server )?error"
    r"|service unavailable|bad gateway|gateway time|(?:openai|httpx|requests|urllib|aiohttp|asyncio|json)\."
    r"|\w{2,40}(?:error|exception|timeout)\b)",
    re.IGNORECASE,
)
_NAMES = ("error", "errors", "exception", "error_message", "errorMessage", "fault")
_CODES = ("status", "status_code", "statusCode", "code", "http_status")


def kind_of(text: str) -> Kind | None:
    """The kind of an answer; None for one that is no error."""
    said = error_of(text)
    if said is None:
        return None
    return next(kind for kind in KINDS if re.search(kind.words, said, re.IGNORECASE))


def error_of(text: str) -> str | None:
    """The error that an answer is; None for one that is none, whatever it speaks of."""
    short = text[:LONGEST]
    if short.lstrip()[:1] in ("{", "["):
        found = loaded(short) if len(text) <= LONGEST else None
        if isinstance(found, list) and len(found) == 1:
            found = found[0]
        if isinstance(found, dict):
            return json.dumps(found, ensure_ascii=False)[:LONGEST] if _failed(found) else None
    return short if _STARTS.match(short) else None


def _failed(found: dict[str, Json]) -> bool:
    """Whether one of an object's own keys says that it is an error."""
    codes = [found.get(name) for name in _CODES]
    return (
        any(found.get(name) for name in _NAMES)
        or found.get("isError") is True
        or found.get("is_error") is True
        or found.get("success") is False
        or found.get("ok") is False
        or any(isinstance(code, int) and not isinstance(code, bool) and 400 <= code < 600 for code in codes)
        or any(isinstance(code, str) and code.lower() in ("error", "failed", "failure") for code in codes)
    )


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
        for one in (one for one in self.faults if one.plan is not None):
            lines += ["faults:"] * ("faults:" not in lines)
            lines.append(f"# {one.kind}: {one.met} of {one.calls}, {one.low:.4f} to {one.high:.4f}")
            when = f"at: {list(one.at)}"
            if not one.at:  # a call that met an earlier fault of the plan cannot meet this one
                when = f"rate: {min(1.0, max(one.rate / max(left, one.rate), 1e-6)):.9g}"
                left -= one.rate
            text = msgspec.json.encode(one.texts[0][:MOST_TEXT]).decode()
            lines.append(f"- {{kind: {one.plan}, {when}, text: {text}}}")
        return "\n".join(lines) + "\n"


def ground(paths: Sequence[Path], progress: Tell = silent) -> Ground:
    """What the logs at `paths` show. Raises UserError where none can be read, or no call is answered."""
    log = read_log(*paths, progress=progress)
    conversations, refused = log.conversations, len(log.refused)
    messages = [message for one in conversations for message in one.messages]
    answered = [texts for one in conversations if (texts := _answers(one))]
    if not answered:
        said = f"; {refused} lines cannot be read" if refused else ""
        raise UserError(f"{', '.join(map(str, paths))}: no tool call is answered in it{said}")
    hide = Redactor()
    for message in messages:
        if message.role == "tool":
            hide.apply(message.text)
    met = [[(kind_of(text), text.strip()) for text in texts] for texts in answered]
    faults = (_fault(kind, met, hide) for kind in KINDS)
    calls = sum(map(len, answered))
    return Ground(
        logs=tuple(path.name for path in paths),
        conversations=len(conversations),
        calls=calls,
        unanswered=sum(len(message.calls) for message in messages) - calls,
        refused=refused,
        faults=tuple(one for one in faults if one.met),
    )


def _fault(kind: Kind, met: Sequence[Sequence[tuple[Kind | None, str]]], hide: Redactor) -> Fault:
    """A kind over conversations, each the kinds and words that its answered calls met, in order."""
    at = Counter(place for one in met for place, (here, _) in enumerate(one, 1) if here is kind)
    words = Counter(text for one in met for here, text in one if here is kind)
    number = np.array([sum(here is kind for here, _ in one) for one in met])
    long = Counter(place for one in met for place in range(1, len(one) + 1))
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
        texts=tuple(str(hide.apply(text)) for text, _ in words.most_common(TEXTS)),
    )


def _answers(conversation: Conversation) -> list[str]:
    """The first answer to each call that has one."""
    said = [message for message in conversation.messages if message.role == "tool"]
    answers = {message.call_id: message.text for message in reversed(said)}
    calls = (call.id for message in conversation.messages for call in message.calls)
    return [answers[call] for call in calls if call in answers]
