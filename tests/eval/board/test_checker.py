"""Honest runs through the checker."""

from robustbench_tc.eval.board import checker
from robustbench_tc.eval.board.datasets import Datasets

from . import made
from .conftest import RunOf


def test_an_honest_run_is_scored_the_same_here_and_in_a_child(data: Datasets, run_of: RunOf) -> None:
    folder = run_of("gives-up-on-error")
    name = made.name_of(folder)
    entry = checker.check_run(folder, name, data)
    assert entry.core is not None and entry.core.counts["clean"][1] == 10
    assert checker.encode(checker.checked(folder, name, data)) == checker.encode(entry)
    assert checker.decode(checker.encode(entry)) == entry
    assert "perturbed" in checker.table(entry)
