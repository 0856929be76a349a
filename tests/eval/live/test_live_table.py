"""Scripted agents on the bundled live dataset: the bar of the verifying agent, and the tables of the docs."""

import json
import re
from functools import cache

import pytest

from robustbench_tc.eval.live.score import LiveScore
from robustbench_tc.eval.stats.packs.live import lines
from robustbench_tc.schema import LiveRow
from robustbench_tc.worlds import fit, handle
from robustbench_tc.worlds.find import find

from ...conftest import nightly
from .playing import scores
from .table import BEGIN, END, PAGE, cell, rows, tables

KINDS = ("timeout_after_effect", "duplicate_effect")


@cache
def _rows() -> list[LiveRow]:
    return rows(KINDS)


@cache
def _scores(agent: str) -> dict[str, LiveScore]:
    return {score.id: score for score in scores(_rows(), agent)}


def _repeat_does_harm(row: LiveRow) -> bool:
    """Whether the call that meets the fault, made a second time, changes the world again, or is refused: an
    agent that repeats it blindly has paid twice, or takes what is done for failed and says so."""
    assert row.fault is not None
    calls = [call for turn in row.golden_calls for call in turn]
    of_tool = [number for number, call in enumerate(calls) if call.name == row.fault.at.tool]
    at = of_tool[row.fault.at.nth - 1]
    world = handle.load_file(find(row.world).file).WORLD(**row.initial_state)
    for call in calls[: at + 1]:
        world.call(call.name, call.parameters)
    before = json.dumps(world.state())
    again = world.call(calls[at].name, calls[at].parameters)
    return json.dumps(world.state()) != before or fit.failed(again)


def test_verifying_beats_repeating_blindly_on_exactly_the_repair_rows_of_writes_that_are_not_idempotent() -> (
    None
):
    lost = [row for row in _rows() if row.type_code == "live_timeout_after_effect"]
    unsafe = set()
    for row in lost:
        assert row.fault is not None and row.label in ("repair", "report")
        if row.label == "repair" and _repeat_does_harm(row):
            unsafe.add(row.id)
    better = {
        row.id
        for row in lost
        if _scores("verifying-retrier")[row.id].success and not _scores("blind-retrier")[row.id].success
    }
    assert better == unsafe and 0 < len(unsafe) < len(lost)
    blind = [_scores("blind-retrier")[one] for one in unsafe]
    assert all((one.repeated and one.blind_repeats) or one.told == "hedged" for one in blind)


def test_an_effect_that_was_doubled_is_undone_on_exactly_the_rows_where_that_can_be_done() -> None:
    doubled = [row for row in _rows() if row.type_code == "live_duplicate_effect"]
    repaired = {row.id for row in doubled if _scores("repairs-duplicate")[row.id].success}
    assert repaired == {row.id for row in doubled if row.label == "repair"}
    assert {row.label for row in doubled} == {"repair", "report"}


def _page() -> list[list[str]]:
    between = PAGE.read_text("utf-8").split(BEGIN)[1].split(END)[0]
    return [
        [one.strip() for one in line.strip("| ").split("|")] for line in between.splitlines() if "|" in line
    ]


@pytest.mark.parametrize("agent", ["blind-retrier", "verifying-retrier", "repairs-duplicate"])
def test_the_page_has_what_the_command_makes(agent: str) -> None:
    page = _page()
    column = page[0].index(agent)
    shown = {line[0]: (line[1], line[column]) for line in page[2:] if line[0] in KINDS}
    made = {
        line.name: (str(line.n), cell(line.delta))
        for line in lines(_scores(agent).values())
        if line.name in KINDS
    }
    assert made.keys() == set(KINDS) and shown == made


@nightly
def test_the_whole_table_is_what_the_command_makes() -> None:
    between = PAGE.read_text("utf-8").split(BEGIN)[1].split(END)[0]
    assert between.strip() == tables(rows()).strip()


def test_every_field_of_the_scores_is_explained_on_the_page() -> None:
    named = set(re.findall(r"`(\w+)`", PAGE.read_text("utf-8")))
    of_the_row = {
        "id",
        "clean_id",
        "type_code",
        "world",
        "model",
        "mode",
        "repeat",
        "position",
        "label",
        "ended",
    }
    assert set(LiveScore.__struct_fields__) - of_the_row <= named
