"""Is B better than A, where, and how sure: paired over the rows that both answered."""

from collections.abc import Callable, Iterable, Iterator

import msgspec

from robustbench_tc import taxonomy
from robustbench_tc.errors import UserError
from robustbench_tc.io.numbers import p_value, points

from . import paper
from .stats.intervals import Interval, independent_difference
from .stats.paired import DeltaPair, Pair, compare, compare_deltas
from .stats.runs import Outcomes, Run, Subset, align
from .stats.significance import fisher_p, holm
from .stats.summary import gaps
from .stats.values import HEADS, Counts, codes_of, from_counts

LEVEL = 0.05
"""Below it we say that there is a difference."""

UNPAIRED = (
    "unpaired, and over other rows: the paper's counts belong to another version of the dataset, so a "
    "difference is not a ranking and has no mark"
)


class TypePair(msgspec.Struct, frozen=True):
    """One type of a comparison."""

    type_code: str
    pair: Pair
    p_holm: float
    """Corrected for looking at every type."""


class Comparison(msgspec.Struct, frozen=True):
    """What `rbtc compare A B` says. Every number is over rows that both runs answered."""

    a: str
    b: str
    dataset_version: str | None
    verdict: str
    overall: dict[str, Pair]
    """clean, perturbed, and the four components."""
    deltas: dict[str, DeltaPair]
    types: tuple[TypePair, ...]
    notes: tuple[str, ...]
    """What is missing or left out, one line each."""


def compare_runs(
    a: Run,
    b: Run,
    *,
    subset: Subset = "all",
    expected: Iterable[tuple[str, str]] | None = None,
    progress: Callable[[str], None] = lambda line: None,
) -> Comparison:
    """Raises UserError where the runs are of different datasets or share no row.

    `progress` gets a line before each component and type.
    """
    first, second = align([a, b], subset=subset, expected=expected)
    overall = {
        name: found
        for name in _announced("accuracy", HEADS, progress)
        if (found := compare(first, second, codes_of(name)))
    }
    if not overall:
        raise UserError(f"{a.path} and {b.path} have no answered row in common")
    deltas: dict[str, DeltaPair] = {
        name: delta
        for name in _announced("Δ", taxonomy.COMPONENTS, progress)
        if (delta := compare_deltas(first, second, codes_of(name)))
    }
    codes = [code for code in first.types if code != taxonomy.CLEAN]
    pairs = {code: compare(first, second, [code]) for code in _announced("type", codes, progress)}
    there = {code: pair for code, pair in pairs.items() if pair is not None}
    corrected = holm({code: pair.p for code, pair in there.items()})
    types = tuple(TypePair(code, pair, corrected[code]) for code, pair in there.items())
    names = labels(a, b)
    return Comparison(
        a=names[0],
        b=names[1],
        dataset_version=a.dataset_version,
        verdict=_verdict(names, overall, types),
        overall=overall,
        deltas=deltas,
        types=types,
        notes=_notes(names, first, second, overall),
    )


def _announced(what: str, names: Iterable[str], progress: Callable[[str], None]) -> Iterator[str]:
    """The names, each announced before it is worked on."""
    for name in names:
        progress(f"{what}: {name}")
        yield name


def labels(a: Run, b: Run) -> tuple[str, str]:
    """Model names, with mode or folder where they alone do not tell the runs apart."""
    if a.model != b.model:
        return a.model, b.model
    if a.mode != b.mode:
        return f"{a.model} ({a.mode})", f"{b.model} ({b.mode})"
    return f"{a.model} ({a.path})", f"{b.model} ({b.path})"


def _verdict(names: tuple[str, str], overall: dict[str, Pair], types: tuple[TypePair, ...]) -> str:
    a, b = names
    name = "perturbed" if "perturbed" in overall else taxonomy.CLEAN
    pair = overall[name]
    found = pair.difference
    said = (
        f"{points(found.value)} points [{points(found.low)}, {points(found.high)}], "
        f"p = {p_value(pair.p)}, {pair.n} pairs"
    )
    if pair.p >= LEVEL:
        head = f"Whether {b} or {a} is better on {name} rows is open: {said}."
    else:
        better, worse = (b, a) if found.value > 0 else (a, b)
        head = f"{better} is better than {worse} on {name} rows: {b} has {said}."
    sure = [one for one in types if one.p_holm < LEVEL]
    for word, side in (
        (f"{b} ahead", [one for one in sure if one.pair.difference.value > 0]),
        (f"{a} ahead", [one for one in sure if one.pair.difference.value < 0]),
    ):
        if side:
            where = ", ".join(f"{x.type_code} {points(x.pair.difference.value)}" for x in side)
            head += f" {word} (after Holm over {len(types)} types): {where}."
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
    left_out = {name: pair.left_out for name, pair in overall.items() if pair.left_out}
    if left_out:
        parts = ", ".join(f"{name} {count}" for name, count in left_out.items())
        notes.append(f"rows left out, because one of the two has no answer: {parts}")
    return tuple(notes)


class PaperLine(msgspec.Struct, frozen=True):
    """A run beside one of the paper's models in one component or type: each over its own rows."""

    name: str
    ours: Interval
    """The difference ours − paper's in the paper's convention (rows independent); n counts both sides."""
    accuracy: float
    n: int
    paper_accuracy: float
    paper_n: int
    p: float | None
    """Fisher's exact test; null for pooled types, whose rows share samples and are not independent."""


def beside_paper(run: Run, model: str, *, subset: Subset = "all") -> tuple[PaperLine, ...]:
    """Components, then types, that both have without a gap. Raises UserError for an unknown model."""
    counts = {code: Counts(*count) for code, count in paper.counts(model).items()}
    [outcomes] = align([run], subset=subset)
    ours = from_counts(outcomes.counts(), outcomes.usable()).lines
    theirs = from_counts(counts, counts).lines
    lines = []
    for name in (*HEADS, *taxonomy.codes()):
        left, right = ours.get(name), theirs.get(name)
        if left is None or right is None or left.accuracy is None or right.accuracy is None:
            continue
        lines.append(
            PaperLine(
                name,
                independent_difference(left.of, right.of),
                left.accuracy,
                left.n,
                right.accuracy,
                right.n,
                fisher_p(left.of, right.of) if codes_of(name) == (name,) else None,
            )
        )
    return tuple(lines)
