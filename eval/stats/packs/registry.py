"""The pack `registry`: accuracy per type and dose, and what replies make of a tool that is not registered."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from robustbench_tc import taxonomy
from robustbench_tc.eval.score.ghosts import CALLED_GHOST, names_a_ghost

from ..confidence import shares
from ..intervals import Interval, of_estimate
from . import Cell, Given, Table

PACKS = ("registry",)

MAKES = ("the gold", "asks", "declines", "the ghost", "something else")
"""What a reply makes of a tool that is named and not registered."""


def tables(given: Given) -> Iterable[Table]:
    """Accuracy of every type, the floods as a dose series, and the shares of the ghost types."""
    codes = given.codes("registry")
    yield _accuracies(given, codes)
    if floods := [code for code in codes if code.startswith("flood_")]:
        yield _floods(given, floods)
    if ghosts := [code for code in codes if names_a_ghost(code)]:
        yield _ghosts(given, ghosts)


def _accuracies(given: Given, codes: Iterable[str]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for code in codes:
        if (found := given.summary.types.get(code)) is not None:
            name = taxonomy.get(code).display_name
            rows.append((code, name, found.accuracy.n, found.accuracy, found.delta_matched))
    return Table(
        name="registry_accuracy",
        title="Registry: accuracy per type",
        columns=("type", "name", "rows", "accuracy", "Δ matched"),
        rows=tuple(rows),
        note="Δ matched is the accuracy on the clean rows of the same samples minus that on the type; a "
        "positive one is a loss. In ghost_tool_3 no call is right, in prerequisite another than in the clean "
        "row.",
    )


def _floods(given: Given, codes: Iterable[str]) -> Table:
    """Dose by dose over the samples that have a row at every dose, with their clean rows as dose 0."""
    outcomes = given.outcomes
    doses = {code: int(code.removeprefix("flood_")) for code in codes}
    wanted = [taxonomy.CLEAN, *sorted(doses, key=lambda code: doses[code])]
    wanted = [code for code in wanted if code in outcomes.types]
    places = {code: outcomes.types.index(code) for code in wanted}
    everywhere = np.logical_and.reduce([outcomes.n[:, at] > 0 for at in places.values()])
    rows: list[tuple[Cell, ...]] = []
    for code in wanted if everywhere.any() else ():
        columns = outcomes.correct[:, places[code]], outcomes.n[:, places[code]]
        right, n = (outcomes.by_unit(column[everywhere], everywhere) for column in columns)
        value = of_estimate(shares(right, n), int(n.sum()), "hull")
        rows.append((code, doses.get(code, 0), int(n.sum()), value))
    return Table(
        name="registry_floods",
        title="Registry: accuracy per number of tools that entered",
        columns=("type", "tools entered", "rows", "accuracy"),
        rows=tuple(rows),
        note="Over the samples that have a row at every dose of the run; 0 is their clean rows.",
    )


def _ghosts(given: Given, codes: Iterable[str]) -> Table:
    rows = tuple((code, *_shares(given, code)) for code in codes)
    return Table(
        name="registry_ghosts",
        title="Registry: what is made of a tool that is named and not registered",
        columns=("type", "rows", *MAKES),
        rows=rows,
        note="Shares of the replies. The gold is right in ghost_tool_1 and ghost_tool_2, asking and "
        "declining in ghost_tool_2 and ghost_tool_3; declining includes answers in words. Calling the ghost "
        "has the error mode ghost; something else is every other wrong reply.",
    )


def _shares(given: Given, code: str) -> Iterator[int | Interval]:
    """The number of replies with a verdict, then the share of each of MAKES with its interval by clean id."""
    made: Mapping[str, dict[str, int]] = defaultdict(lambda: dict.fromkeys(MAKES, 0))
    unit_of = given.outcomes.unit_of()
    names = ("clean_id", "type_code", "correct", "flags")
    for clean_id, kind, correct, flags in zip(*(given.run.rows[n].tolist() for n in names), strict=True):
        if kind == code and clean_id in unit_of and correct >= 0:
            made[unit_of[clean_id]][_made(bool(correct), set(flags.split(",")))] += 1
    n = np.array([sum(one.values()) for one in made.values()])
    yield int(n.sum())
    for what in MAKES:
        found = np.array([one[what] for one in made.values()])
        yield of_estimate(shares(found, n), int(n.sum()), "hull")


def _made(correct: bool, flags: set[str]) -> str:
    if not correct:
        return "the ghost" if CALLED_GHOST in flags else "something else"
    if "called" in flags:
        return "the gold"
    return "asks" if "asked" in flags else "declines"
