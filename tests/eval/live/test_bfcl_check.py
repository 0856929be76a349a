"""Upstream's verdict on an episode, and the oracle vectors of it."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from robustbench_tc.builders.live import bfcl
from robustbench_tc.eval.live import bfcl_check
from robustbench_tc.eval.live.bfcl_check import PlayedTurn, Verdict, gold_turns, turns_of, upstream_verdict
from robustbench_tc.schema import Reply, Step
from robustbench_tc.worlds import find

from ...vectors import LIVE_CLASSES, MULTI_TURN, kind_of, run_vectors
from ...vectors.bfcl_multi_turn import CRASH, MultiTurn
from ...vectors.rows import AGREED, UNLISTED
from ...worlds.bfcl_replays import LONG

GOLD = [
    PlayedTurn([["one", "two"]], {"A": {"n": 1}}),
    PlayedTurn([], {"A": {"n": 1}}),
    PlayedTurn([["two"]], {"A": {"n": 2}}),
]


def played(*turns: tuple[list[list[str]], Any]) -> list[PlayedTurn]:
    return [PlayedTurn(steps, {"A": {"n": n}}) for steps, n in turns]


@pytest.mark.parametrize(
    ("model", "verdict"),
    [
        (played(([["two", "more"], ["one"]], 1), ([], 1), ([["x"]], 2)), Verdict(True)),
        (played(([["one", "two"]], 1.0), ([["y"]], 9), ([["x"]], 2)), Verdict(True)),
        (played(([["one", "two"]], 1), ([], 1)), Verdict(False, bfcl_check.FEWER_TURNS)),
        (played(([], 1), ([], 1), ([], 2)), Verdict(False, bfcl_check.EMPTY_TURN)),
        (played(([[]], 1), ([], 1), ([], 2)), Verdict(False, bfcl_check.EMPTY_TURN)),
        (played(([[], []], 1), ([], 1), ([], 2)), Verdict(False, bfcl_check.RESPONSE)),
        (played(([["one", "two"]], 2), ([], 2), ([["two"]], 2)), Verdict(False, bfcl_check.STATE)),
        (played(([["one", "one"]], 1), ([["two"]], 1), ([["two"]], 2)), Verdict(False, bfcl_check.RESPONSE)),
        (played(([["one", "two"]], 1), ([], 1), ([["two"]], "2")), Verdict(False, bfcl_check.STATE)),
    ],
)
def test_the_first_turn_that_fails_decides(model: list[PlayedTurn], verdict: Verdict) -> None:
    assert upstream_verdict(model, GOLD) == verdict


def test_a_result_that_gold_has_twice_is_needed_twice() -> None:
    gold = played(([["one", "one"]], 1))
    assert upstream_verdict(played(([["one"]], 1)), gold).error_type == bfcl_check.RESPONSE
    assert upstream_verdict(played(([["one"], ["one"]], 1)), gold).valid


def test_keys_that_were_numbers_are_compared_as_numbers() -> None:
    ours = [PlayedTurn([["x"]], {"A": {"comments": {"1.0": ["c"]}}})]
    gold = [PlayedTurn([["x"]], {"A": {"comments": {"1": ["c"]}}})]
    assert upstream_verdict(ours, gold).valid
    other = [PlayedTurn([["x"]], {"A": {"comments": {"2": ["c"]}}})]
    assert not upstream_verdict(other, gold).valid


def test_an_episode_becomes_turns_with_the_state_when_each_ends() -> None:
    def reply(turn: int, *texts: str) -> Reply:
        return Reply(turn=turn, steps=tuple(Step(name="f", arguments={}, text=text) for text in texts))

    replies = [reply(0, "a", "b"), reply(0, "c"), reply(0), reply(1), reply(2, "d"), reply(2)]
    states = [{"classes": {"n": n}, "cwd": "/"} for n in range(5)]
    found = turns_of(replies, states[1:], states[0])
    assert found == [
        PlayedTurn([["a", "b"], ["c"]], {"n": 3}),
        PlayedTurn([], {"n": 3}),
        PlayedTurn([["d"]], {"n": 4}),
    ]
    assert turns_of([], [], states[0]) == []
    assert gold_turns([["a"], []], states[:2]) == [PlayedTurn([["a"]], {"n": 0}), PlayedTurn([], {"n": 1})]


@pytest.fixture
def check(bfcl_python: str) -> Iterator[MultiTurn]:
    tasks = bfcl.tasks_in(find.bfcl_data(bfcl_python))
    with MultiTurn(tasks, find.find(find.BFCL, python=bfcl_python)) as made:
        yield made


def vectors(shared: Path) -> list[dict[str, Any]]:
    path = shared / "vectors" / "bfcl_multi_turn.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_rows_agree_and_each_column_can_disagree(shared: Path, check: MultiTurn) -> None:
    rows = vectors(shared)
    assert {check(row) for row in rows[::200]} <= {AGREED, CRASH}
    row = next(row for row in rows if row["upstream_valid"] and row["steps"][0])
    assert check({**row, "upstream_valid": False, "upstream_error_type": bfcl_check.STATE}) == UNLISTED
    assert check({**row, "state_sha": "0" * 64}) == UNLISTED
    wrong = next(row for row in rows if row["upstream_error_type"] == bfcl_check.STATE)
    assert check({**wrong, "upstream_error_type": bfcl_check.RESPONSE}) == UNLISTED
    cut = next(row for row in rows if row["crash"] and row["steps"] == [])
    assert (check(cut), check({**row, "crash": "x"})) == (CRASH, UNLISTED)


@LONG
def test_every_shared_row_agrees_or_is_listed(shared: Path, check: MultiTurn, tmp_path: Path) -> None:
    (tmp_path / "bfcl_multi_turn.jsonl").symlink_to(shared / "vectors" / "bfcl_multi_turn.jsonl")
    (found,) = run_vectors(tmp_path, {MULTI_TURN: check})
    assert found.unlisted == ()
    assert found.outcomes == {AGREED: 3040, CRASH: 48}


def test_the_page_has_the_closed_list() -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "live-bfcl.md").read_text("utf-8")
    listed = page.partition("| class | rows | what |")[2].partition("\n## ")[0]
    assert {MULTI_TURN: tuple(re.findall(r"^\| `(\w+)`", listed, re.MULTILINE))} == LIVE_CLASSES
    assert set(re.findall(r"`(gold_\w+)`", page)) == {*bfcl.DOUBTFUL, bfcl.HELD_OUT}


def test_without_the_world_the_rows_are_counted_as_not_checked(tmp_path: Path) -> None:
    (tmp_path / "bfcl_multi_turn_more.jsonl").write_text('{"id": "x"}\n')
    (found,) = run_vectors(tmp_path)
    assert (found.rows, found.not_checked) == (1, 1)
    assert kind_of({}, "bfcl_multi_turn_more.jsonl") == MULTI_TURN
