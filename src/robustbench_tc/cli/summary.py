"""`rbtc summary`: the tables of a scored run."""

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ..io.numbers import counts, interval, number, p_value
from . import _console
from ._of_runs import AllowMissing, Run, say_reader
from ._words import Subset, one_of

if TYPE_CHECKING:
    from rich.table import Table

    from ..eval.record import RunFolder
    from ..eval.stats import packs
    from ..eval.stats.intervals import Interval
    from ..eval.stats.overview import Overview


def summary(
    run: Run,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
    subset: Subset = "all",
    allow_missing: AllowMissing = False,
    by: Annotated[
        Literal["component", "level"],
        one_of("grouping", "component", "level", help="The lines of the first table: component or level."),
    ] = "component",
) -> None:
    """Print clean and perturbed accuracy, the four gaps, retention and error modes of a scored run.

    Example: rbtc summary runs/qwen3-8b-fc --subset paper
    Example: rbtc summary runs/qwen3-8b-fc --by level
    """
    from ..eval import record

    print_summary(record.open_run(run), subset, allow_missing, as_json, by_level=by == "level")


def print_summary(
    folder: "RunFolder", subset: Subset, allow_missing: bool, as_json: bool, *, by_level: bool = False
) -> None:
    """Prints a scored run: tables, or with `as_json` the same as `overview` gives it. `by_level`: the first
    table has the levels in place of the components."""
    record = folder.record
    made = overview_of(folder, subset, allow_missing)
    say_reader(folder)
    if as_json:
        _console.json(made)
        return
    settings = record.settings
    version = f", version {record.dataset_version}" if record.dataset_version else ""
    version = version if made.verified else ", own tools"
    _console.out.print(
        f"{settings.model} · {settings.mode} · {record.dataset}{version} · {folder.path}", markup=False
    )
    print_tables(made, by_level)


def overview_of(folder: "RunFolder", subset: Subset = "all", allow_missing: bool = False) -> "Overview":
    """Everything that a scored run amounts to."""
    from ..eval.stats.overview import overview
    from ..eval.stats.runs import read

    record = folder.record
    return overview(
        read(folder.path), record.expected, record.flagged, subset=subset, allow_missing=allow_missing
    )


def print_gaps(made: "Overview", by_level: bool = False) -> None:
    """The first table: clean, perturbed and, not `by_level`, the components with their gaps."""
    title = f"rows: {made.subset}; below each value its 95 % interval"
    table = _table(title, "", "right / n", "accuracy", "Δ (paper's)", "Δ matched")
    for name, line in (("clean", made.clean), ("perturbed", made.perturbed)):
        table.add_row(name, f"{line.correct} / {line.n}", number(line.accuracy))
        table.add_row("", "", _span(made.intervals.get(name)))
    for name, line in ({} if by_level else made.components).items():
        values = (line.accuracy, line.delta, line.delta_matched)
        table.add_row(f" {name}", f"{line.correct} / {line.n}", *map(number, values))
        kinds = ("accuracy", "delta", "delta_matched")
        table.add_row("", "", *(_span(made.intervals.get(f"{kind}_{name}")) for kind in kinds))
    _console.out.print(table)


def print_tables(made: "Overview", by_level: bool = False) -> None:
    from ..eval.stats import levels, stages

    print_gaps(made, by_level)
    if by_level:
        _print_made([levels.table(made.levels)])
    _print_verified(made)
    table = _table(None, "type", "n", "acc.", "Δ", "Δ matched")
    table.add_column("wrong answers", overflow="fold")
    for one in made.types:
        values = (one.accuracy, one.delta, one.delta_matched)
        table.add_row(one.type_code, str(one.n), *map(number, values), counts(one.error_modes))
    _console.out.print(table)
    if made.type_intervals:
        table = _table("95 % intervals", "type", "accuracy", "Δ matched", "p (Holm)")
        for code, row in made.type_intervals.items():
            p = p_value(row.flips.p_holm) if row.flips else ""
            table.add_row(code, _span(row.accuracy), _span(row.delta_matched), p)
        _console.out.print(table)
    tell = partial(_console.out.print, markup=False, highlight=False)
    with_transition = _with_span(
        made.retention_with_transition, made.intervals.get("retention_with_transition")
    )
    tell(
        f"retention {_with_span(made.retention, made.intervals.get('retention'))}, "
        f"with transition {with_transition} · wrong answers: {counts(made.error_modes) or 'none'}"
    )
    if made.power is not None:
        tell(made.power.line)
    _print_repeated(made)
    _print_made([stages.table(made.stages)])
    cut = {"cut at the token limit": made.length, "content filter": made.content_filter}
    cut |= {"too long": made.too_long, "rejected": made.rejected}
    tell(f"{counts(cut)}, missing {made.missing} of {made.expected}")
    if made.tooleyes_score is not None:
        tell(f"ToolEyes mean partial score {number(made.tooleyes_score)} (no accuracy)")
    read = {name: one.replies for name, one in made.reply_flags.items()}
    tell(f"replies: {counts(read)} (rbtc failures RUN --flag shows them; docs/calls.md)")
    if read["call_beside_refusal"]:
        left = ", ".join(f"{name} {number(value)}" for name, value in made.without_beside_refusal.items())
        tell(f"accuracy without calls beside a refusal: {left}")
    for flag, cells in made.flagged.items():
        shown = ", ".join(f"{code} {cell['correct']} of {cell['n']}" for code, cell in cells.items())
        tell(f"right among rows flagged {flag}: {shown}")
    for gap in made.gaps:
        tell(f"gap: {gap}")
    _print_made(made.packs)
    _print_blind(made)
    if made.unreviewed:
        _console.out.print(_console.styled(f"not reviewed: {made.unreviewed.line}", style="yellow"))


def _span(found: "Interval | None") -> str:
    return "" if found is None else interval(found)


def _with_span(value: float | None, found: "Interval | None") -> str:
    return f"{number(value)} {_span(found)}".rstrip()


def _print_repeated(made: "Overview") -> None:
    """With repeats: one of k right, all k right, and how much the answers to one row vary."""
    if made.repeated is None:
        return
    r = made.repeated.repeats
    title = f"{r} repeats; below each value its 95 % interval"
    table = _table(title, "", "rows", f"pass@{r}", f"pass^{r}", "variance within a row", "share")
    for name, line in made.repeated.lines.items():
        some, every = line.at[r], line.all[r]
        values = (some.value, every.value, line.within, line.within_share)
        table.add_row(name, str(line.rows), *map(number, values))
        table.add_row("", "", _span(some), _span(every))
    _console.out.print(table)


def _print_made(made: Iterable["packs.Table"]) -> None:
    """Tables that `eval.stats` made: of the packs beyond the core, the stages, the levels; below each value
    its interval."""
    from ..eval.stats.packs import spelled

    for one in made:
        table = _table(None, *one.columns)
        table.title = _console.styled(one.title)
        for row in one.rows:
            values, spans = zip(*map(spelled, row), strict=True)
            table.add_row(*map(_console.styled, values))
            if any(spans):
                table.add_row(*map(_console.styled, spans))
        _console.out.print(table)
        if one.note:
            _console.out.print(one.note, markup=False, highlight=False)


def _print_blind(made: "Overview") -> None:
    """The reference lines under the tables: what the same table is worth without a word of the request."""
    from ..eval.stats.blind import solved

    tell = partial(_console.out.print, markup=False, highlight=False)
    if not made.needs_no_reading:
        tell("what needs no reading: not known, audit the dataset and score again (docs/statistics.md)")
        return
    short = {"perturbed": "pert.", "observation": "obs.", "transition": "trans."}
    heads = {name: short.get(name, name) for name in ("clean", "perturbed", *made.components)}
    table = _table("what needs no reading: the right tool is chosen", "", *heads.values())
    for line in made.needs_no_reading:
        table.add_row(line.name, *(number(line.heads[name]) for name in heads))
    _console.out.print(table)
    there = {one.type_code for one in made.types}
    by: dict[str, list[str]] = {}
    for code, (name, accuracy) in solved(made.needs_no_reading).items():
        if code in there:
            by.setdefault(name, []).append(f"{code} {number(accuracy)}")
    for name, types in by.items():
        tell(f"types that {name} solves without reading: {', '.join(types)}")


def _print_verified(made: "Overview") -> None:
    """The same accuracies without the rows that nobody could answer, beside the best that can be reached;
    nothing of own tools, whose golden answers nobody classified."""
    if not made.verified:
        return
    title = "verified: rows that can be answered; best: what an honest model reaches over all"
    table = _table(title, "", "n", "correct", "accuracy", "best")
    for name, line in made.verified.items():
        values = (line.accuracy, line.best)
        table.add_row(f"verified {name}", str(line.n), str(line.correct), *map(number, values))
    _console.out.print(table)


def _table(title: str | None, first: str, *numbers: str) -> "Table":
    """A table of numbers that fits 80 columns."""
    from rich import box
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(first, no_wrap=True)
    for name in numbers:
        table.add_column(name, justify="right", no_wrap=True)
    return table
