"""Where a model loses: Δ matched with its exact paired test, by source and type.

The test is that of the flips (`significance.paired_p`, clean_ids as units), corrected by Holm within a table.
"""

from collections.abc import Callable, Mapping

import msgspec

from robustbench_tc import taxonomy

from .runs import Outcomes
from .significance import holm_by, paired_p
from .values import pack_of

LEVEL = 0.05
"""A corrected p below it is called significant."""


class Loss(msgspec.Struct, frozen=True):
    """Anchored pairs of some rows together."""

    pairs: int
    lost: int
    gained: int
    delta_matched: float
    """(lost − gained) / pairs: positive is a loss."""
    p: float
    """Exact paired test of "as many lost as gained"."""
    p_holm: float
    """The same, corrected for every other cell of the table (types beyond the core: of their pack in it)."""

    @property
    def significant(self) -> bool:
        """A loss or a gain that the corrected test tells from none."""
        return self.p_holm < LEVEL


def by_source(
    outcomes: Outcomes, sources: Mapping[str, str], *, allow_missing: bool = False
) -> dict[str, dict[str, Loss]]:
    """Source → type code → its pairs. `sources`: clean_id → source; of an id that is not there the prefix is
    the source. A cell with a missing row is left out."""
    tables: dict[str, dict[str, tuple[int, int, int, float]]] = {}
    source_of = {one: sources.get(one) or one.partition("__")[0] for one in outcomes.clean_ids}
    for source in sorted(set(source_of.values())):
        part = outcomes.without({one for one in outcomes.clean_ids if source_of[one] != source})
        usable = part.usable(allow_missing)
        if taxonomy.CLEAN in usable:
            tables[source] = {
                code: (found.pairs, found.lost, found.gained, paired_p(part.matched([code])[0]))
                for code, found in part.counts().items()
                if code in usable and found.pairs
            }
    flat = corrected(
        {f"{source}\n{code}": one for source, row in tables.items() for code, one in row.items()},
        lambda cell: pack_of(cell.partition("\n")[2]),
    )
    return {
        source: {code: flat[f"{source}\n{code}"] for code in row} for source, row in tables.items() if row
    }


def corrected(
    found: Mapping[str, tuple[int, int, int, float]], family: Callable[[str], str] = lambda name: ""
) -> dict[str, Loss]:
    """Cells of a table, (pairs, lost, gained, p) by name, with p corrected by Holm within each family."""
    p_holm = holm_by(family, {name: p for name, (*_, p) in found.items()})
    return {
        name: Loss(pairs, lost, gained, (lost - gained) / pairs, p, p_holm[name])
        for name, (pairs, lost, gained, p) in found.items()
    }
