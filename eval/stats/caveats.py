"""What has to be known before a run's drops are read: agent errors, rejections, cut replies, gaps."""

from collections import Counter, defaultdict

from .delivery import delivery
from .runs import Outcomes, Run, unstated
from .unreviewed import unreviewed

CUT = 0.05
"""Share of replies cut off at the token limit above which a run is read with care."""


def statuses(run: Run, outcomes: Outcomes) -> dict[str, Counter[str]]:
    """Status → type → rows with a verdict; every status that is asked for."""
    found: defaultdict[str, Counter[str]] = defaultdict(Counter)
    inside = set(outcomes.clean_ids), set(outcomes.types)
    columns = (run.rows[name].tolist() for name in ("status", "clean_id", "type_code", "correct"))
    for status, clean_id, code, verdict in zip(*columns, strict=True):
        if verdict >= 0 and clean_id in inside[0] and code in inside[1]:
            found[status][code] += 1
    return found


def caveats(run: Run, outcomes: Outcomes) -> tuple[str, tuple[str, ...]]:
    """What leads the headline (may be empty), and every warning, the worst first."""
    by_status = statuses(run, outcomes)
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
    if (got := delivery(run, outcomes)) is not None and got.warning:
        warnings.append(got.warning)
    ends = zip(run.rows["native_calls"].tolist(), run.rows["finish_reason"].tolist(), strict=True)
    if odd := sum(bool(calls) and reason == "stop" for calls, reason in ends):
        warnings.append(f"{odd} replies with native calls end with stop: clients wait for tool_calls")
    if logged := unreviewed(run, outcomes):
        warnings.append(logged.line)
    if (golds := len(unstated(run) & set(outcomes.clean_ids))) and outcomes.clean_ids:
        best = 100 * (1 - golds / len(outcomes.clean_ids))
        warnings.append(f"{golds} golds cannot be inferred, best possible {best:.1f}")
    return found[0][0] if found else "", tuple(warnings)
