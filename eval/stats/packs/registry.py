"""The pack `registry`: accuracy per type and dose, and what replies make of a tool that is not registered."""

from collections.abc import Iterable, Iterator
from itertools import compress

from robustbench_tc import taxonomy
from robustbench_tc.eval.score.ghosts import CALLED_GHOST, names_a_ghost

from ..intervals import share_of
from . import Cell, Given, Table
from .mixed import complete

PACKS = ("registry",)

MAKES = ("the gold", "asks", "declines", "the ghost", "something else")
"""What a reply makes of a tool that is named and not registered."""


def tables(given: Given) -> Iterable[Table]:
    """Accuracy of every type, the floods as a dose series, and the shares of the ghost types."""
    codes = given.codes("registry")
    found = given.summary.types
    yield Table(
        name="registry_accuracy",
        title="Registry: accuracy per type",
        columns=("type", "name", "rows", "accuracy", "Δ matched"),
        rows=tuple(
            (code, taxonomy.get(code).display_name, one.accuracy.n, one.accuracy, one.delta_matched)
            for code in codes
            if (one := found.get(code)) is not None
        ),
        note="Δ matched is the accuracy on the clean rows of the same samples minus that on the type; a "
        "positive one is a loss. In ghost_tool_3 no call is right, in prerequisite another than in the clean "
        "row.",
    )
    if floods := [code for code in codes if code.startswith("flood_")]:
        doses = {code: int(code.removeprefix("flood_")) for code in floods}
        _, at_doses = complete(given.outcomes, sorted(doses, key=doses.__getitem__))
        repeats = given.outcomes.repeats
        yield Table(
            name="registry_floods",
            title="Registry: accuracy per number of tools that entered",
            columns=("type", "tools entered", "rows", "accuracy"),
            rows=tuple((code, doses.get(code, 0), one.n * repeats, one) for code, one in at_doses.items()),
            note="Over the samples that have a row at every dose of the run; 0 is their clean rows.",
        )
    if ghosts := [code for code in codes if names_a_ghost(code)]:
        yield Table(
            name="registry_ghosts",
            title="Registry: what is made of a tool that is named and not registered",
            columns=("type", "rows", *MAKES),
            rows=tuple((code, *_made(given, code)) for code in ghosts),
            note="Shares of the replies. The gold is right in ghost_tool_1 and ghost_tool_2, asking and "
            "declining in ghost_tool_2 and ghost_tool_3; declining includes answers in words. Calling the "
            "ghost has the error mode ghost; something else is every other wrong reply.",
        )


def _made(given: Given, code: str) -> Iterator[Cell]:
    """The number of replies with a verdict, then the share of each of MAKES with its interval by clean id."""
    made = []
    for one in given.answers(code):
        signs = (
            one.right and "called" in one.flags,
            "asked" in one.flags,
            one.flags & {"refused", "answered"},
            CALLED_GHOST in one.flags,
            True,
        )
        made.append((one.unit, next(compress(MAKES, signs))))
    yield len(made)
    yield from (share_of([(unit, what == makes) for unit, what in made]) for makes in MAKES)
