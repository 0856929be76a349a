"""The headline values of a harness's own table, from our statistics."""

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from robustbench_tc import taxonomy
from robustbench_tc.eval.stats.summary import from_counts
from robustbench_tc.eval.stats.values import Counts, codes_of


class Row(NamedTuple):
    """A verdict."""

    clean_id: str
    type_code: str
    repeat: int
    right: bool
    met: bool = True
    """Of a live row: it met its fault, or has none."""


def figures(rows: Iterable[Row]) -> dict[str, float]:
    """The values of `stats.values.METRICS` that these rows have; of a component that is not whole, and of
    faults in live rows, those of single types."""
    rows = list(rows)
    clean = {(row.clean_id, row.repeat): row.right for row in rows if row.type_code == taxonomy.CLEAN}
    counts: dict[str, Counts] = defaultdict(Counts)
    for row in rows:
        anchor = clean.get((row.clean_id, row.repeat))
        paired = row.type_code != taxonomy.CLEAN and anchor is not None and row.met
        counts[row.type_code] += Counts(
            correct=row.right,
            n=1,
            pairs=paired,
            kept=paired and bool(anchor) and row.right,
            lost=paired and bool(anchor) and not row.right,
            gained=paired and not anchor and row.right,
        )
    found = from_counts({code: msgspec.structs.astuple(one) for code, one in counts.items()})
    table = {name: value.value for name, value in found.values.items() if value is not None}
    whole = {code for name in taxonomy.COMPONENTS if f"accuracy_{name}" in table for code in codes_of(name)}
    for code in found.types.keys() - whole:
        for name in ("accuracy", "delta", "delta_matched"):
            value = getattr(found.types[code], name)
            table |= {} if value is None else {f"{name}_{code}": value.value}
    return table
