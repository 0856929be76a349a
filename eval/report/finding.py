"""The finding that a report leads with: one sentence per model, what it loses most and how sure that is."""

from collections.abc import Mapping

import msgspec

from robustbench_tc import taxonomy
from robustbench_tc.eval.stats.losses import LEVEL
from robustbench_tc.eval.stats.summary import Summary, TypeRow
from robustbench_tc.eval.stats.values import leading
from robustbench_tc.io import numbers


class Finding(msgspec.Struct, frozen=True):
    """One sentence about a model."""

    text: str
    """What follows the model's name, from the verb on."""
    type_code: str | None = None
    """The type that it names as lost."""


def finding(summary: Summary) -> Finding:
    """What the model loses most and how sure that is.

    A loss is named as such only where the exact paired test, corrected by Holm for looking at every type,
    tells it from none: with nothing lost, one report in twenty at most names one. Among those the largest
    estimate is taken. Its interval is that of the tables, not corrected for having been picked. Types beyond
    the core are spoken of only where there is none of the core.
    """
    clean = summary.lines[taxonomy.CLEAN]
    if summary.values["clean"] is None:
        why = summary.gaps[0] if summary.gaps else "clean rows are missing"
        return Finding(f"cannot be judged: {why}.")
    if not clean.correct:
        return Finding(f"gets none of its {clean.n} clean answers right, so nothing can be lost.")
    rows = {code: row for code, row in summary.types.items() if row.flips and row.delta_matched}
    rows = {code: rows[code] for code in leading(rows)}
    if not rows:
        return Finding("cannot be judged: no perturbed row and its clean row are both answered.")
    losing = [code for code, row in rows.items() if _p(row) < LEVEL and _delta(row) > 0]
    worst = max(losing or rows, key=lambda code: _delta(rows[code]))
    row, tests = rows[worst], f"corrected for {len(rows)} types" if len(rows) > 1 else "one type"
    if _delta(row) <= 0:
        return Finding(f"loses nothing: {_none_of(rows)} worse than on the same clean samples.")
    how = f"{_points(row)}; exact paired test {_p_said(_p(row))}, {tests}"
    if not losing:
        among = f"under any of {len(rows)} types" if len(rows) > 1 else "under the one type asked"
        largest = f"the largest that was measured is under {_name(worst)}: {how}."
        return Finding(f"shows no significant loss {among}; {largest}")
    others = "; no other loss is significant" if len(losing) == 1 else ""
    if len(losing) > 1:
        others = f"; {len(losing)} of {len(rows)} types lose significantly"
    return Finding(f"loses most under {_name(worst)}: {how}{others}.", worst)


def _none_of(rows: Mapping[str, TypeRow]) -> str:
    if len(rows) > 1:
        return f"under none of {len(rows)} types is it"
    return f"under {_name(next(iter(rows)))} it is not"


def _delta(row: TypeRow) -> float:
    return row.delta_matched.value if row.delta_matched else 0.0


def _p(row: TypeRow) -> float:
    return row.flips.p_holm if row.flips else 1.0


def _points(row: TypeRow) -> str:
    """The loss with its interval."""
    found = row.delta_matched
    if found is None:
        return ""
    low, high = (numbers.typeset(numbers.number(100 * end, 1)) for end in (found.low, found.high))
    lost = numbers.number(100 * found.value, 1)
    return f"{lost} points of accuracy on the same samples (95\u00a0% interval {low} to {high})"


def _p_said(p: float) -> str:
    return "p < 0.001" if p < 0.001 else f"p = {numbers.number(p)}"


def _name(code: str) -> str:
    """A type as the page names it, with its component."""
    return f"{taxonomy.get(code).display_name} ({taxonomy.component_of(code) or 'extension'})"
