"""Mixed: whether losses add up. The numbers are those of `stats.interactions`."""

from collections.abc import Iterable

from robustbench_tc import taxonomy
from robustbench_tc.io import numbers

from ..interactions import complete, interactions
from . import Given, Table

PACKS = ("mixed",)

_NOTE = (
    "Δ: loss of accuracy against the clean rows, over the samples that have the clean row, a row of each "
    "part and the mixed one. I = Δ of the mixture − the sum of the parts' Δ, with its exact interval and "
    "paired test; Holm's correction is over the pairs. Above 0 the mixture costs more than its parts do "
    "together."
)
_CELLS = "Accuracy over the samples that have a row in every cell of the design."


def tables(given: Given) -> Iterable[Table]:
    """Interactions, and the cells of a factorial design where the run holds one whole."""
    usable = given.outcomes.usable(given.allow_missing)
    found = interactions(given.outcomes, usable)
    if found:
        yield Table(
            name="mixed_interactions",
            title="Interactions of perturbations",
            columns=(
                "mixture",
                "n",
                "clean",
                "Δ of the parts",
                "sum",
                "Δ of the mixture",
                "I",
                "p",
                "p (Holm)",
            ),
            rows=tuple(
                (
                    " + ".join(one.parts),
                    one.n,
                    one.clean,
                    " ".join(numbers.number(loss) for loss in one.losses),
                    one.loss - one.interaction.value,
                    one.loss,
                    one.interaction,
                    None if one.interaction.p is None else numbers.p_value(one.interaction.p),
                    None if one.p_holm is None else numbers.p_value(one.p_holm),
                )
                for one in found
            ),
            note=_NOTE,
        )
    mixtures = [code for code in usable if taxonomy.parts(code)]
    parts = {part for code in mixtures for part in taxonomy.parts(code)}
    cells = tuple(code for code in usable if code in parts or code in mixtures)
    if parts and len(mixtures) == 2 ** len(parts) - len(parts) - 1:
        n, accuracy = complete(given.outcomes, cells)
        if n:
            yield Table(
                name="mixed_cells",
                title="Cells of the factorial design",
                columns=("cell", "n", "accuracy"),
                rows=tuple((" + ".join(taxonomy.parts(c) or (c,)), n, one) for c, one in accuracy.items()),
                note=_CELLS,
            )
