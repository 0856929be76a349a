# ruff: noqa: T201 - tables for docs/gate.md
"""How often the gate and the words of a headline are right, with the product's own functions.

    make gate-check                                      # the tables of docs/gate.md
    .venv/bin/python -m benchmarks.gate --trials 200

Simulated runs: n cases with a row of every core type. `discordance` is the share of pairs whose two answers
differ; a net loss takes right answers away. In half of the cases the rows of a component flip together. A
baseline has an answer of its own for every row, a clean row is one answer for all rows of its case.
"""

import itertools
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import get_args

import numpy as np
import typer
from numpy.typing import NDArray

from robustbench_tc import taxonomy
from robustbench_tc.eval.stats import evidence, gate
from robustbench_tc.eval.stats.evidence import Sides, drops
from robustbench_tc.eval.stats.values import codes_of
from robustbench_tc.io.numbers import percent

Bools = NDArray[np.bool_]
PAGE = Path("docs/gate.md")
SIZES = (20, 40, 60, 150, 300)
HELD = (10, 20, 60, 150, 300, 600)
SIDE = {True: "own clean rows", False: "a baseline"}


def before(n: int, rows: int, clean: float, own: bool, random: np.random.Generator) -> Bools:
    """[n, rows] right answers of the side that a run is held against."""
    case = np.repeat(random.random((n, 1)) < clean, rows, axis=1)
    return case if own else case ^ (random.random((n, rows)) < 0.15)


def flipped(first: Bools, discordance: float, loss: float, random: np.random.Generator) -> Bools:
    """Answers of which `discordance` differ from the first, `loss` of them net to the worse."""
    draw = random.random(first.shape)
    draw = np.where(random.random((len(first), 1)) < 0.5, draw[:, :1], draw)
    lost, gained, right = discordance + loss, max(0.0, discordance - loss), max(float(first.mean()), 1e-9)
    return np.where(first, draw >= lost / 2 / right, draw < gained / 2 / max(1 - right, 1e-9))


def sides(first: Bools, second: Bools) -> Sides:
    """Both sides by case."""
    sums = first.sum(axis=1), second.sum(axis=1), np.full(len(first), first.shape[1], np.int64)
    return Sides(*sums, int((2 * sums[0] > sums[2]).sum()))


def decided(
    n: int,
    discordance: float,
    losses: Mapping[str, float],
    random: np.random.Generator,
    *,
    own: bool = True,
    clean: float = 0.7,
    components: tuple[str, ...] = taxonomy.COMPONENTS,
) -> tuple[gate.Line, ...]:
    """The gate's lines; `losses`: the net loss of components, and of types that are lost whole."""
    whole, types = {}, {}
    base = before(n, 1, clean, own=True, random=random)
    for name in components:
        codes = codes_of(name)
        first = np.repeat(base, len(codes), axis=1) if own else before(n, len(codes), clean, own, random)
        second = flipped(first, discordance, losses.get(name, 0.0), random)
        for at, code in enumerate(codes):
            if code in losses:
                second[:, at] &= random.random(n) >= losses[code]
        whole[name] = sides(first, second)
        types[name] = {code: sides(first[:, [at]], second[:, [at]]) for at, code in enumerate(codes)}
    return gate.decide(whole, types, dict.fromkeys(whole, gate.MAX_DROP))


def worst(lines: tuple[gate.Line, ...]) -> gate.Outcome:
    """The gate's outcome: that of its worst line."""
    return min((line.outcome for line in lines), key=get_args(gate.Outcome).index)


def holds(n: int, clean: float, by_case: bool, trials: int, random: np.random.Generator) -> float:
    """How often a component `holds` that lost 30 % of its right answers: of rows, or of whole cases."""
    firsts = [before(n, 6, clean, own=True, random=random) for _ in range(trials)]
    rows = 1 if by_case else 6
    found = [sides(first, first & (random.random((n, rows)) >= 0.3)) for first in firsts]
    pairs = zip(found, drops(found), strict=True)
    return (
        sum(
            one.right >= evidence.RIGHT and drop.high <= evidence.HOLDS * one.accuracy_before
            for one, drop in pairs
        )
        / trials
    )


def unchanged(trials: int) -> Iterator[tuple[str, ...]]:
    """Agents that did not change: how often the gate fails and passes them."""
    yield "against", "cases", "discordance", "fail", "pass", "fail, one component", "pass, one component"
    for own, n, discordance in itertools.product((True, False), SIZES, (0.10, 0.18)):
        cells = []
        for components in (taxonomy.COMPONENTS, ("reward",)):
            random = np.random.default_rng([n, round(100 * discordance), own, len(components)])
            found = [
                worst(decided(n, discordance, {}, random, own=own, components=components))
                for _ in range(trials)
            ]
            cells += [percent(found.count(word) / trials) for word in ("fail", "pass")]
        yield SIDE[own], str(n), f"{discordance:.2f}", *cells


def lost(trials: int) -> Iterator[tuple[str, ...]]:
    """Ten points lost in one of four components, and a type of six lost whole: how often that line fails."""
    yield "against", "cases", "lost", "discordance 0.10", "discordance 0.18"
    ten_points = [(n, name, {name: 0.10}, 0.7) for n in (60, 150, 300) for name in ("observation", "reward")]
    for own, (n, name, losses, clean) in itertools.product(
        (True, False), [*ten_points, (199, "reward", {"CD": 1.0}, 0.6)]
    ):
        found = []
        for discordance in (0.10, 0.18):
            random = np.random.default_rng([n, round(100 * discordance), own, 1])
            lines = (decided(n, discordance, losses, random, own=own, clean=clean) for _ in range(trials))
            found.append(sum(line.name == name and line.outcome == "fail" for of in lines for line in of))
        said = f"10 points in {name}" if name in losses else f"CD whole, {percent(clean)} right before"
        yield SIDE[own], str(n), said, *(percent(n / trials) for n in found)


def held(trials: int) -> Iterator[tuple[str, ...]]:
    """A true loss of 30 % of the clean accuracy: how often the headline's word is `holds`."""
    yield "clean", "lost by", *(f"{n} cases" for n in HELD)
    for clean, by_case in itertools.product((0.15, 0.5, 1.0), (False, True)):
        random = np.random.default_rng([round(100 * clean), by_case])
        found = (holds(n, clean, by_case, trials, random) for n in HELD)
        yield percent(clean), "case" if by_case else "row", *map(percent, found)


def main(trials: int = 1_000) -> None:
    """Print the tables and write them into the page."""
    for name, made in {"unchanged": unchanged, "lost": lost, "held": held}.items():
        head, *rows = made(trials)
        table = "".join(f"| {' | '.join(line)} |\n" for line in [head, ("---",) * len(head), *rows])
        print(table, flush=True)
        page = PAGE.read_text("utf-8")  # again: it takes minutes
        page = re.sub(
            f"(<!-- {name} -->\n).*?(<!-- /{name} -->)", rf"\g<1>\n{table}\n\g<2>", page, flags=re.DOTALL
        )
        PAGE.write_text(page, "utf-8")


if __name__ == "__main__":
    typer.run(main)
