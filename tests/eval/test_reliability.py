"""The families of arXiv 2602.16666: each value by hand, what its formula has to give, and what is not kept."""

import itertools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from robustbench_tc import taxonomy
from robustbench_tc.eval.report import content, page
from robustbench_tc.eval.stats import reliability, runs
from robustbench_tc.eval.stats.intervals import Interval
from robustbench_tc.eval.stats.packs import Cell, Table
from robustbench_tc.eval.stats.screen import screen
from robustbench_tc.eval.stats.summary import repeated
from robustbench_tc.eval.record import open_run

from .live.test_live_stats import live, score
from .synthetic_runs import clean_ids, coin, counted, pairs, write_run


def told(run: runs.Run, **options: bool) -> tuple[Table, dict[str, Cell]]:
    """The table of a run, and its values by metric."""
    outcomes = counted(run)
    made = reliability.table(
        run, outcomes, repeated(outcomes), allow_missing=options.get("allow_missing", False)
    )
    return made, {str(symbol): value for _, symbol, value, *_ in made.rows}


def repeats(folder: Path, right: Callable[[int, int], bool], rows: int, times: int) -> runs.Run:
    """A run of clean rows that were each asked several times: `right` of the row and the repeat."""
    asked = [(f"rotbench__{row:03}", taxonomy.CLEAN) for row in range(rows)]
    answers = (right(row, repeat) for row in range(rows) for repeat in range(times))
    return runs.read(write_run(folder, lambda c, t: next(answers), asked, repeats=times))
