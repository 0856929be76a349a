"""The first screen of a scored run, as `rbtc summary`, `score`, `eval` and `quickstart` print it, and all
that stands behind it."""

import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, islice
from pathlib import PurePath
from unicodedata import east_asian_width

import msgspec

from robustbench_tc import shown, taxonomy
from robustbench_tc.errors import UserError
from robustbench_tc.eval.parse import READER_VERSION
from robustbench_tc.eval.record import RunFolder
from robustbench_tc.eval.verdicts import so_far
from robustbench_tc.io.numbers import NONE, counted, counts, p_value, percent
from robustbench_tc.safe_text import safe
from robustbench_tc.schema import Json
from robustbench_tc.shown import Line, Part

from . import blind, reliability
from .breakdown import Breakdown, breakdown, table as table_of_replies
from .caveats import Beside, Unreviewed, beside, unreviewed
from .evidence import Answer, Evidence, answer
from .intervals import Interval
from .levels import LevelLine, levels, table as table_of_levels
from .outcomes import Outcomes
from .packs import Cell, Given, Table, spelled, tables as pack_tables
from .packs.live import Line as Fault, lines
from .runs import Run, Subset, align, read_run, unstated, within
from .stages import Stages, stages, table as table_of_stages
from .summary import Repeated, Summary, repeated, summarise
from .values import HEADS

WIDTH = 100
"""Characters of a line of the first screen."""

TYPES = 5
"""Types that the first screen of a run without a row of any component lists, the largest drops first."""

VALUES = ("accuracy", "Δ (paper's)", "Δ matched", "keeps", "p (Holm)", "")
"""Columns that the full tables of lines and of types share."""

WRONG = "wrong answers"
FOLDED = (WRONG, "definition")
"""Columns whose cells may be folded."""

LONG = 36
"""Characters of a model's name; of a path above which the next steps name it RUN, to fit their line whole."""


class Counted(Breakdown, frozen=True, kw_only=True):
    """What a run says. Fractions in 0 to 1; null where there are no rows."""

    summary: Summary
    """Counts and values of clean, perturbed, the components and every type."""
    answer: Answer | None = None
    """The headline, a word for each component and type, and warnings. This and all that follows is empty
    where only counts are known, as of the paper's models."""
    verified: dict[str, Beside] = msgspec.field(default_factory=dict)
    """Clean, perturbed and the components without the rows that nobody could answer, and the best accuracy
    that an honest model can reach over all."""
    repeated: Repeated | None = None
    """With repeats: pass@k, pass^k, and the variance within samples."""
    reliability: Table | None = None
    """The families of reliability of arXiv 2602.16666, each value with its definition."""
    packs: tuple[Table, ...] = ()
    """What the packs beyond the core, or faults in live episodes, measure."""
    levels: tuple[LevelLine, ...] = ()
    """Every level's rows: of the core, of each pack, and of all."""
    stages: Stages | None = None
    """Where wrong answers fail."""
    live: bool = False
    """Whether its rows are episodes."""
    faults: tuple[Fault, ...] = ()
    """Of a live run: each kind of fault that was met, and several together."""
    unreviewed: Unreviewed | msgspec.UnsetType = msgspec.UNSET
    """Golden answers of logs that nobody looked at; left out where there are none."""


def counts_of(run: Run, outcomes: Outcomes, summary: Summary, *, allow_missing: bool) -> dict[str, object]:
    """The fields of `Counted`."""
    run = within(run, outcomes)
    repeats = repeated(outcomes)
    return {
        **msgspec.structs.asdict(breakdown(run, allow_missing=allow_missing)),
        "summary": summary,
        "answer": answer(run, outcomes),
        "verified": {} if run.own_tools else beside(outcomes, unstated(run), summary.lines),
        "repeated": repeats,
        "reliability": reliability.table(run, outcomes, repeats, allow_missing=allow_missing),
        "packs": pack_tables(Given(run, outcomes, summary, allow_missing)),
        "levels": levels(outcomes, allow_missing=allow_missing),
        "stages": stages(run, outcomes, allow_missing=allow_missing),
        "live": outcomes.live,
        "faults": tuple(lines(run.live)),
        "unreviewed": unreviewed(run, outcomes) or msgspec.UNSET,
    }


class Overview(Counted, frozen=True, kw_only=True):
    """`rbtc summary --json`."""

    answer: Answer
    reliability: Table
    stages: Stages
    subset: Subset
    expected: int
    """Predictions."""
    missing: int
    """Of these, nobody answered so many; in a subset, of the whole run."""
    samples: int
    rows: int
    """Of the subset, each once however often it was asked."""
    flagged: dict[str, Json]
    """Counts of rows that carry a flag, by flag and type."""
    needs_no_reading: tuple[blind.BlindLine, ...]
    """Reference lines: how often the gold tool is found in the dataset without the request."""


def overview(
    run: Run, expected: int, flagged: dict[str, Json], *, subset: Subset = "all", allow_missing: bool = False
) -> Overview:
    """The values of a run over the types that it was asked.

    Raises UserError where one of the `expected` answers is missing, unless that is allowed.
    """
    failed = int((run.rows["status"] == "request_error").sum())
    missing = expected - len(run.rows["status"]) + failed
    if missing > 0 and not allow_missing:
        raise UserError(
            f"{missing} of {expected} rows have no answer ({failed} request_error, {missing - failed} not "
            "asked): run the same rbtc eval again, or take --allow-missing for numbers without them"
        )
    [outcomes] = align([run], subset=subset)
    made = summarise(outcomes, allow_missing=True)
    return Overview(
        **counts_of(run, outcomes, made, allow_missing=True),  # type: ignore[arg-type]
        subset=subset,
        expected=expected,
        missing=missing,
        samples=len(outcomes.clean_ids),
        rows=int((outcomes.n + outcomes.missing > 0).sum()),
        flagged=flagged,
        needs_no_reading=blind.lines(run.record.needs_no_reading),
    )


@dataclass(frozen=True)
class Screen:
    """What a scored run says."""

    folder: RunFolder
    overview: Overview
    full: bool = False
    """Whether every warning and table is shown too."""
    under_way: str = ""
    """How far the run is that these are the answers of so far."""

    def json(self) -> Overview:
        """The values alone."""
        return self.overview

    def shown(self) -> Iterator[Part]:
        """At most 16 lines of at most WIDTH characters; with `full` everything behind them."""
        made_by, path = self.folder.record.reader or "1", self.folder.path
        if made_by != READER_VERSION:
            note = (
                f"the verdicts of {path} were made by version {made_by} of the reader, this is version "
                f"{READER_VERSION} (docs/calls.md): `rbtc score {path}` makes them again"
            )
            yield Line(note, aside=True)
        yield from [self.under_way] * bool(self.under_way)
        yield from _first(self.folder, self.overview)
        if self.full:
            yield from _rest(self.overview)


def screen(
    folder: RunFolder, *, subset: Subset = "all", allow_missing: bool = False, full: bool = False
) -> Screen:
    """The screen of a scored run. Raises UserError where answers are missing, unless that is allowed."""
    record = folder.record
    made = overview(
        read_run(folder.path), record.expected, record.flagged, subset=subset, allow_missing=allow_missing
    )
    return Screen(folder, made, full)


def screen_so_far(
    folder: RunFolder, *, subset: Subset, full: bool, worlds: Sequence[str], world_python: str | None
) -> Screen:
    """The screen of a run that is under way or was stopped, by its journal. Raises UserError."""
    with so_far(folder, worlds, world_python) as copy:
        made = screen(copy, subset=subset, allow_missing=True, full=full)
        record = copy.record
    state = "stopped" if folder.ended else "under way"
    how_far = f"{state}: {record.how_far(record.answered)}"
    return replace(made, folder=RunFolder(folder.path, record), under_way=how_far)


def _first(folder: RunFolder, made: Overview) -> Iterator[str]:
    """The run, the answer, its table, what to read and do."""
    record, answer, settings = folder.record, made.answer, folder.record.settings
    version = f" {record.dataset_version}" if record.dataset_version else ""
    name = f"{PurePath(record.dataset).name}{version} ({settings.fingerprint[:8]})"
    who = (_cut(settings.model, LONG), settings.mode, *settings.defend, name)
    words = ("task", "episode") if made.live else ("sample", "row")
    size = [
        counted(made.samples, words[0]),
        counted(made.rows, words[1]),
        *[f"{settings.repeat} repeats"] * (settings.repeat > 1),
        f"{made.missing:,} missing" if made.missing > 0 else "all answered",
        *[f"subset {made.subset}"] * (made.subset != "all"),
    ]
    asked = f" · {', '.join(size)}"
    yield _cut(" · ".join(who), WIDTH - len(asked)) + asked
    yield ""
    yield _cut(answer.sentence)
    yield ""
    yield f"{'accuracy':>22}   drop, 95 % interval     keeps"
    accuracies = {name: one.accuracy for name in HEADS if (one := made.summary.lines[name]).n}
    if made.live:
        accuracies |= {name: one.after for name, one in answer.lines.items()}
    elif not accuracies.keys() & set(taxonomy.COMPONENTS):
        ranked = sorted(answer.types.values(), key=lambda one: (one.word != "loses", -one.drop.value))
        accuracies |= {one.name: one.after for one in ranked[:TYPES]}
    for name, accuracy in accuracies.items():
        line = f"{_cut(name, 24):<13}{_percent(accuracy):>9}"
        if found := answer.lines.get(name) or answer.types.get(name):
            low, high = (f"{_percent(end):>4}" for end in (found.drop.low, found.drop.high))
            span = f"[{low} to {high}]"
            line += f"{_percent(found.drop.value):>7} {span:<16}{_keeps(found):>8}   {found.word}"
        yield line
    if answer.worst:
        named = (
            f"{_cut(taxonomy.named(code), 80)} {_percent(answer.types[code].after)}" for code in answer.worst
        )
        fitting = (one for one in accumulate(named, "{} · {}".format) if len(one) <= WIDTH - 7)
        yield "worst  " + max(islice(fitting, 3), key=len)
    if answer.delivery is not None:
        yield answer.delivery.line
    if answer.warnings:
        first, *others = answer.warnings
        more = f" (+{len(others)} more: --full)" if others else ""
        yield f"warn   {_cut(first, WIDTH - 7 - len(more))}{more}"
    path = shlex.quote(str(folder.path))
    run = path if len(path) <= LONG else "RUN"
    failures = " --type ".join((f"rbtc failures {run}", *answer.worst[:1]))
    yield _cut(f"next   {failures:<43}  # what it answered")
    yield f"       {f'rbtc report {run} --out report':<43}  # the page to send"


def _cut(text: str, width: int = WIDTH) -> str:
    """A text as one line of at most so many cells of a terminal."""
    line = safe(text, keep="")
    ends = list(accumulate(1 + (east_asian_width(one) in "WF") for one in line))
    if not ends or ends[-1] <= width:
        return line
    return line[: sum(end < width for end in ends)] + "…"


def _rest(made: Overview) -> Iterator[Part]:
    """Every warning, why a component cannot be told, what is missing, the smallest effect seen, and
    every table."""
    yield from (f"warning: {one}" for one in made.answer.warnings)
    yield from (f"{name}: {one.why}" for name, one in made.answer.lines.items() if one.why)
    yield from (f"gap: {one}" for one in made.summary.gaps)
    if made.summary.power is not None:
        yield made.summary.power.line
    for table in (*_tables(made), made.reliability):
        yield from printed(table)


def printed(table: Table) -> Iterator[Part]:
    """A table for a terminal, its note below."""
    yield shown.Table(table.columns, _lines(table.rows), table.title, FOLDED)
    if table.note:
        yield table.note


def _lines(rows: Iterable[Iterable[Cell]]) -> Iterator[tuple[str, ...]]:
    """Rows of cells as texts, shares in percent, below each value its interval."""
    for row in rows:
        values, spans = zip(*(spelled(cell, _percent, _span) for cell in row), strict=True)
        yield values
        if any(spans):
            yield spans


def _percent(share: float | None) -> str:
    """`15.5`"""
    return percent(share).removesuffix(" %")


def _span(found: Interval) -> str:
    """`[10.1 to 15.5]`"""
    return f"[{_percent(found.low)} to {_percent(found.high)}]"


def _keeps(found: Evidence) -> str:
    """The share of right answers that is kept at least: `≥ 83 %`."""
    return NONE if found.keeps is None else f"≥ {100 * found.keeps:.0f} %"


def _tables(made: Overview) -> Iterator[Table]:
    answer, among, of_types = made.answer, made.summary.values, made.summary.types
    if made.live:
        yield from made.packs
        return
    yield Table(
        name="lines",
        title=f"rows: {made.subset}; below each value its 95 % interval",
        columns=("", "right", "n", *VALUES),
        rows=tuple(
            (
                name,
                made.summary.lines[name].correct,
                made.summary.lines[name].n,
                among.get(name, among.get(f"accuracy_{name}")),
                among.get(f"delta_{name}"),
                among.get(f"delta_matched_{name}"),
                *_evidence(answer.lines.get(name)),
            )
            for name in HEADS
        ),
    )
    yield table_of_levels(made.levels)
    if made.verified:
        yield Table(
            name="verified",
            title="verified: rows whose answer can be inferred; best: highest score without guessing",
            columns=("", "n", "right", "accuracy", "best"),
            rows=tuple(
                (name, one.n, one.correct, one.accuracy, one.best) for name, one in made.verified.items()
            ),
        )
    yield Table(
        name="types",
        title="by type",
        columns=("type", "n", *VALUES, WRONG),
        rows=tuple(
            (
                code,
                row.accuracy.n,
                row.accuracy,
                row.delta,
                row.delta_matched,
                *_evidence(answer.types.get(code)),
                counts(made.error_modes.get(code, {})),
            )
            for code, row in of_types.items()
        ),
    )
    if made.repeated is not None:
        r = made.repeated.repeats
        yield Table(
            name="repeated",
            title=f"{r} repeats; below each value its 95 % interval",
            columns=("", "rows", f"pass@{r}", f"pass^{r}", "variance within a row", "share"),
            rows=tuple(
                (name, line.rows, line.at[r], line.all[r], line.within, line.within_share)
                for name, line in made.repeated.lines.items()
            ),
        )
    yield table_of_stages(made.stages)
    yield from made.packs
    if made.needs_no_reading:
        solved = (
            f"{code} {_percent(accuracy)} by {policy}"
            for code, (policy, accuracy) in blind.solved(made.needs_no_reading).items()
            if code in of_types
        )
        yield Table(
            name="blind",
            title="request-blind baselines: how often the right tool is chosen",
            columns=("", *HEADS),
            rows=tuple((one.name, *(one.heads[name] for name in HEADS)) for one in made.needs_no_reading),
            note=f"Types solved without the request: {', '.join(solved) or 'none'}.",
        )
    yield table_of_replies(made, made.summary, made.flagged)


def _evidence(found: Evidence | None) -> tuple[str, str, str]:
    """The last three of VALUES."""
    return ("", "", "") if found is None else (_keeps(found), p_value(found.p_holm), found.word)
