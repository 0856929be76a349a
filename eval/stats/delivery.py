"""What a client behind the server got of the calls that the model meant, and who is to blame."""

from collections import Counter

import msgspec
import numpy as np
from msgspec.structs import replace

from robustbench_tc.eval.delivered import MEANING
from robustbench_tc.eval.parse import FORMATS

from .runs import Run

SERVERS = frozenset({"openai", "anthropic", "gemini"})
"""Backends with a server between the model and its calls."""

MANY = 0.05
"""Share of rows with something lost from which it is a warning."""

AGENT = "agent-"
"""How the names of reference agents begin, whose server is ours."""

WRONG = frozenset({"empty_arguments", "unknown_name"})
"""Reasons why a call is wrong however it is delivered: the model may have written it so, or the server."""

LOST = frozenset({"empty_arguments", "unknown_name", "merged_calls", "cut", "in_reasoning", "not_an_object"})
"""Reasons that can lose the call itself: nobody can say whether the model wrote it."""

SERVER = 0.05
"""Difference of meant and delivered accuracy from which a board flags the server."""


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """Meant beside delivered, over every row of a run in fc mode that has a verdict."""

    rows: int
    meant: float
    """Accuracy of the calls that the reader finds."""
    delivered: float
    """Accuracy of what a client got that repairs nothing."""
    called: int
    """Calls of the scored replies."""
    undelivered: int
    """Calls of these in rows in which a client did not get every call."""
    reasons: dict[str, int]
    """Reason → rows in which something was not delivered or lost, the most frequent first."""
    culprit: str
    """Who is to blame, as far as one run can say; empty where everything was delivered."""

    @property
    def warning(self) -> str:
        """Who is to blame, where a client missed a call or many rows lost something; else empty."""
        if not self.undelivered and sum(self.reasons.values()) <= MANY * self.rows:
            return ""
        whole = self.called - self.undelivered
        return f"{whole} of {self.called} calls came as native calls: {self.culprit}"

    @property
    def line(self) -> str:
        """For people: `server delivered 61.0 of 61.4 meant`."""
        return f"server delivered {100 * self.delivered:.1f} of {100 * self.meant:.1f} meant"


def delivery(run: Run) -> Delivery | None:
    """None in prompt mode and for agents that no server stands before."""
    if run.mode != "fc" or run.record.settings.backend not in SERVERS or run.model.startswith(AGENT):
        return None
    columns = (
        run.rows[name].tolist() for name in ("correct", "delivered", "undelivered", "variant", "calls")
    )
    rows = [row for row in zip(*columns, strict=True) if row[0] >= 0]
    if all(row[1] is None for row in rows):
        return None
    reasons: Counter[str] = Counter()
    unmarked = called = undelivered = 0
    for _, got, reason, variant, calls in rows:
        called += calls
        if reason is None or got:
            continue
        reasons[reason] += 1
        undelivered += calls * (reason not in WRONG)
        unmarked += reason == "in_text" and not (variant in FORMATS and FORMATS[variant].marked)
    return Delivery(
        rows=len(rows),
        meant=sum(row[0] for row in rows) / len(rows),
        delivered=sum(bool(row[1]) for row in rows) / len(rows),
        called=called,
        undelivered=undelivered,
        reasons=dict(reasons.most_common()),
        culprit=_culprit(reasons, unmarked),
    )


def as_delivered(run: Run) -> Run:
    """The run with what was delivered in place of what was meant."""
    columns = (run.rows["correct"].tolist(), run.rows["delivered"].tolist())
    verdicts = [meant if got is None else int(got) for meant, got in zip(*columns, strict=True)]
    return replace(run, rows=run.rows | {"correct": np.array(verdicts)})


def _culprit(reasons: Counter[str], unmarked: int) -> str:
    """What the most frequent reason says; one run alone says no more."""
    if not reasons:
        return ""
    reason, count = reasons.most_common(1)[0]
    if reason in LOST:
        return f"{MEANING[reason]}; one run cannot tell model and server apart"
    if reason != "in_text":
        return MEANING[reason]
    if 2 * unmarked > count:
        return "the model did not use its template's call format"
    return "the server has no parser for them"
