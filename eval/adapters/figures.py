"""The headline values of a harness's own table, from our statistics."""

from collections import defaultdict
from collections.abc import Iterable

from robustbench_tc import taxonomy
from robustbench_tc.eval.stats.values import METRICS, Counts, codes_of, from_counts

Row = tuple[str, str, int, bool]
"""Clean id, type, repeat, whether it is right."""


def figures(rows: Iterable[Row]) -> dict[str, float]:
    """The values of METRICS that these rows have; of a component that is not whole, those of its types."""
    rows = list(rows)
    clean = {(one, repeat): right for one, code, repeat, right in rows if code == taxonomy.CLEAN}
    counts: dict[str, Counts] = defaultdict(Counts)
    for one, code, repeat, right in rows:
        anchor = None if code == taxonomy.CLEAN else clean.get((one, repeat))
        paired = anchor is not None
        counts[code] += Counts(
            correct=right,
            n=1,
            pairs=paired,
            kept=bool(anchor) and right,
            lost=bool(anchor) and not right,
            gained=paired and not anchor and right,
        )
    order = (taxonomy.CLEAN, *(kind.code for kind in taxonomy.among(counts)))
    found = from_counts({code: counts[code] for code in order if code in counts}, set(counts))
    table = {name: value for name in METRICS if (value := found[name]) is not None}
    whole = {code for name in taxonomy.COMPONENTS if f"accuracy_{name}" in table for code in codes_of(name)}
    for code in found.types:
        line = found.lines[code]
        if code not in whole and line.accuracy is not None:
            table[f"accuracy_{code}"] = line.accuracy
            table |= {} if line.delta is None else {f"delta_{code}": line.delta}
    return table
