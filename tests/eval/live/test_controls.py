"""The strategies of docs/live-scores.md against the verdict of a careful human that stands there beside
each."""

import os
import re
from functools import cache

import pytest

from robustbench_tc.eval.live.agents import CONTROLS
from robustbench_tc.eval.live.score import LiveScore
from robustbench_tc.schema import KINDS, LiveRow

from .playing import scores
from .table import PAGE, rows

BEGIN, END = "<!-- strategies -->", "<!-- /strategies -->"
SOME = ("transient_timeout", "timeout_after_effect", "silent_no_op", "duplicate_effect")
PLAYED = KINDS if os.environ.get("RBTC_NIGHTLY") else SOME
ON = ("clean", "repair", "report", "turns that ask")
"""Columns of the table with a bar: rows by their label, and the turns that ask."""


def _strategies() -> dict[str, dict[str, str]]:
    between = PAGE.read_text("utf-8").split(BEGIN)[1].split(END)[0]
    lines = [[one.strip() for one in line.strip("| ").split("|")] for line in between.strip().splitlines()]
    return {line[0]: dict(zip(lines[0], line, strict=True)) for line in lines[2:]}


@cache
def _rows() -> list[LiveRow]:
    return rows(PLAYED)


def _share(found: list[LiveScore], on: str) -> float:
    """The share of right episodes on the rows of a label; of the tasks that ask, of answered turns."""
    if on == "turns that ask":
        verdicts = [one.answered is True for one in found if one.answered is not None]
    else:
        verdicts = [one.success is True for one in found if (one.label or "clean") == on]
    assert len(verdicts) >= 9
    return sum(verdicts) / len(verdicts)


def test_the_table_has_every_control() -> None:
    assert _strategies().keys() == CONTROLS.keys() | {"oracle"}
    turns = [turn for row in rows(SOME[:1]) if row.clean for turn in row.turns]
    assert sum(bool(turn.answers) for turn in turns) == 9


@pytest.mark.parametrize("strategy", ["oracle", *CONTROLS])
def test_a_strategy_gets_the_verdict_of_a_careful_human(strategy: str) -> None:
    found = scores(_rows(), strategy)
    stated = _strategies()[strategy]
    for on in ON:
        bar, share = stated[on], _share(found, on)
        print(f"{strategy} on {on}: {share:.3f} ({bar})")  # noqa: T201
        if match := re.fullmatch(r"(≤ )?([01](?:\.[0-9]+)?)", bar):
            assert share == pytest.approx(float(match[2])) or (match[1] and share <= float(match[2])), on
        else:
            assert bar == "–"
