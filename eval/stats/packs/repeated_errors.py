"""How often an agent tries again where an error does not go away: the types that count their tries."""

from collections.abc import Iterable, Iterator

import numpy as np

from robustbench_tc import taxonomy

from . import Cell, Given, Table

PACKS = ("severity",)

_NO_CALL = ("empty", "omitted")
"""Error modes of a scored reply that calls nothing."""


def tables(given: Given) -> Iterable[Table]:
    """One table, where the run has rows of such types."""
    codes = [code for code in given.codes("severity") if "times" in taxonomy.get(code).traits]
    rows = [row for code in codes for row in _row(given, code)]
    if not rows:
        return []
    return [
        Table(
            name="repeated_errors",
            title="Tries where the error does not go away",
            columns=(
                "type",
                "n",
                "met the error",
                "calls that met it, mean",
                "calls after the last",
                "accuracy",
            ),
            rows=tuple(rows),
            note="Calls that met the error are counted over the rows whose first reply called a tool, and so "
            "is the share that still calls after the last error. No accuracy is shown where nine calls fail.",
        )
    ]


def _row(given: Given, code: str) -> Iterator[tuple[Cell, ...]]:
    rows = given.run.rows
    column = given.outcomes.types.index(code)
    there = dict(zip(given.outcomes.clean_ids, (given.outcomes.n[:, column] > 0).tolist(), strict=True))
    places = [
        index
        for index in np.flatnonzero((rows["type_code"] == code) & (rows["correct"] >= 0)).tolist()
        if there.get(rows["clean_id"][index]) and rows["attempts"][index] is not None
    ]
    tries = [rows["attempts"][index] for index in places]
    met = [index for index in places if rows["attempts"][index]]
    times = taxonomy.get(code).answered_calls
    calling = sum(
        rows["attempts"][index] >= times and rows["error_mode"][index] not in _NO_CALL for index in met
    )
    found = given.summary.types.get(code)
    if places:
        yield (
            code,
            len(places),
            len(met),
            sum(tries) / len(met) if met else None,
            calling / len(met) if met else None,
            None if found is None else found.accuracy,
        )
