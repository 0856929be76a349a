"""What has to be known before a run's drops are read: agent errors, rejections, cut replies, gaps."""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping

import msgspec
import numpy as np
from msgspec.structs import replace

from robustbench_tc.eval.delivered import MEANING
from robustbench_tc.eval.parse import FORMATS
from robustbench_tc.io.numbers import counted, percent

from .outcomes import Outcomes
from .runs import Run, unstated
from .values import HEADS, Line, from_counts

CUT = 0.05
"""Share of replies cut off at the token limit above which a run is read with care."""


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
    lost = [(reason, variant, calls) for _, got, reason, variant, calls in rows if reason and not got]
    reasons = Counter(reason for reason, _, _ in lost)
    unmarked = sum(
        reason == "in_text" and not (variant in FORMATS and FORMATS[variant].marked)
        for reason, variant, _ in lost
    )
    return Delivery(
        rows=len(rows),
        meant=sum(row[0] for row in rows) / len(rows),
        delivered=sum(bool(row[1]) for row in rows) / len(rows),
        called=sum(row[4] for row in rows),
        undelivered=sum(calls for reason, _, calls in lost if reason not in WRONG),
        reasons=dict(reasons.most_common()),
        culprit=_culprit(reasons, unmarked),
    )


def as_delivered(run: Run) -> Run:
    """The run with what was delivered in place of what was meant."""
    meant, got = run.rows["correct"], run.rows["delivered"]
    verdicts = np.where(np.array([one is None for one in got]), meant, got).astype(np.int64)
    return replace(run, rows=run.rows | {"correct": verdicts})


def _culprit(reasons: Counter[str], unmarked: int) -> str:
    """What the most frequent reason says; one run alone says no more."""
    [(reason, count)] = reasons.most_common(1) or [("", 0)]
    if reason in LOST:
        return f"{MEANING[reason]}; one run cannot tell model and server apart"
    if reason != "in_text":
        return MEANING.get(reason, "")
    if 2 * unmarked > count:
        return "the model did not use its template's call format"
    return "the server has no parser for them"


def statuses(run: Run) -> dict[str, Counter[str]]:
    """Status → type → rows with a verdict; every status that is asked for."""
    found: defaultdict[str, Counter[str]] = defaultdict(Counter)
    answered = run.rows["correct"] >= 0
    for status, code in zip(*(run.rows[name][answered] for name in ("status", "type_code")), strict=True):
        found[status][code] += 1
    return found


def caveats(run: Run, outcomes: Outcomes) -> tuple[str, tuple[str, ...]]:
    """What leads the headline (may be empty), and every warning, the worst first."""
    by_status = statuses(run)
    total = sum(one.total() for one in by_status.values())
    found = []
    if failed := by_status["agent_error"].total():
        head = f"The agent failed on {failed} of {total} rows."
        found.append((head, "they count as wrong; rbtc failures shows the messages"))
    if refused := by_status["rejected"]:
        types = f"{len(refused)} type{'s' if len(refused) > 1 else ''}"
        detail = f"{', '.join(refused)}; {refused.total()} rows count as wrong"
        found.append((f"The server rejected rows of {types}.", detail))
    cut = int(((run.rows["finish_reason"] == "length") & (run.rows["correct"] >= 0)).sum())
    if cut > CUT * total:
        found.append((f"{cut} of {total} replies were cut off.", "raise --max-tokens"))
    warnings = [f"{head.rstrip('.')}: {more}" for head, more in found]
    if missing := int(outcomes.missing.sum()) + outcomes.unaccounted:
        warnings.append(f"{missing} rows have no verdict: run the same rbtc eval again")
    if (got := delivery(run)) is not None and got.warning:
        warnings.append(got.warning)
    ends = zip(run.rows["native_calls"].tolist(), run.rows["finish_reason"].tolist(), strict=True)
    if odd := sum(bool(calls) and reason == "stop" for calls, reason in ends):
        warnings.append(f"{odd} replies with native calls end with stop: clients wait for tool_calls")
    if logged := unreviewed(run, outcomes):
        warnings.append(logged.line)
    if (golds := len(unstated(run) & set(outcomes.clean_ids))) and outcomes.clean_ids:
        best = 100 * (1 - golds / len(outcomes.clean_ids))
        warnings.append(f"{counted(golds, 'gold')} cannot be inferred; best possible {best:.1f}")
    return found[0][0] if found else "", tuple(warnings)


class Accuracy(msgspec.Struct, frozen=True):
    """An accuracy over all rows, and over those whose golden answers were reviewed."""

    over_all: float | None
    without: float | None
    """None where no row is left."""


class Unreviewed(msgspec.Struct, frozen=True, kw_only=True):
    """What a table over a run says of them."""

    answers: int
    of: int
    """Golden answers of the table in all."""
    lines: dict[str, Accuracy]
    """Clean and perturbed, those that the run has."""

    @property
    def line(self) -> str:
        """As the tables say it."""
        values = (
            f"{name} {percent(one.over_all)} with them, {percent(one.without)} without"
            for name, one in self.lines.items()
        )
        was = "was" if self.answers == 1 else "were"
        head = f"{self.answers} of {self.of} golden answers {was} proposed and never reviewed"
        return f"{head}: {'; '.join(values)}"


def unreviewed(run: Run, outcomes: Outcomes) -> Unreviewed | None:
    """What to say of a run's counts; None where every golden answer was reviewed, or none was proposed."""
    known = set(run.record.unreviewed or ()) & set(outcomes.clean_ids)
    if not known:
        return None
    before = from_counts(outcomes.counts(), outcomes.usable(True), partial=True).lines
    without = beside(outcomes, known, before)
    lines = {
        name: Accuracy(before[name].accuracy, without[name].accuracy) for name in HEADS[:2] if before[name].n
    }
    return Unreviewed(answers=len(known), of=len(outcomes.clean_ids), lines=lines)


class Beside(msgspec.Struct, frozen=True):
    """One line of a table without the rows that nobody could answer."""

    correct: int
    n: int
    accuracy: float | None
    """None where the line of all rows has none, or no row is left."""
    left_out: int
    """Rows that nobody could answer."""
    best: float | None
    """The accuracy over all rows of a model that is right wherever one can be."""


def beside(outcomes: Outcomes, without: Collection[str], lines: Mapping[str, Line]) -> dict[str, Beside]:
    """Clean, perturbed and the components without these clean ids; `lines` are those of all rows."""
    left = outcomes.without(without)
    found = from_counts(left.counts(), left.usable(True), partial=True).lines
    return {
        name: Beside(
            correct=some.correct,
            n=some.n,
            accuracy=None if whole.accuracy is None or not some.n else some.correct / some.n,
            left_out=whole.n - some.n,
            best=None if whole.accuracy is None else some.n / whole.n,
        )
        for name, whole, some in ((name, lines[name], found[name]) for name in HEADS)
    }
