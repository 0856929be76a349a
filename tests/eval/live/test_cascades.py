"""Agents before several faults: verdicts that are known, what each fault cost, and the table beside it."""

import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace

from robustbench_tc import api
from robustbench_tc.eval.inputs import load_live
from robustbench_tc.eval.live.score import LiveScore, score_episodes
from robustbench_tc.eval.stats.packs import Table
from robustbench_tc.eval.stats.packs.live import lines
from robustbench_tc.live_types import CASCADES, type_code
from robustbench_tc.schema import LiveRow
from robustbench_tc.worlds.host import Worlds

from .playing import episodes, scores
from .test_live_stats import NO_OP, live, score, screen_of

EVERY = 5
"""Every so many tasks are played."""


@pytest.fixture(scope="module")
def rows(cascades: Path) -> list[LiveRow]:
    found = load_live(str(cascades)).rows
    tasks = sorted({row.clean_id for row in found if row.type_code == type_code("cascade_abc")})[::EVERY]
    return [row for row in found if row.clean_id in tasks]


def _right(found: list[LiveScore]) -> dict[str, set[str]]:
    """Which faults → the tasks that ended right."""
    letters = {"clean": "", **{type_code(name): of for name, of in CASCADES.items()}}
    return {
        of: {one.clean_id for one in found if one.success and one.type_code == code}
        for code, of in letters.items()
    }


def test_each_agent_has_its_known_verdict(rows: list[LiveRow]) -> None:
    tasks = {row.clean_id for row in rows}
    twice = {  # a write that is made twice by whoever repeats it
        row.clean_id
        for row in rows
        for tool in row.tools
        if row.type_code == "live_cascade_ab" and row.faults[0].at.tool == tool.name and not tool.idempotent
    }
    assert twice
    assert set(map(frozenset, _right(scores(rows, "truthful")).values())) == {frozenset(tasks)}
    once = _right(scores(rows, "verifies-once"))
    assert once["a"] == once["b"] == tasks and once["ab"] == once["abc"] == set()
    gives_up = _right(scores(rows, "gives-up"))
    assert gives_up.pop("") == tasks and not any(gives_up.values())
    blind = _right(scores(rows, "blind-retrier"))
    assert blind["a"] == tasks and not twice & (blind["b"] | blind["ab"] | blind["abc"])


def test_what_each_fault_cost_is_told_apart(rows: list[LiveRow]) -> None:
    tasks = {row.clean_id for row in rows}
    hidden = {row.clean_id for row in rows if row.faults and row.faults[-1].kind == "silent_no_op"}
    played = [
        replace(
            episode,
            replies=tuple(replace(r, prompt_tokens=10, completion_tokens=1) for r in episode.replies),
        )
        for episode in episodes(rows, "verifying-retrier")
    ]
    found = asyncio.run(score_episodes(played, {row.id: row for row in rows}, Worlds()))
    verifying = _right(found)
    assert verifying["a"] == verifying["b"] == verifying["ab"] == tasks
    assert verifying["c"] == verifying["ac"] == verifying["abc"] == tasks - hidden
    for one in found:
        letters = CASCADES.get(one.type_code.removeprefix("live_"), "")
        costs = one.faults or []
        assert len(costs) == (len(letters) if len(letters) > 1 else 0)
        assert not costs or sum(cost["met"] for cost in costs) == one.met
        assert sum(cost["steps"] for cost in costs) + (one.met or 0) <= (one.steps or 0)
        assert all(cost["writes"] <= cost["steps"] and cost["tokens"] >= 0 for cost in costs)
        if letters == "ab":  # behind a it looks, and makes the call again; that it was made is seen behind b
            assert costs[0] == {"kind": costs[0]["kind"], "met": 1, "steps": 1, "writes": 0, "tokens": 22}
            assert costs[1]["met"] == 1 and costs[1]["tokens"] < (one.tokens or 0)


def _scored(right: dict[str, int], tasks: int = 10) -> list[LiveScore]:
    """Scores of which the first so many of each type are right."""
    cost = {"met": 1, "steps": 2, "writes": 1, "tokens": 7}
    codes = {"": "clean", **{letters: type_code(name) for name, letters in CASCADES.items()}}
    return [
        score(task, codes[of], right=task < number, met=len(of), faults=[cost] * len(of))
        for of, number in right.items()
        for task in range(tasks)
    ]


def _tables(folder: Path, found: list[LiveScore]) -> dict[str, Table]:
    return {table.name: table for table in screen_of(live(folder, found)).overview.packs}


def test_the_product_of_independent_faults_stands_beside_the_measured(tmp_path: Path) -> None:
    right = {"": 8, "a": 6, "b": 4, "c": 8, "ab": 2, "ac": 6, "abc": 2}
    made = _tables(tmp_path / "run", _scored(right))
    zero, one, two, retry, three = made["live_cascade_success"].rows
    assert [line[1:3] for line in (zero, one, two, retry, three)] == [
        (10, None), (30, 30), (10, 10), (10, 10), (10, 10),
    ]  # fmt: skip
    assert [line[3].value for line in (zero, one, two, retry, three)] == [0.8, 0.6, 0.6, 0.2, 0.2]  # type: ignore
    assert zero[4] is one[4] is None
    assert (two[4], retry[4], three[4]) == pytest.approx((0.6 * 0.8 / 0.8, 0.6 * 0.4 / 0.8, 0.3))
    costs = made["live_cascade_costs"].rows
    assert [line[1] for line in costs] == ["a", "c", "a", "b", "a", "b", "c"]
    assert {line[2:] for line in costs} == {(10, 20, 10, 70)}
    api.report([tmp_path / "run"], tmp_path / "out", browser=False)
    assert "if independent" in (tmp_path / "out" / "report.html").read_text()


def test_a_task_without_one_of_the_rows_is_in_no_line_that_takes_it(tmp_path: Path) -> None:
    found = _scored({"": 0, "a": 10, "b": 10, "c": 10, "ab": 10, "abc": 5})
    found = [one for one in found if one.type_code != "live_cascade_c" or one.clean_id != "t0"]
    rows = _tables(tmp_path / "run", found)["live_cascade_success"].rows
    assert [line[1] for line in rows] == [10, 29, 0, 10, 9]
    assert [line[4] for line in rows] == [None] * 5  # nothing was right clean
    assert rows[2][3] is None


def test_they_are_in_no_sum_and_no_headline(tmp_path: Path) -> None:
    plain = [
        *(score(task) for task in range(30)),
        *(score(task, NO_OP, right=task < 12, met=1, recovered=False) for task in range(30)),
    ]
    more = _scored(dict.fromkeys(CASCADES.values(), 0), tasks=30)
    alone = {line.name: line for line in lines(plain)}
    beside = {line.name: line for line in lines([*plain, *more])}
    assert {name: beside[name] for name in alone} == alone
    assert beside.keys() - alone.keys() == CASCADES.keys()
    before = screen_of(live(tmp_path / "plain", plain)).overview.answer
    after = screen_of(live(tmp_path / "more", [*plain, *more])).overview.answer
    assert after.sentence == before.sentence and after.lines.keys() == before.lines.keys()
    for name, line in before.lines.items():
        other = after.lines[name]
        assert (line.word, line.p_holm, line.keeps) == (other.word, other.p_holm, other.keeps)
