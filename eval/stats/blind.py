"""What needs no reading, beside the values of models: how far one gets with the registry alone.

The counts come from the dataset (its audit), or are made of its rows (`eval.agents.blind`); here they
become the lines that stand under every table.
"""

import math
from collections.abc import Iterable, Sequence

import msgspec

from robustbench_tc import taxonomy

from ..agents.blind import TypeFigures
from .values import HEADS, codes_of

CLASSIFIER = "registry-classifier"
"""The audit's classifier among the lines."""

CHANCE = "chance"
"""One of the confusable tools, drawn at random."""

SOLVED = 0.9
"""Above this accuracy a type is solved without reading."""


class BlindLine(msgspec.Struct, frozen=True):
    """One reference line: accuracies of choosing the gold tool, its arguments taken for given."""

    name: str
    """A blind policy, CLASSIFIER or CHANCE."""
    heads: dict[str, float | None]
    """By the names of HEADS, over the types that are there; None where there are none."""
    types: dict[str, float]
    """By type code."""


def lines(figures: Sequence[TypeFigures]) -> tuple[BlindLine, ...]:
    """The policies in their order, the classifier, chance; none without figures."""
    if not figures:
        return ()
    names = dict.fromkeys(name for one in figures for name in one.right)
    right: dict[str, list[float | None]] = {name: [one.right.get(name) for one in figures] for name in names}
    if any(one.classifier is not None for one in figures):
        right[CLASSIFIER] = [one.classifier for one in figures]
    right[CHANCE] = [one.chance * one.rows for one in figures]
    return tuple(_line(name, figures, counts) for name, counts in right.items())


def _line(name: str, figures: Sequence[TypeFigures], right: Sequence[float | None]) -> BlindLine:
    counted = {one.type_code: (n, one.rows) for one, n in zip(figures, right, strict=True) if n is not None}
    return BlindLine(
        name=name,
        heads={
            head: math.fsum(right for right, _ in there) / sum(n for _, n in there) if there else None
            for head in HEADS
            for there in [[counted[code] for code in codes_of(head) if code in counted]]
        },
        types={code: n / rows for code, (n, rows) in counted.items() if code != taxonomy.CLEAN},
    )


def solved(found: Iterable[BlindLine]) -> dict[str, tuple[str, float]]:
    """Type → who solves it without reading, and how often: the best line above SOLVED."""
    best: dict[str, tuple[str, float]] = {}
    for line in found:
        for code, accuracy in line.types.items():
            if accuracy > max(SOLVED, best.get(code, ("", 0.0))[1]):
                best[code] = line.name, accuracy
    places = {one.code: at for at, one in enumerate(taxonomy.among(best))}
    return {code: best[code] for code in sorted(best, key=lambda code: (places.get(code, len(places)), code))}
