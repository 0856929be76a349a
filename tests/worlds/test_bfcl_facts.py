"""The table of docs/live-bfcl.md is what replays give."""

from pathlib import Path

import pytest

from robustbench_tc.builders.live import bfcl

from .bfcl_facts import VERDICT, Counts, counted, lines
from .bfcl_replays import LONG

PAGE = Path(__file__).resolve().parents[2] / "docs" / "live-bfcl.md"


@LONG
@pytest.mark.parametrize("category", bfcl.CATEGORIES)
def test_what_omission_and_repetition_change(category: str, shared: Path, bfcl_python: str) -> None:
    rows = bfcl.tasks(shared / "sources", [category])
    found = counted(bfcl_python, rows)
    calls = sum(len(turn) for row in rows for turn in row.golden_calls)
    assert set(lines(category, calls, found)) <= set(PAGE.read_text("utf-8").splitlines())
    if category == "multi_turn_base":
        assert found == {
            "public attributes": Counts(593, 176, 190),
            "+ working directory": Counts(604, 176, 190),
            "+ private attributes": Counts(612, 178, 190),
            VERDICT: Counts(1141, 190, 190),
        }
