"""Prints a table of docs/defences.md: `scripts/defence_table.py DATASET`, of the benchmark or a live one."""

import sys
import tempfile
from collections.abc import Iterator
from itertools import product
from pathlib import Path

from robustbench_tc import api, schema
from robustbench_tc.errors import UserError
from robustbench_tc.eval import inputs
from robustbench_tc.eval.defend import reference
from robustbench_tc.eval.live.score import read_scores
from robustbench_tc.live_types import type_code
from robustbench_tc.schema import KINDS

REFUSED, LOST = "transient_auth_error", "timeout_after_effect"
PASSING = tuple(kind for kind in KINDS if kind.startswith("transient_") and kind != REFUSED)
OTHER = tuple(kind for kind in KINDS if kind not in (*PASSING, REFUSED, LOST))
COLUMNS = {
    "clean": ("clean",),
    "errors that may pass": tuple(map(type_code, PASSING)),
    "refused": (type_code(REFUSED),),
    "lost answer": (type_code(LOST),),
    "other": tuple(map(type_code, OTHER)),
}
"""Column → types."""


def live_table(dataset: str) -> Iterator[str]:
    """What defences do to scripted agents in bundled worlds."""
    heads = ("agent", "defences", *COLUMNS, "effects repeated", "requests")
    yield f"| {' | '.join(heads)} |"
    yield "|---|---|" + "---:|" * (len(heads) - 2)
    for agent, words in product(("oracle", "gives-up", "blind-retrier"), ("", "hint", "retry")):
        with tempfile.TemporaryDirectory() as place:
            out = Path(place) / "run"
            played = api.evaluate(dataset, agent=agent, defend=words, out=out, concurrency=1)
            scores = read_scores(out)
        totals = played.folder.record.totals
        groups = [[one for one in scores if one.type_code in types] for types in COLUMNS.values()]
        cells = [f"{sum(bool(one.success) for one in group)} of {len(group)}" for group in groups]
        repeated = sum(one.repeated or 0 for one in scores if one.type_code == type_code(LOST))
        requests = f"{totals['requests'] / max(1, totals['episodes']):.2f}"
        yield f"| {' | '.join((agent, words or '–', *cells, str(repeated), requests))} |"


if len(sys.argv) != 2:
    sys.exit("usage: scripts/defence_table.py DATASET")
name = sys.argv[1]
try:
    if (Path(name) / schema.TASKS).is_dir():
        print(*live_table(name), sep="\n")  # noqa: T201
    else:
        print(reference.table(inputs.load_samples(name)))  # noqa: T201
except UserError as error:
    sys.exit(str(error))
