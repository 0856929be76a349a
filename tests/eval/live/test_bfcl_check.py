"""Upstream's verdict on an episode, and the oracle vectors of it."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from robustbench_tc.builders.live import bfcl
from robustbench_tc.eval.live import bfcl_check, stage, success
from robustbench_tc.eval.live.bfcl_check import PlayedTurn, upstream_error
from robustbench_tc.eval.live.replay import Replay
from robustbench_tc.schema import Episode, Reply, Step
from robustbench_tc.worlds import find, handle

from ...conftest import nightly
from ...vectors import LIVE_CLASSES, MULTI_TURN, kind_of, run_vectors
from ...vectors.bfcl_multi_turn import CRASH, MultiTurn
from ...vectors.rows import AGREED, UNLISTED
from ...worlds.bfcl_replays import bfcl_data
from . import purses

GOLD = [
    PlayedTurn([["one", "two"]], {"A": {"n": 1}}),
    PlayedTurn([], {"A": {"n": 1}}),
    PlayedTurn([["two"]], {"A": {"n": 2}}),
]


def played(*turns: tuple[list[list[str]], Any]) -> list[PlayedTurn]:
    return [PlayedTurn(steps, {"A": {"n": n}}) for steps, n in turns]


@pytest.mark.parametrize(
    ("model", "error"),
    [
        (played(([["two", "more"], ["one"]], 1), ([], 1), ([["x"]], 2)), None),
        (played(([["one", "two"]], 1.0), ([["y"]], 9), ([["x"]], 2)), None),
        (played(([["one", "two"]], 1), ([], 1)), bfcl_check.FEWER_TURNS),
        (played(([], 1), ([], 1), ([], 2)), bfcl_check.EMPTY_TURN),
        (played(([[]], 1), ([], 1), ([], 2)), bfcl_check.EMPTY_TURN),
        (played(([[], []], 1), ([], 1), ([], 2)), bfcl_check.RESPONSE),
        (played(([["one", "two"]], 2), ([], 2), ([["two"]], 2)), bfcl_check.STATE),
        (played(([["one", "one"]], 1), ([["two"]], 1), ([["two"]], 2)), bfcl_check.RESPONSE),
        (played(([["one", "two"]], 1), ([], 1), ([["two"]], "2")), bfcl_check.STATE),
    ],
)
def test_the_first_turn_that_fails_decides(model: list[PlayedTurn], error: str | None) -> None:
    assert upstream_error(model, GOLD) == error


def test_a_result_that_gold_has_twice_is_needed_twice() -> None:
    gold = played(([["one", "one"]], 1))
    assert upstream_error(played(([["one"]], 1)), gold) == bfcl_check.RESPONSE
    assert upstream_error(played(([["one"], ["one"]], 1)), gold) is None


def test_keys_that_were_numbers_are_compared_as_numbers() -> None:
    ours = [PlayedTurn([["x"]], {"A": {"comments": {"1.0": ["c"]}}})]
    gold = [PlayedTurn([["x"]], {"A": {"comments": {"1": ["c"]}}})]
    assert upstream_error(ours, gold) is None
    other = [PlayedTurn([["x"]], {"A": {"comments": {"2": ["c"]}}})]
    assert upstream_error(other, gold) is not None


def test_an_episode_is_judged_by_the_state_when_each_turn_ends() -> None:
    """What the world is in a turn in which gold calls nothing does not count."""
    row = msgspec.structs.replace(purses.rows()[0], world=find.BFCL)
    said = ((0, "ab"), (0, "c"), (0, ""), (1, ""), (2, "d"), (2, ""))
    replies = tuple(
        Reply(turn=n, steps=tuple(Step(name="f", arguments={}, text=t) for t in ts)) for n, ts in said
    )
    episode = Episode(
        id=row.id, clean_id=row.clean_id, type_code="clean", world=row.world, model="m", mode="fc",
        row_hash="", ended="done", replies=replies,
    )  # fmt: skip
    states = [handle.Snapshot({"classes": {"n": n}, "cwd": f"/{n}"}) for n in range(6)]
    calls = [
        stage.Played(turn, Step(name="f", arguments={}, text=text), states[0], states[0], True)
        for turn, text in ((0, "c"), (0, "a"), (2, "d"))
    ]
    gold, turns = (
        stage.Gold(tuple(calls), (states[3], states[5], states[4])),
        (states[3], states[3], states[4]),
    )
    replay = Replay(row, episode, states[0], (), turns, gold, None, (), ())
    assert success.upstream(replay) is True
    assert success.upstream(replay._replace(turns=(*turns[:2], states[5]))) is False
    assert success.upstream(replay._replace(turns=turns[:2])) is False
    more = calls[2]._replace(step=Step(name="f", arguments={}, text="e"))
    assert success.upstream(replay._replace(gold=gold._replace(calls=(*calls, more)))) is False


@pytest.fixture
def check(bfcl_python: str) -> Iterator[MultiTurn]:
    tasks = bfcl.tasks_in(bfcl_data(bfcl_python))
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


@nightly  # thousands of worlds
def test_every_shared_row_agrees_or_is_listed(shared: Path, check: MultiTurn, tmp_path: Path) -> None:
    (tmp_path / "bfcl_multi_turn.jsonl").symlink_to(shared / "vectors" / "bfcl_multi_turn.jsonl")
    (found,) = run_vectors(tmp_path, {MULTI_TURN: check})
    assert found.unlisted == ()
    assert found.outcomes == {AGREED: 3040, CRASH: 48}


def test_the_page_has_the_closed_list() -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "live-data.md").read_text("utf-8")
    page = page.partition("## BFCL's multi-turn tasks")[2]
    listed = page.partition("| class | rows | what |")[2].partition("\n\n")[0]
    assert {MULTI_TURN: tuple(re.findall(r"^\| `(\w+)`", listed, re.MULTILINE))} == LIVE_CLASSES
    assert set(re.findall(r"`(gold_\w+)`", page)) == {*bfcl.DOUBTFUL, bfcl.HELD_OUT}


def test_without_the_world_the_rows_are_counted_as_not_checked(tmp_path: Path) -> None:
    (tmp_path / "bfcl_multi_turn_more.jsonl").write_text('{"id": "x"}\n')
    (found,) = run_vectors(tmp_path)
    assert (found.rows, found.not_checked) == (1, 1)
    assert kind_of({}, "bfcl_multi_turn_more.jsonl") == MULTI_TURN
