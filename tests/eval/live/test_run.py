"""A run's folder: killed and gone on with, asked of servers that fail, refused under other settings."""

import json
import random
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from robustbench_tc import llm, schema
from robustbench_tc.api import evaluate, score
from robustbench_tc.eval import record, session, speakers, who
from robustbench_tc.eval.data import Selection
from robustbench_tc.eval.inputs import load_live
from robustbench_tc.eval.live import inputs, show
from robustbench_tc.eval.live.episodes import read_episodes
from robustbench_tc.eval.live.score import read_scores
from robustbench_tc.llm.store import read_lines

from ...conftest import Done
from ...loopback import DROP, EMPTY_CHOICES, HTML, SERVER_ERROR, TOO_LONG, Fault, LoopbackServer, reply
from ...refusals import refuses
from . import purses

WORLD = str(purses.FILE)
KILLS = 20


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return purses.write(tmp_path_factory.mktemp("live") / "data", purses.rows())


def test_an_agent_plays_every_row_and_the_scores_are_its_own(dataset: Path, tmp_path: Path) -> None:
    done = evaluate(dataset, agent="oracle", worlds=[WORLD], out=tmp_path / "run")
    assert (done.answered, done.asked.total) == (16, 16)
    assert [one.id for one in read_episodes(done.folder.path)] == [row.id for row in purses.rows()]
    score(tmp_path / "run", worlds=[WORLD])
    assert all(one.success for one in read_scores(tmp_path / "run") if one.type_code == "clean")
    found = show.show_episode(tmp_path / "run", "purse_1::live_silent_no_op", worlds=[WORLD])
    (call,) = found.replies[0].steps
    assert (call.executed, call.met, call.changes, found.scores.success) == (0, True, (), False)
    clean = show.show_episode(tmp_path / "run", "purse_1::clean", worlds=[WORLD])
    changed = {one.path: one.after for one in clean.replies[0].steps[0].changes}
    assert changed["/coins"] == 5
    refuses(
        "no episode of repeat 3",
        show.show_episode,
        tmp_path / "run",
        "purse_1::clean",
        repeat=3,
        worlds=[WORLD],
    )


def test_an_equal_start_asks_nothing_and_other_settings_are_refused(dataset: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    evaluate(dataset, agent="oracle", worlds=[WORLD], out=out)
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    again = evaluate(dataset, agent="oracle", worlds=[WORLD], out=out)
    assert (again.asked.kept, again.asked.done) == (16, 16)
    assert (out / "episodes.parquet").read_bytes() == before["episodes.parquet"]
    assert (out / "journal.jsonl").read_bytes() == before["journal.jsonl"]
    for other in ({"agent": "liar"}, {"mode": "prompt"}, {"seed": 7}):
        refuses(
            "run with other settings",
            evaluate,
            dataset,
            **{"agent": "oracle"} | other,
            worlds=[WORLD],
            out=out,
        )
    assert evaluate(dataset, agent="liar", worlds=[WORLD], out=out, fresh=True).answered == 16


def test_a_live_run_grows_and_takes_the_answers_of_another(dataset: Path, tmp_path: Path) -> None:
    words: dict[str, Any] = {"agent": "blind-retrier", "worlds": [WORLD]}
    whole, grown, taken = (tmp_path / name for name in ("whole", "grown", "taken"))
    evaluate(dataset, **words, out=whole)
    evaluate(dataset, **words, types=["silent_no_op"], out=grown)
    part = len(read_episodes(grown))
    more = evaluate(dataset, **words, out=grown)
    assert 0 < part < 16 and (more.asked.kept, more.asked.done) == (part, 16)
    twice = evaluate(dataset, **words, repeat=2, out=taken, reuse=whole)
    assert (twice.asked.kept, twice.asked.done) == (16, 32)
    once = [one for one in read_episodes(taken) if one.repeat == 0]
    assert once == read_episodes(grown) == read_episodes(whole)
    asked = [line for _, line in read_lines(taken / "journal.jsonl") if line.get("reused")]
    assert len(asked) == len(list(read_lines(whole / "journal.jsonl")))


def test_a_selection_takes_rows_with_their_clean_rows(dataset: Path) -> None:
    data = load_live(str(dataset))
    found = data.select(Selection(limit=5))
    assert len(found) == 5 and found[0].clean
    clean = {row.clean_id for row in found if row.clean}
    assert {row.clean_id for row in found} == clean
    types = data.select(Selection(types=inputs.codes(["silent_no_op"])))
    assert {row.type_code for row in types} == {"clean", "live_silent_no_op"}
    assert {row.clean_id for row in types if row.clean} == {row.clean_id for row in types if not row.clean}
    one = next(row.id for row in types if not row.clean)
    only = Selection(types=inputs.codes(["silent_no_op"]), ids=(one,))
    assert [row.id for row in data.select(only)] == [one]
    refuses("did you mean live_stale_read", data.select, Selection(types=("live_stale_raed",)))


def test_a_world_of_ones_own_has_to_be_named(dataset: Path, tmp_path: Path) -> None:
    refuses("name its Python file with --world", evaluate, dataset, agent="oracle", out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_cut_off_at_twenty_points_every_episode_is_there_once_with_the_same_bytes(
    dataset: Path, tmp_path: Path
) -> None:
    """What a SIGKILL leaves behind is the lines that were synced, and perhaps a torn one: so at twenty lines
    of the journal. (Processes that are really killed: test_run_killed.py.)"""
    data = load_live(str(dataset))
    agent = speakers.ScriptedAgent("repairs-duplicate", data.clean())

    def played(out: Path) -> bytes:
        folder = record.start(out, data, purses.settings(), len(data.rows))
        types = {"purse": purses.PURSE}
        state = session.run(folder, data, nullcontext(who.Opened(agent, 3, llm.Stats())), worlds=types)
        assert state.done == len(read_episodes(folder.path)) == len(data.rows)
        return (out / "episodes.parquet").read_bytes()

    whole = played(tmp_path / "whole")
    lines = (tmp_path / "whole" / "journal.jsonl").read_bytes().splitlines(keepends=True)
    for point in random.Random(3).sample(range(1, len(lines)), KILLS):
        out = tmp_path / str(point)
        record.start(out, data, purses.settings(), len(data.rows))
        journal = out / "journal.jsonl"
        journal.write_bytes(b"".join(lines[:point]) + lines[point][: point % 40])
        assert played(out) == whole
        keys = Counter(line["key"] for line in map(schema.loads, journal.read_bytes().splitlines()))
        # Nothing is asked or journaled twice.
        assert set(keys.values()) == {1} and len(keys) == len(lines)


FAILURES: list[Any] = [SERVER_ERROR, EMPTY_CHOICES, HTML, DROP, Fault(200, "{]"), Fault(200, {})]
STRANGE: list[Any] = [
    reply("y" * 2_000_000),
    reply("", [("no_such_tool", "[" * 50_000), ("add_coins", "null"), ("", "{}")]),
    reply(None),
    reply("", [("add_coins", '{"amount": 1}')] * 3),
    reply("Done."),
]
"""Answers, with calls that no world has."""


@pytest.mark.parametrize("mode", ["fc", "prompt"])
def test_a_broken_server_leaves_whole_episodes(dataset: Path, tmp_path: Path, mode: str) -> None:
    draw = random.Random(5)
    with LoopbackServer(lambda body: draw.choice(FAILURES + 2 * STRANGE)) as server:
        done = evaluate(
            dataset,
            model="tiny",
            base_url=server.url,
            mode=mode,
            worlds=[WORLD],
            out=tmp_path / "run",
            max_retries=8,
            concurrency=8,
            limit=6,
        )
    assert done.asked.done == 6
    episodes = read_episodes(done.folder.path)
    assert len({one.id for one in episodes}) == len(episodes) == 6
    assert (tmp_path / "run" / "journal.jsonl").stat().st_size < 50 * 2**20
    score(tmp_path / "run", worlds=[WORLD])
    assert len(read_scores(tmp_path / "run")) == 6


HOSTILE: dict[str, tuple[str, str]] = {
    "nan": ("add_coins", '{"amount": NaN}'),
    "infinite": ("add_coins", '{"amount": 1e999}'),
    "digits": ("add_coins", '{"amount": ' + "9" * 5000 + "}"),
    "beyond 64 bits": ("add_coins", '{"amount": ' + "9" * 30 + "}"),
    "half a pair": ("add_coins", '{"amount": "\\ud800"}'),
    "half a pair as a key": ("add_coins", '{"\\ud800": 1}'),
    "deep": ("add_coins", '{"amount": ' * 300 + "1" + "}" * 300),
    "not an object": ("add_coins", "[1, 2]"),
    "name": ("\x1b[2J<b>\u202e", "{}"),
    "private": ("__init__", "{}"),
    "long": ("add_coins", '{"amount": "' + "x" * 1_000_000 + '"}'),
}


@pytest.mark.parametrize("mode", ["fc", "prompt"])
@pytest.mark.parametrize("asked", [*HOSTILE, "many"])
def test_whatever_was_called_the_run_can_be_scored(
    dataset: Path, tmp_path: Path, asked: str, mode: str
) -> None:
    wanted = [("count_coins", "{}")] * 1000 if asked == "many" else [HOSTILE[asked]]
    text = json.dumps([{"name": wanted[0][0], "arguments": "@"}]).replace('"@"', wanted[0][1])

    def answer(body: dict[str, Any]) -> Any:
        if body["messages"][-1]["role"] != "user" or "esults" in str(body["messages"][-1]["content"]):
            return reply("Done.")
        return reply("", wanted) if mode == "fc" else reply(text)

    with LoopbackServer(answer) as server:
        words: dict[str, Any] = {"model": "tiny", "base_url": server.url, "mode": mode, "limit": 2}
        done = evaluate(dataset, **words, worlds=[WORLD], out=tmp_path / "run")
    steps = [step for one in read_episodes(done.folder.path) for each in one.replies for step in each.steps]
    assert steps or mode == "prompt"  # a text that cannot be read is no call
    score(tmp_path / "run", worlds=[WORLD])
    assert len(read_scores(tmp_path / "run")) == 2
    assert show.show_episode(tmp_path / "run", read_episodes(done.folder.path)[0].id, worlds=[WORLD]).turns


def test_a_request_that_is_too_long_ends_its_episode_and_is_not_asked_again(
    dataset: Path, tmp_path: Path
) -> None:
    def answer(body: dict[str, Any]) -> Any:
        return TOO_LONG if len(body["messages"]) > 2 else reply("", [("count_coins", "{}")])

    words: dict[str, Any] = {
        "model": "tiny",
        "mode": "fc",
        "worlds": [WORLD],
        "out": tmp_path / "run",
        "limit": 2,
    }
    with LoopbackServer(answer) as server:
        done = evaluate(dataset, base_url=server.url, **words)
        assert done.folder.record.totals["ended"] == {"too_long": 2}
        before = server.count
        evaluate(dataset, base_url=server.url, **words)
        assert server.count == before


def test_a_dead_endpoint_is_one_line_and_the_run_goes_on_later(
    dataset: Path, tmp_path: Path, rbtc: Any
) -> None:
    words = ["--worlds", WORLD, "--out", tmp_path / "run", "--mode", "fc", "--max-retries", "0"]
    dead: Done = rbtc("eval", dataset, "--model", "tiny", "--base-url", "http://127.0.0.1:9/v1", *words)
    assert dead.code == 1 and "nothing answers" in dead.err and "Traceback" not in dead.err
    with LoopbackServer(lambda body: "Done.") as server:
        done: Done = rbtc("eval", dataset, "--model", "tiny", "--base-url", server.url, *words)
    assert done.code == 0 and "16 of 16 episodes have their answers" in done.err


def test_a_limit_of_cost_holds_over_sessions(dataset: Path, tmp_path: Path) -> None:
    words: dict[str, Any] = {"model": "tiny", "mode": "fc", "worlds": [WORLD], "out": tmp_path / "run"}
    words |= {"price": (1e6, 1e6), "max_cost": 100, "concurrency": 1, "temperature": 0.5}  # 15 a reply
    with LoopbackServer(lambda body: reply("Done.")) as server:
        for _ in range(2):
            refuses("the limit is 100", evaluate, dataset, base_url=server.url, **words)
        assert server.count == 7


def test_states_are_compared_place_by_place() -> None:
    before = {"a": 1, "b": [1, {"c/d": True}], "e": None}
    after = {"a": 1, "b": [1, {"c/d": 1}, 3], "f": "x"}
    found = [(one.path, one.before, one.after) for one in show.differences(before, after)]
    assert found == [("/b/1/c~1d", True, 1), ("/b/2", None, 3), ("/f", None, "x")]
    assert list(show.differences(before, before)) == []
