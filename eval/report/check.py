"""`rbtc report --check-paper`: our own arithmetic against what the paper printed. No run needed."""

from collections import Counter

from robustbench_tc.eval import paper
from robustbench_tc.eval.stats.intervals import accuracy
from robustbench_tc.eval.stats.summary import Summary, from_counts
from robustbench_tc.eval.stats.values import closure
from robustbench_tc.io.numbers import number

from .content import Check, Report, papers

CLOSURES = {
    ("ToolRL-DR-Full", "reward"): "26.3%",
    ("ToolRL-DR-Full", "transition"): "26.6%",
    ("ToolRL-DR-Mixed", "reward"): "19.2%",
    ("ToolRL-DR-Mixed", "transition"): "26.3%",
}
"""Gap closures against the paper's baseline, as the specification states them."""

EQUAL_AT_LEAST = 503
"""Half-widths that have to equal the exact one; the rest is the noise of the paper's own simulation."""


def report() -> Report:
    """A report of the paper's models alone, with what was checked: Table 2, the 630 half-widths and the four
    gap closures, from the shipped counts."""
    summaries = {model: from_counts(paper.counts(model)) for model in paper.models()}
    return Report(
        dataset_version="paper",
        fingerprint=None,
        convention="paper",
        subset="paper",
        allow_missing=False,
        baseline=None,
        models=(),
        paper=papers(),
        gaps=(),
        marts={},
        checks=(
            _table2(summaries),
            _half_widths(),
            _table2_half_widths(summaries),
            *_closures(summaries),
        ),
    )


def _table2(summaries: dict[str, Summary]) -> Check:
    off = []
    for row in paper.table2():
        found = summaries[row.model].values[row.metric]
        if found is None or f"{found.value:.3f}" != f"{row.value:.3f}":
            shown = number(None if found is None else found.value, 5)
            off.append(f"{row.model} {row.metric}: printed {number(row.value)}, ours {shown}")
    total = len(paper.table2())
    return Check("Table 2, to three decimals", f"{total - len(off)} of {total}", not off, tuple(off))


def _half_widths() -> Check:
    steps: Counter[int] = Counter()
    equal = 0
    for row in paper.half_widths():
        exact = accuracy(row.correct, row.n).half_width
        equal += f"{exact:.3f}" == f"{row.half_width:.3f}"
        steps[abs(round((row.half_width - exact) / (0.5 / row.n)))] += 1
    spread = ", ".join(f"{count} off by {step}" for step, count in sorted(steps.items()) if step)
    return Check(
        "printed half-widths equal to the exact ones",
        f"{equal} of {len(paper.half_widths())}; {spread} steps of 0.5/n",
        equal >= EQUAL_AT_LEAST and max(steps) <= 2,
    )


def _table2_half_widths(summaries: dict[str, Summary]) -> Check:
    """For information: Table 2's ± are rounded simulations too, so only large distances fail."""
    distances = [
        abs(found.half_width - row.half_width)
        for row in paper.table2()
        if (found := summaries[row.model].values[row.metric]) is not None
    ]
    close = sum(distance < 0.0035 for distance in distances)
    return Check(
        "Table 2's half-widths within 0.003 of the exact ones",
        f"{close} of {len(distances)}, largest distance {number(max(distances), 4)}",
        close == len(distances),
    )


def _closures(summaries: dict[str, Summary]) -> tuple[Check, ...]:
    lines = []
    for (model, component), expected in CLOSURES.items():
        base, new = (summaries[m].values[f"delta_{component}"] for m in (paper.BASELINE, model))
        share = closure(base.value, new.value) if base and new else None
        found = "none" if share is None else f"{share:.1%}"
        lines.append(Check(f"gap closure of {model}, {component}", found, found == expected))
    return tuple(lines)
