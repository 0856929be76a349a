"""A classifier that sees a registry and never the request: can it tell which tool is the gold?

A conditional logit: each tool of a registry gets a score from its features, and the highest score is its
choice. The features say how a tool is written beside those that it can be confused with (its schema, and the
length, case and punctuation of its texts), and where it stands; no word of any text enters. It is trained
apart for each type, on four fifths of the registries, and chooses in the others; samples whose clean
registries hold the same names are never on both sides.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Hashable, Sequence
from functools import lru_cache
from math import log1p
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from robustbench_tc.schema import CONTROL_TOOLS, Tool

Floats: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]

SEED = 0
FOLDS = 5
TRAINED_ON = 1_000
"""Registries that a fold is trained on at most: more would tell nothing new, and take their time."""

RIDGE = 10.0
STEPS = 25
"""Newton steps at most; eight are mostly enough."""

PART = 128
"""Lines that are multiplied at a time. BLAS spreads larger products over all processors, which for ours spend
far more time waiting for each other than computing, and gives other last bits for another number of them."""

DIGITS = 6
"""Decimals of a score that count: equal tools stay equal on every machine, and the first one is chosen."""


class Example(NamedTuple):
    """A registry, which of its tools are right, and what keeps it together with others."""

    features: Floats
    """One line for each tool."""
    gold: frozenset[int]
    group: Hashable
    """Examples of one group are on the same side: trained on, or chosen in."""


# --- features -----------------------------------------------------------------------------------------------

CONTRASTS, STANDING = 24, 6
"""Features of each kind."""

_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")


@lru_cache(50_000)
def _surface(text: str) -> tuple[float, ...]:
    """Case and punctuation of a text: how it begins and ends, its capitals and its marks."""
    text = text.strip()
    marks = sum(not (one.isalnum() or one.isspace()) for one in text)
    size = max(1, len(text))
    return text[:1].isupper(), text[-1:] in (".", "!", "?"), sum(map(str.isupper, text)) / size, marks / size


@lru_cache(50_000)
def _of_text(name: str, description: str) -> tuple[float, ...]:
    """How a name and a description are written."""
    numbers = _NUMBER.findall(description)
    return (
        bool(description.strip()),
        log1p(len(description)),
        log1p(len(name)),
        sum(map(str.isupper, name)),
        name.count("_"),
        any(map(str.isdigit, name)),
        len(numbers),
        log1p(float(numbers[-1][:15])) if numbers else 0.0,
        *_surface(description),
    )


def _of_schema(tool: Tool) -> tuple[float, ...]:
    """How its parameters are written."""
    inner = [one for one in tool.properties.values() if isinstance(one, dict)]
    said = [one["description"] for one in inner if isinstance(one.get("description"), str)]
    surface = np.array([_surface(text) for text in said or [""]])
    return (
        len(tool.parameters),
        "required" in tool.parameters,
        len(tool.properties),
        len(tool.required),
        len(said),
        len({key for one in inner for key in one}),
        len({str(one.get("type")) for one in inner}),
        log1p(sum(map(len, said))),
        *surface.mean(axis=0),
    )


def features(tools: Sequence[Tool], groups: Sequence[Sequence[int]]) -> Floats:
    """One line for each tool of a registry; `groups` are the places of tools that can be confused.

    How the tool differs from the mean of the others of its group, in size and in sign, and where it stands;
    no difference for a tool that is in none.
    """
    n = len(tools)
    names = Counter(tool.name for tool in tools)
    alike = {place for group in groups for place in group}
    standing = np.array(
        [
            (
                names[tool.name] - 1,
                place in alike,
                place / max(1, n - 1),
                place == 0,
                place == n - 1,
                tool.name in CONTROL_TOOLS,
            )
            for place, tool in enumerate(tools)
        ],
        dtype=np.float64,
    )
    contrast = np.zeros((n, CONTRASTS))
    for group in groups:
        if len(group) > 1:
            at = list(group)
            own = np.array([_of_text(tools[i].name, tools[i].description) + _of_schema(tools[i]) for i in at])
            contrast[at] = own - (own.sum(axis=0) - own) / (len(at) - 1)
    found: Floats = np.hstack([contrast, np.sign(contrast.round(DIGITS)), standing.reshape(n, STANDING)])
    return found


# --- the model ----------------------------------------------------------------------------------------------


def right(examples: Sequence[Example]) -> int:
    """In how many registries the classifier chooses a right tool, by a model that never saw their group."""
    kept = [one for one in examples if len(one.features)]
    found = 0
    fold_of = folds([one.group for one in kept])
    for fold in range(FOLDS):
        held = [one for one, its in zip(kept, fold_of, strict=True) if its == fold]
        seen = [one for one, its in zip(kept, fold_of, strict=True) if its != fold and one.gold]
        if held:
            model = _Model(seen[:TRAINED_ON])
            found += sum(model.choice(one.features) in one.gold for one in held)
    return found


def folds(groups: Sequence[Hashable]) -> list[int]:
    """The fold of every example: whole groups, in an order drawn by SEED, each into the smallest fold."""
    sizes = Counter(groups)
    order = sorted(sizes, key=lambda one: hashlib.sha256(f"{SEED}/{one!r}".encode()).digest())
    filled = [0] * FOLDS
    fold_of: dict[Hashable, int] = {}
    for group in order:
        fold_of[group] = at = filled.index(min(filled))
        filled[at] += sizes[group]
    return [fold_of[group] for group in groups]


class _Model:
    """Weights that make the right tools of the examples likely."""

    def __init__(self, examples: Sequence[Example]) -> None:
        self._weights: Floats | None = None
        if not examples:
            return
        lines = np.vstack([one.features for one in examples])
        self._middle, spread = lines.mean(axis=0), lines.std(axis=0)
        self._spread = np.where(spread > 1e-9, spread, 1.0)
        lines = (lines - self._middle) / self._spread
        starts = np.cumsum([0, *(len(one.features) for one in examples[:-1])])
        chosen = [np.isin(np.arange(len(one.features)), [*one.gold]) / len(one.gold) for one in examples]
        wanted = np.concatenate(chosen)
        self._weights = _fit(lines, starts, wanted)

    def choice(self, lines: Floats) -> int:
        """The place of the tool with the highest score, of equals the first."""
        if self._weights is None:
            return 0
        scores = ((lines - self._middle) / self._spread) @ self._weights
        return int(np.argmax(scores.round(DIGITS)))


def _fit(lines: Floats, starts: Any, wanted: Floats) -> Floats:
    """Newton's method on the penalised likelihood of the wanted tools, steps halved until it grows."""
    sizes = np.diff([*starts, len(lines)])
    weights = np.zeros(lines.shape[1])
    value, chances = _likelihood(lines, starts, sizes, wanted, weights)
    for _ in range(STEPS):
        slope = _product(lines, wanted - chances) - RIDGE * weights
        weighted = lines * chances[:, None]
        means = np.add.reduceat(weighted, starts, axis=0)
        curve = _product(weighted, lines) - _product(means, means) + RIDGE * np.eye(len(weights))
        step = np.linalg.solve(curve, slope)
        while np.abs(step).max() > 1e-9:
            better, moved = _likelihood(lines, starts, sizes, wanted, weights + step)
            if better >= value:
                break
            step = step / 2
        else:
            return weights
        gained, value, chances, weights = better - value, better, moved, weights + step
        if gained < 1e-6:
            break
    return weights


def _likelihood(
    lines: Floats, starts: Any, sizes: Any, wanted: Floats, weights: Floats
) -> tuple[float, Floats]:
    scores = np.concatenate([part @ weights for part in _parts(lines)])
    scores = scores - np.repeat(np.maximum.reduceat(scores, starts), sizes)
    powers = np.exp(scores)
    totals = np.add.reduceat(powers, starts)
    chances = powers / np.repeat(totals, sizes)
    logs = scores - np.repeat(np.log(totals), sizes)
    return float(wanted @ logs - RIDGE / 2 * (weights @ weights)), chances


def _product(left: Floats, right: Floats) -> Floats:
    """`left.T @ right`, part by part."""
    found: Floats = sum(a.T @ b for a, b in zip(_parts(left), _parts(right), strict=True))  # type: ignore[assignment]
    return found


def _parts(lines: Floats) -> list[Floats]:
    return [lines[at : at + PART] for at in range(0, len(lines), PART)]
