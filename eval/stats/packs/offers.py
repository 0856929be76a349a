"""Tables of the pack `offers`: whether a model reads the offer, and what it does where rules do not help."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from ..intervals import share_of
from . import Cell, Given, Table

PACKS = ("offers",)

STATED = ("CD", "TD", "CD_NT", "TD_NT")
"""Core types whose request states the preference: `reads the offer` is over these."""

UNSTATED = ("CD_AB", "TD_AB")
"""Those that state none: apart."""

DESIGNS = {
    "inv": ("CD_inv", "TD_inv"),
    "unit": ("CD_unit", "TD_unit"),
    "moot": ("CD_moot", "TD_moot"),
}
"""Design → its two types."""


Pair = tuple[str, bool, bool]
"""Unit, and the verdicts on two rows of one sample in one repeat."""


def tables(given: Given) -> Iterable[Table]:
    """Those that the run has rows for."""
    verdicts = _verdicts(given)
    pairs = {
        code: found
        for code in (*STATED, *UNSTATED)
        if (found := list(_pairs(verdicts, code, f"{code}_swap")))
    }
    if pairs:
        yield _reads_the_offer(pairs)
    if rows := list(_designs(verdicts)):
        yield Table(
            name="offers_balanced",
            title="Offers that no single rule decides",
            columns=("types", "rows", "accuracy", "samples with both", "right on both"),
            rows=tuple(rows),
            note="inv: price and time stand against each other and the request says which counts; of one "
            "sample both types have the same registry, so whoever does not read the request is right on both "
            "in none. unit: offers in different units. moot: the better offer lacks a parameter, which the "
            "request needs or not. Over both types of a design the suffixed name is the gold in half of the "
            "rows.",
        )
    if rows := list(_rules(given, verdicts)):
        yield Table(
            name="offers_rules",
            title="Offers beside rules that read no request",
            columns=("who", "core and swapped", *DESIGNS),
            rows=tuple(rows),
            note="Accuracy over the rows of the types; rules get the gold's arguments. Over core rows and "
            "their swapped ones a rule that reads no annotation is right in half of the rows and in no pair. "
            "A sample that calls two tools has a core row and no swapped one.",
        )


_Verdicts = Mapping[str, Mapping[tuple[str, str, int], bool]]
"""Type code → (unit, clean id, repeat) → whether the answer is right."""


def _verdicts(given: Given) -> _Verdicts:
    """Of the types whose values may be shown, over the rows of the subset."""
    wanted = {*STATED, *UNSTATED, *given.codes("offers")} & set(given.outcomes.usable(given.allow_missing))
    return {
        code: {(one.unit, one.clean_id, one.repeat): bool(one.right) for one in given.answers(code)}
        for code in sorted(wanted)
    }


def _pairs(verdicts: _Verdicts, first: str, second: str) -> Iterator[Pair]:
    """The samples that have a verdict on a row of both types."""
    others = verdicts.get(second, {})
    for asked, right in verdicts.get(first, {}).items():
        if asked in others:
            yield asked[0], right, others[asked]


def _reads_the_offer(pairs: Mapping[str, Sequence[Pair]]) -> Table:
    groups: dict[str, tuple[str, ...]] = {"CD, TD and NT": STATED} | {code: (code,) for code in STATED}
    groups |= {"AB (no preference stated)": UNSTATED} | {code: (code,) for code in UNSTATED}
    return Table(
        name="reads_the_offer",
        title="Reads the offer: right on a core row and on its swapped counterpart",
        columns=(
            "types",
            "pairs",
            "core row",
            "swapped row",
            "both: reads the offer",
            "core only",
            "swapped only",
            "neither",
        ),
        rows=tuple(
            (
                name,
                len(found),
                share_of([(unit, core) for unit, core, _ in found]),
                share_of([(unit, swapped) for unit, _, swapped in found]),
                share_of([(unit, core and swapped) for unit, core, swapped in found]),
                sum(core > swapped for _, core, swapped in found),
                sum(core < swapped for _, core, swapped in found),
                sum(not core and not swapped for _, core, swapped in found),
            )
            for name, codes in groups.items()
            if (found := [pair for code in codes for pair in pairs.get(code, ())])
        ),
        note="The swapped row is the core row with the two annotations and the gold exchanged: who chooses "
        "by name or place is right in one of them and never in both. Types without both rows are left out.",
    )


def _designs(verdicts: _Verdicts) -> Iterator[tuple[Cell, ...]]:
    for design, codes in DESIGNS.items():
        there = {code: _by_unit(verdicts, [code]) for code in codes if verdicts.get(code)}
        both = [(unit, first and second) for unit, first, second in _pairs(verdicts, *codes)]
        rows = [row for of_type in there.values() for row in of_type]
        if rows:
            yield f"{design}: {', '.join(there)}", len(rows), share_of(rows), len(both), share_of(both)
        if len(there) > 1:
            yield from ((code, len(own), share_of(own), None, None) for code, own in there.items())


def _by_unit(verdicts: _Verdicts, codes: Sequence[str]) -> list[tuple[str, bool]]:
    """Unit and verdict of the answers to the rows of the types."""
    return [(unit, right) for code in codes for (unit, _, _), right in verdicts.get(code, {}).items()]


def _rules(given: Given, verdicts: _Verdicts) -> Iterator[tuple[Cell, ...]]:
    """The run's own accuracies, then those of the rules that the dataset's figures hold."""
    core = tuple(code for code in (*STATED, *UNSTATED) if verdicts.get(code) and verdicts.get(f"{code}_swap"))
    groups = ((*core, *(f"{code}_swap" for code in core)), *DESIGNS.values())
    figures = {one.type_code: one for one in given.run.record.needs_no_reading}
    names = dict.fromkeys(name for one in figures.values() for name in one.right)
    if names:
        yield (given.run.model, *(share_of(_by_unit(verdicts, codes)) for codes in groups))
    of_groups = [[figures[code] for code in codes if code in figures] for codes in groups]
    for name in names:
        right = [sum(one.right.get(name, 0) for one in of) for of in of_groups]
        rows = [sum(one.rows for one in of) for of in of_groups]
        yield (name, *(n / of if of else None for n, of in zip(right, rows, strict=True)))
