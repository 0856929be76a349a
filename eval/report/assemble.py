"""A report from runs and logs: they are read, the marts asked, everything counted, the page written.

And one of the paper's models alone (`--check-paper`): our own arithmetic against what the paper printed, for
which no run is needed.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from robustbench_tc.eval import paper
from robustbench_tc.eval.adapters.logs import Opened, opened
from robustbench_tc.eval.stats.intervals import accuracy
from robustbench_tc.eval.stats.runs import Subset
from robustbench_tc.eval.stats.summary import Convention, Summary, from_counts
from robustbench_tc.eval.stats.values import closure
from robustbench_tc.io.folders import check_dir
from robustbench_tc.io.numbers import number
from robustbench_tc.sql.query import Inputs, connect, text_of

from . import page
from .content import MARTS, Check, Report, build, papers
from .samples import embed, embed_live


def report(
    runs: Sequence[str],
    out: Path | None = None,
    *,
    baseline: str | None = None,
    convention: Convention = "cluster",
    subset: Subset = "all",
    allow_missing: bool = False,
    dataset: str | None = None,
    log_keys: Sequence[str] = (),
    browser: bool = True,
    worlds: Sequence[str] = (),
    world_python: str | None = None,
    discard_changes: bool = False,
    by: Literal["domain"] | None = None,
    held_out: Sequence[str] = (),
    progress: Callable[[str], None],
) -> Report:
    """The report of scored runs and logs; written where there is an `out`. Raises UserError."""
    if out is not None:  # before minutes of work
        check_dir(out, kind="report", force=True, discard_changes=discard_changes)
    progress(f"reading {len(runs)} runs")
    with opened(runs, log_keys) as found:
        read = [one.read_run() for one in found]
        live = any(one.live for one in read)
        marts, expected = ({}, None) if live else _asked(found, subset, allow_missing, dataset)
        progress("counting")
        made = build(
            read,
            convention=convention,
            subset=subset,
            allow_missing=allow_missing,
            baseline=baseline,
            marts=marts,
            expected=expected,
            by=by,
            held_out=held_out,
        )
        made = msgspec.structs.replace(made, gaps=(*(n for one in found for n in one.notes), *made.gaps))
        if out is None:
            return made
        progress("writing the page")
        samples = page.NO_ROWS
        if browser:
            folders = {one.name: one.folder for one in found}
            of = {run.path: msgspec.structs.replace(run, path=folders[run.path]) for run in read}
            shown, labels = [of[m.run] for m in made.models], [m.label for m in made.models]
            samples = (
                embed_live(shown, labels, dataset, worlds, world_python)
                if live
                else embed(shown, labels, dataset)
            )
        page.write(made, out, samples, discard_changes=discard_changes)
    size = (out / "report.html").stat().st_size
    return msgspec.structs.replace(made, written=f"{out / 'report.html'}, {size / 1e6:.1f} MB")


def _asked(
    runs: Sequence[Opened], subset: Subset, allow_missing: bool, dataset: str | None
) -> tuple[dict[str, list[dict[str, Any]]], list[tuple[str, str]] | None]:
    """The rows of the marts, and the rows that there should be where a dataset says so."""
    inputs = Inputs(
        runs=[one.folder for one in runs],
        release=dataset,
        subset=subset,
        allow_missing=allow_missing,
    )
    named = {one.folder: one.name for one in runs}
    expected, marts = None, {}
    with connect(inputs, check=False) as connection:  # reading a run has looked for doubled rows
        if dataset is not None:
            found = connection.sql("select clean_id, type_code from stg_release").fetchall()
            expected = [(str(clean_id), str(code)) for clean_id, code in found]
        for mart in MARTS:
            rows = connection.sql(text_of(mart, inputs)).to_arrow_table().to_pylist()
            marts[mart] = [{**row, "run": named[row["run"]]} if "run" in row else row for row in rows]
    return marts, expected


# --- --check-paper ----------------------------------------------------------------------------------

CLOSURES = {
    ("ToolRL-DR-Full", "reward"): "26.3%",
    ("ToolRL-DR-Full", "transition"): "26.6%",
    ("ToolRL-DR-Mixed", "reward"): "19.2%",
    ("ToolRL-DR-Mixed", "transition"): "26.3%",
}
"""Gap closures against the paper's baseline, as the specification states them."""

EQUAL_AT_LEAST = 503
"""Half-widths that have to equal the exact one; the rest is the noise of the paper's own simulation."""


def paper_check() -> Report:
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
