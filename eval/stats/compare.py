"""Is B better than A, where, and how sure: paired over the rows that both answered."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from robustbench_tc import taxonomy
from robustbench_tc.errors import UserError
from robustbench_tc.eval import paper
from robustbench_tc.eval.adapters.logs import opened
from robustbench_tc.io.numbers import counts, interval, number, p_value, percent, points, signed
from robustbench_tc.shown import Line, Part, Table

from .caveats import as_delivered, delivery, unreviewed
from .evidence import WHOLE, answer
from .intervals import Interval, apart_from, of_counts, shares
from .outcomes import Outcomes
from .paired import (
    DefenceTable,
    DeltaPair,
    Pair,
    compare_delta_lines,
    compare_lines,
    compare_types,
    defence_table,
)
from .runs import Run, Subset, align, labels, within
from .significance import LEVEL, fisher_p, holm, holm_by
from .summary import Power, gaps, power
from .values import HEADS, Counts, codes_of, from_counts, leading, pack_of


class PaperLine(msgspec.Struct, frozen=True):
    """A run beside one of the paper's models in one component or type: each over its own rows."""

    name: str
    ours: Interval
    """The difference ours − paper's; n counts both sides. Of the paper only counts are known: its rows are
    taken as independent."""
    accuracy: float
    n: int
    paper_accuracy: float
    paper_n: int
    p: float | None
    """Fisher's exact test; null for pooled types, whose rows share samples and are not independent."""


class Comparison(msgspec.Struct, frozen=True):
    """What `rbtc compare A B` says. Every number is over rows that both runs answered."""

    a: str
    b: str
    dataset_version: str | None = None
    verdict: str = ""
    overall: dict[str, Pair] = {}
    """clean, perturbed, and the four components."""
    deltas: dict[str, DeltaPair] = {}
    types: dict[str, Pair] = {}
    """By type code."""
    notes: tuple[str, ...] = ()
    """What is missing or left out, one line each."""
    overall_holm: dict[str, float] = {}
    """p of `overall`, corrected for looking at all of its lines."""
    deltas_holm: dict[str, float] = {}
    """p of `deltas`, corrected for looking at all of its lines."""
    types_holm: dict[str, float] = {}
    """p of `types`, corrected for looking at every type of a pack."""
    power: Power | None = None
    """The minimum detectable difference."""
    servers: tuple[str, ...] = ()
    """In fc mode: what a client got of each run's calls; of one model on two servers, which loses more."""
    sentences: tuple[str, ...] = ()
    """The headline of either run (`stats.evidence`)."""
    unreviewed: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    """Golden answers of logs that nobody looked at, a line for each run that has some."""
    defences: DefenceTable | None = None
    """What B, and further runs, gain by their defences, where A is the same without."""
    paper: tuple[PaperLine, ...] = ()
    """Where B is one of the paper's models: unpaired, and nothing else."""

    def shown(self) -> Iterator[Part]:
        """The verdict first, then every line with its test. Of several defended runs their table alone."""
        table = self.defences
        if self.b.startswith("paper:"):
            yield from self._beside_paper()
        elif self.overall and not (table is not None and len(table.lines) > 1):
            yield from self._paired()
        if table is not None:
            yield from table.shown()

    def _paired(self) -> Iterator[Part]:
        version = f", dataset {self.dataset_version}" if self.dataset_version else ""
        yield Line(f"A = {self.a}, B = {self.b}{version}", "bold")
        yield Line(self.verdict)
        for name, sentence in zip((self.a, self.b), self.sentences, strict=True):
            yield Line(f"{name}: {sentence}")
        yield from map(Line, self.servers)
        columns = ("A", "B", "B − A", "95 %", "pairs", "only A", "only B", "p", "p (Holm)")
        of_heads = ((name, pair, self.overall_holm.get(name)) for name, pair in self.overall.items())
        yield Table(("accuracy", *columns), [_cells(*one) for one in of_heads])
        if self.deltas:
            names = ("Δ (a loss)", "A", "B", "A − B", "95 %", "p (Holm)", "closed by B", "95 %")
            yield Table(names, [self._delta(*one) for one in self.deltas.items()])
        of_types = [(code, pair, self.types_holm[code]) for code, pair in self.types.items()]
        of_types.sort(key=lambda one: (one[2], one[1].p))
        yield Table(("type", *columns), [_cells(*one) for one in of_types])
        yield Line(
            "Intervals take whole clean_ids as units, both runs together. p is exact and paired; p (Holm) is "
            "corrected for all lines of its table. The verdict is one test, that of all perturbed (or "
            "faulted) rows.",
            "dim",
        )
        if self.power is not None:
            yield self.power.line
        yield from (Line(f"gap: {note}", "yellow") for note in self.notes)
        yield from (Line(f"not reviewed: {line}", "yellow") for line in self.unreviewed or ())

    def _delta(self, name: str, delta: DeltaPair) -> tuple[str, ...]:
        closed = delta.closed
        share = (
            ("not defined", "")
            if closed is None
            else (percent(closed.value), f"{percent(closed.low)} to {percent(closed.high)}")
        )
        change = (signed(delta.difference.value), interval(delta.difference, sign=True))
        return name, number(delta.a), number(delta.b), *change, p_value(self.deltas_holm.get(name)), *share

    def _beside_paper(self) -> Iterator[Part]:
        yield Line(f"{self.a} beside {self.b}", "bold")
        yield Line(
            "unpaired, and over other rows: the paper's counts belong to another version of the dataset, so "
            "a difference is not a ranking and has no mark",
            "yellow",
        )
        yield Table(
            ("", "ours", "n", "paper", "n", "difference", "95 %", "p (Fisher)"),
            [
                (
                    line.name,
                    number(line.accuracy),
                    str(line.n),
                    number(line.paper_accuracy),
                    str(line.paper_n),
                    signed(line.ours.value),
                    interval(line.ours, sign=True),
                    p_value(line.p),
                )
                for line in self.paper
            ],
        )


def _cells(name: str, pair: Pair, p_holm: float | None) -> tuple[str, ...]:
    found = pair.difference
    change = (signed(found.value), interval(found, sign=True))
    rows = map(str, (pair.n, pair.only_a, pair.only_b))
    return name, number(pair.a), number(pair.b), *change, *rows, p_value(pair.p), p_value(p_holm)


def compare(
    given: Sequence[str | Path | Run],
    *,
    subset: Subset = "all",
    log_keys: Sequence[str] = (),
    progress: Callable[[str], None],
) -> Comparison:
    """The first against the others: runs, their folders, logs, or instead of a second one `paper:MODEL`.

    Raises UserError.
    """
    named = [one if isinstance(one, Run) else str(one) for one in given]
    other = named[1]
    beside = isinstance(other, str) and other.startswith("paper:")
    progress("reading the runs")
    given_runs = named[:1] if beside else named
    with opened([one for one in given_runs if isinstance(one, str)], log_keys) as found:
        read = iter([one.read_run() for one in found])
        notes = tuple(note for one in found for note in one.notes)
    runs = [one if isinstance(one, Run) else next(read) for one in given_runs]
    if beside:
        lines = beside_paper(runs[0], str(other).removeprefix("paper:"), subset=subset)
        return Comparison(a=runs[0].model, b=str(other), notes=notes, paper=lines)
    plain, one = runs[:2]
    by = [run.record.settings.defend for run in (plain, one)]
    same = (plain.model, plain.mode) == (one.model, one.mode)
    defended = len(runs) > 2 or (by[1] and not by[0] and same)
    table = defence_table(plain, runs[1:]) if defended else None
    made = compare_runs(plain, one, subset=subset, progress=progress)
    return msgspec.structs.replace(made, notes=(*notes, *made.notes), defences=table)


def compare_runs(
    a: Run, b: Run, *, subset: Subset = "all", progress: Callable[[str], None] = lambda line: None
) -> Comparison:
    """Raises UserError where the runs are of different datasets or share no row.

    `progress` gets a line before each part.
    """
    first, second = align([a, b], subset=subset)
    progress("counting")
    first_name, second_name = labels([a, b])
    names = first_name, second_name
    found = compare_outcomes(names, first, second)
    if not found.overall:
        raise UserError(f"{a.path} and {b.path} have no answered row in common")
    logged = [
        f"{name}: {one.line}"
        for name, run, outcomes in zip(names, (a, b), (first, second), strict=True)
        if (one := unreviewed(run, outcomes)) is not None
    ]
    sentences = (answer(run, outcomes).sentence for run, outcomes in ((a, first), (b, second)))
    return msgspec.structs.replace(
        found,
        dataset_version=a.record.dataset_version,
        servers=_servers(names, (a, b), (first, second), subset),
        sentences=tuple(sentences),
        unreviewed=tuple(logged) or msgspec.UNSET,
    )


def _servers(
    names: tuple[str, str], runs: tuple[Run, Run], outcomes: tuple[Outcomes, Outcomes], subset: Subset
) -> tuple[str, ...]:
    """Delivered beside meant of both runs; one model behind two servers is tested over all rows, in pairs."""
    got = [delivery(within(run, counts)) for run, counts in zip(runs, outcomes, strict=True)]
    said = [f"{name}: {one.line}" for name, one in zip(names, got, strict=True) if one is not None]
    if runs[0].model != runs[1].model or None in got:
        return tuple(said)
    first, second = align([as_delivered(run) for run in runs], subset=subset)
    pair = compare_lines(first, second, {"all": first.types})["all"]
    difference = pair.difference
    if pair.p >= LEVEL:
        return (*said, f"No significant difference between the two servers: p = {p_value(pair.p)}.")
    worse = names[1 if difference.value < 0 else 0]
    ends = sorted(abs(end) for end in (difference.low, difference.high))
    lost, low, high = (f"{100 * value:.1f}" for value in (abs(difference.value), *ends))
    return (*said, f"The server of {worse} loses {lost} points ({low} to {high}), p = {p_value(pair.p)}.")


def compare_outcomes(names: tuple[str, str], first: Outcomes, second: Outcomes) -> Comparison:
    """The comparison of aligned counts; nothing overall where they share no row."""
    heads = first.heads
    overall = compare_lines(first, second, {name: codes_of(name) for name in heads})
    deltas = compare_delta_lines(first, second, {name: codes_of(name) for name in heads[2:]})
    there = compare_types(first, second, (code for code in first.types if code != taxonomy.CLEAN))
    corrected = holm_by(pack_of, {code: pair.p for code, pair in there.items()})
    core = leading(there)
    return Comparison(
        a=names[0],
        b=names[1],
        dataset_version=None,
        verdict=_verdict(names, overall, {code: there[code] for code in core}, corrected) if overall else "",
        overall=overall,
        deltas=deltas,
        types=there,
        notes=_notes(names, first, second, overall),
        overall_holm=holm({name: pair.p for name, pair in overall.items()}),
        deltas_holm=holm({name: p for name, one in deltas.items() if (p := one.difference.p) is not None}),
        types_holm=corrected,
        power=power(
            {name: pair.difference for name, pair in overall.items()},
            {code: there[code].difference for code in core},
            first,
            second,
        ),
    )


def _verdict(
    names: tuple[str, str], overall: dict[str, Pair], types: Mapping[str, Pair], p_holm: Mapping[str, float]
) -> str:
    a, b = names
    name = next((name for name in WHOLE if name in overall), taxonomy.CLEAN)
    rows = WHOLE.get(name, "clean rows")
    pair = overall[name]
    found = pair.difference
    said = (
        f"{points(found.value)} points [{points(found.low)}, {points(found.high)}], "
        f"p = {p_value(pair.p)}, {pair.n} pairs"
    )
    if pair.p >= LEVEL:
        head = f"No significant difference between {b} and {a} on {rows}: {said}."
    else:
        better, worse = (b, a) if found.value > 0 else (a, b)
        head = f"{better} is better than {worse} on {rows}: {b} has {said}."
    sure = [(code, pair.difference.value) for code, pair in types.items() if p_holm[code] < LEVEL]
    for name, sign in ((b, 1), (a, -1)):
        if where := ", ".join(f"{code} {points(value)}" for code, value in sure if sign * value > 0):
            head += f" {name} ahead (after Holm over {len(types)} types): {where}."
    if not sure and types:
        head += f" No single type differs after Holm over {len(types)} types."
    return head


def _notes(
    names: tuple[str, str], first: Outcomes, second: Outcomes, overall: dict[str, Pair]
) -> tuple[str, ...]:
    notes = [
        f"{name}: {line}"
        for name, outcomes in zip(names, (first, second), strict=True)
        for line in gaps(outcomes)
    ]
    if left_out := {name: pair.left_out for name, pair in overall.items() if pair.left_out}:
        notes.append(f"rows left out, because one of the two has no answer: {counts(left_out)}")
    return tuple(notes)


def beside_paper(run: Run, model: str, *, subset: Subset = "all") -> tuple[PaperLine, ...]:
    """Components, then types, that both have without a gap. Raises UserError for an unknown model."""
    counts = {code: Counts(*count) for code, count in paper.counts(model).items()}
    [outcomes] = align([run], subset=subset)
    ours = from_counts(outcomes.counts(), outcomes.usable()).lines
    theirs = from_counts(counts, counts).lines
    both = [
        (name, ours[name], theirs[name])
        for name in (*HEADS, *taxonomy.codes())
        if name in ours and name in theirs
    ]
    return tuple(
        PaperLine(
            name,
            apart_from(shares(*outcomes.columns(codes_of(name))), of_counts(*right.tally), left.n + right.n),
            left.accuracy,
            left.n,
            right.accuracy,
            right.n,
            fisher_p(left.tally, right.tally) if codes_of(name) == (name,) else None,
        )
        for name, left, right in both
        if left.accuracy is not None and right.accuracy is not None
    )
