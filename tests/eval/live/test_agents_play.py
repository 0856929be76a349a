"""The scripted agents as players: pure functions of the view, and scores that lie in a folder."""

import asyncio
from pathlib import Path

from robustbench_tc import schema
from robustbench_tc.column_types import arrow_schema, in_struct
from robustbench_tc.eval.live.agents import AGENTS, View
from robustbench_tc.eval.live.rehearsal import rehearsal
from robustbench_tc.eval.live.score import read_scores, score_run
from robustbench_tc.eval.stats.live import lines
from robustbench_tc.io.parquet import table, write_file
from robustbench_tc.live import Episode
from robustbench_tc.schema import Call
from robustbench_tc.worlds.find import find, tasks
from robustbench_tc.worlds.host import Worlds

from ...refusals import refuses
from .playing import play, row_of
from .test_ledger import _rows


def test_an_answer_follows_from_the_view_alone() -> None:
    row = _rows()["clean 2"]
    for make in AGENTS.values():
        begun = make(row)
        first = begun.reply(View(0, ()))
        if isinstance(first, str):
            assert first.endswith("?") and begun.reply(View(0, ())) == first
            first = begun.reply(View(0, (), asked=True))
        assert first == (Call("count_coins", {}),)
        history = ((Call("count_coins", {}), '{"coins": 5}'),)
        done = begun.reply(View(0, history))
        assert isinstance(done, str) and make(row).reply(View(0, history)) == done


def test_there_are_fifteen_and_each_ends_every_bundled_task_with_golds_world() -> None:
    assert len(AGENTS) == 15
    world = find("orders")
    row = row_of(world, tasks(world)[1])

    async def run() -> list[Episode]:
        return [await play(row, make(row), Worlds()) for make in AGENTS.values()]

    for episode in asyncio.run(run()):
        assert episode.ended == "done"


def test_values_that_gold_copies_are_known_with_their_place() -> None:
    world = find("orders")
    plan = rehearsal(row_of(world, tasks(world)[1]))
    charge = len(plan.calls) - 1
    origins = plan.origins(charge)
    assert plan.calls[charge].name == "charge_card"
    assert {path: plan.calls[one.call].name for path, one in origins.items()} == {
        ("order_id",): "place_order",
        ("card_id",): "find_customer",
        ("amount",): "place_order",
    }


def test_a_run_is_scored_into_a_file_that_reads_back(tmp_path: Path) -> None:

    rows = {row.id: row for row in _rows().values()}
    clean = {row.clean_id: row for row in rows.values() if row.clean}

    async def run() -> list[Episode]:
        agent = AGENTS["blind-retrier"]
        return [await play(row, agent(clean[row.clean_id]), Worlds()) for row in rows.values()]

    episodes = asyncio.run(run())
    arrow = arrow_schema(in_struct(Episode))
    write_file([table(schema.columns(episodes, Episode), arrow)], tmp_path / "episodes.parquet", arrow)
    scores = score_run(tmp_path, rows)
    assert read_scores(tmp_path) == scores and len(scores) == len(rows)
    before = (tmp_path / "scores.parquet").read_bytes()
    (tmp_path / "scores.parquet").unlink()
    score_run(tmp_path, rows)
    assert (tmp_path / "scores.parquet").read_bytes() == before
    assert {line.name for line in lines(scores)} >= {"timeout_after_effect", "all"}
    del rows["purse_1::clean"]
    refuses("purse_1::clean: no row of the dataset", score_run, tmp_path, rows)


def test_a_folder_without_episodes_or_scores_is_named(tmp_path: Path) -> None:
    refuses(r"no episodes\.parquet", score_run, tmp_path, {})
    refuses(r"no scores\.parquet", read_scores, tmp_path)


def test_a_world_that_is_not_here_has_no_rehearsal_and_gold_is_played_as_it_stands() -> None:
    import msgspec

    row = msgspec.structs.replace(_rows()["clean"], world="bfcl")
    assert rehearsal(row).results == [] and rehearsal(row).shown_by(0) is None
    assert AGENTS["verifying-retrier"](row).reply(View(0, ())) == (Call("add_coins", {"amount": 2}),)
