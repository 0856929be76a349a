"""What has to be known before a run's drops are read: agent errors, rejections, cut replies, gaps."""

from collections import Counter

from .runs import Outcomes, Run, unstated

CUT = 0.05
"""Share of replies cut off at the token limit above which a run is read with care."""


def caveats(run: Run, outcomes: Outcomes) -> tuple[str, tuple[str, ...]]:
    """What leads the headline (may be empty), and every warning, the worst first."""
    rows = [
        (status, code, finish)
        for status, code, finish, verdict in zip(
            *(run.rows[name].tolist() for name in ("status", "type_code", "finish_reason", "correct")),
            strict=True,
        )
        if verdict >= 0 and code in outcomes.types
    ]
    total = len(rows)
    found = []
    if failed := sum(status == "agent_error" for status, *_ in rows):
        found.append((f"The agent failed on {failed} of {total} rows.", "rbtc failures shows the messages"))
    if refused := Counter(code for status, code, _ in rows if status == "rejected"):
        types = f"{len(refused)} type{'s' if len(refused) > 1 else ''}"
        found.append(
            (f"The server rejected rows of {types}.", f"{', '.join(refused)}: {refused.total()} rows")
        )
    cut = sum(finish == "length" for *_, finish in rows)
    if cut > CUT * total:
        found.append((f"{cut} of {total} replies were cut off.", "raise --max-tokens"))
    alarm = found[0][0] if found else ""
    warnings = [f"{head.rstrip('.')}: {more}" for head, more in found]
    if missing := int(outcomes.missing.sum()) + outcomes.unaccounted:
        warnings.append(f"{missing} rows have no verdict: run the same rbtc eval again")
    if (golds := len(unstated(run) & set(outcomes.clean_ids))) and outcomes.clean_ids:
        best = 100 * (1 - golds / len(outcomes.clean_ids))
        warnings.append(f"{golds} golds cannot be inferred, best possible {best:.1f}")
    return alarm, tuple(warnings)
