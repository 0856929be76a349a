"""Interactions: whether several perturbations at once cost more or less than the sum of each alone.

With Δ the loss of accuracy against the clean rows, I = Δ(all parts) − Σ Δ(each part), over the clean ids
whose rows of `clean`, of every part and of the mixed type were all answered: 0 where losses add up, above 0
where the mixture costs more than that. Per clean id it is a whole number over the repeats, so its
distribution under resampling and under swapped signs is known exactly.
"""

from collections.abc import Iterable, Sequence

import msgspec
import numpy as np

from robustbench_tc import taxonomy
from robustbench_tc.io import numbers

from ..intervals import Interval, combined, of_estimate, resampled_mean, shares
from ..outcomes import Outcomes
from ..significance import holm, paired_p
from . import Given, Table

PACKS = ("mixed",)


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
                    numbers.p_value(one.interaction.p),
                    None if one.p_holm is None else numbers.p_value(one.p_holm),
                )
                for one in found
            ),
            note="Δ: loss of accuracy against the clean rows, over the samples that have the clean row, a "
            "row of each part and the mixed one. I = Δ of the mixture − the sum of the parts' Δ, with its "
            "exact interval and paired test; Holm's correction is over the pairs. Above 0 the mixture costs "
            "more than its parts do together.",
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
                note="Accuracy over the samples that have a row in every cell of the design.",
            )


class Interaction(msgspec.Struct, frozen=True):
    """A mixed type beside its parts."""

    code: str
    parts: tuple[str, ...]
    n: int
    """Clean ids that have all the rows."""
    clean: float
    """Accuracy over them, as the next two."""
    losses: tuple[float, ...]
    """Δ of each part alone."""
    loss: float
    """Δ of the mixed type."""
    interaction: Interval
    """I, with the exact percentile bootstrap over clean ids (MOVER where cases have several turns); its p
    is that of the exact paired test."""
    p_holm: float | None
    """Of the pairs: p after Holm's correction over the pairs; None for mixtures of more."""


def interactions(outcomes: Outcomes, codes: Sequence[str]) -> tuple[Interaction, ...]:
    """Every mixed type of `codes` of which, and of whose parts, some clean id has all rows."""
    found = [
        one
        for code in codes
        if taxonomy.parts(code) and (one := _interaction(outcomes, code, taxonomy.parts(code))) is not None
    ]
    pairs = {one.code: one.interaction.p or 0.0 for one in found if len(one.parts) == 2}
    corrected = holm(pairs)
    return tuple(msgspec.structs.replace(one, p_holm=corrected.get(one.code)) for one in found)


def _interaction(outcomes: Outcomes, code: str, parts: tuple[str, ...]) -> Interaction | None:
    there, right = outcomes.whole((taxonomy.CLEAN, *parts, code))
    n = len(right)
    if not n:
        return None
    clean, alone, mixed = right[:, 0], right[:, 1:-1], right[:, -1]
    # Δ(mixed) − Σ Δ(part) = Σ part − (number of parts − 1) · clean − mixed
    per_id = alone.sum(axis=1) - (len(parts) - 1) * clean - mixed
    if outcomes.units:
        weights = (1.0 - len(parts), *(1.0 for _ in parts), -1.0)
        ones = outcomes.by_unit(np.full(n, outcomes.repeats), there)
        sides = [shares(outcomes.by_unit(column, there), ones) for column in right.T]
        interval = of_estimate(combined(sides, weights, float(len(parts))), n, "mover")
    else:
        interval = resampled_mean(per_id, outcomes.repeats)
    rows = n * outcomes.repeats
    return Interaction(
        code=code,
        parts=parts,
        n=n,
        clean=int(clean.sum()) / rows,
        losses=tuple(int((clean - alone[:, i]).sum()) / rows for i in range(len(parts))),
        loss=int((clean - mixed).sum()) / rows,
        interaction=msgspec.structs.replace(interval, p=paired_p(outcomes.by_unit(per_id, there))),
        p_holm=None,
    )


def complete(outcomes: Outcomes, codes: Sequence[str]) -> tuple[int, dict[str, Interval]]:
    """How many clean ids have a row of `clean` and of all of `codes`, and the accuracy of each over them."""
    cells = (taxonomy.CLEAN, *codes)
    there, counts = outcomes.whole(cells)
    n = len(counts)
    if not n:
        return 0, {}
    right = counts / outcomes.repeats
    rows = outcomes.by_unit(np.ones_like(right), there)
    found = shares(outcomes.by_unit(right, there).T, rows.T)
    return n, {code: of_estimate(found.at(i), n, "hull") for i, code in enumerate(cells)}
