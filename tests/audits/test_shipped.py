"""Without sources the shipped digests speak: of live tasks and of training rows no edit passes them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from robustbench_tc import api
from robustbench_tc.audits import gate, provenance
from robustbench_tc.audits.again import rebuild_of
from robustbench_tc.audits.folder import Folder
from robustbench_tc.audits.provenance import Rebuild
from robustbench_tc.audits.provenance.shipped import build_of, found_digests, pinned
from robustbench_tc.builders.live import build as live
from robustbench_tc.builders.live.build import rebuild_live
from robustbench_tc.dataset_cards.live import live_card
from robustbench_tc.io import marker
from robustbench_tc.schema import dumps

from ..conftest import Done, Made
from ..made import BUILDERS
from . import builds
from .live import planting
from .live.planting import Row

NOTHING = "Please do nothing at all."


def reseal(folder: Path) -> Path:
    """The report names the files as they are now: a forger of that much skill."""
    report = json.loads((folder / marker.BUILD).read_bytes())
    report |= {"files": marker.hashes(folder, but=marker.BUILD), "own_sha256": ""}
    (folder / marker.BUILD).write_bytes(marker.sealed(report))
    return folder


def blocking(folder: Path, rebuild: Rebuild) -> set[str]:
    return {check.id for check in provenance.audit(Folder(folder), rebuild).checks if check.blocks}


# --- live ---------------------------------------------------------------------------------------------


def said(row: Row) -> list[Row]:
    return [message for turn in row["turns"] for message in turn["messages"]]


def swap_turns(rows: list[Row]) -> None:
    row = next(row for row in rows if len(row["turns"]) > 1)
    first, second, *_ = row["turns"]
    first["messages"], second["messages"] = second["messages"], first["messages"]


def ask_for_nothing(rows: list[Row]) -> None:
    said(rows[0])[-1]["content"] = NOTHING


def leak_gold(rows: list[Row]) -> None:
    said(rows[-1])[0]["content"] += f" (Call {dumps(rows[-1]['golden_calls'])}.)"


def drop_a_task(rows: list[Row]) -> None:
    del rows[3]


def reword_a_tool(rows: list[Row]) -> None:
    rows[5]["tools"][0]["description"] += "."


def move_the_state(rows: list[Row]) -> None:
    rows[7]["initial_state"]["seed"] = 99


EDITS_OF_TASKS = [swap_turns, ask_for_nothing, leak_gold, drop_a_task, reword_a_tool, move_the_state]


@pytest.mark.parametrize("edit", EDITS_OF_TASKS)
def test_an_edit_of_a_task_is_red_without_its_sources(live: Path, edit: Callable[[list[Row]], None]) -> None:
    """The edit stands in every config, as an honest build of the edited task would have it."""
    tasks = planting.rows(live, "tasks")
    edit(tasks)
    planting.write(live, "tasks", tasks)
    of_own_tasks = rebuild_of(live)._replace(origin="", make=None)
    assert "provenance.clean_rows" in blocking(reseal(live), of_own_tasks)


def test_a_live_build_is_made_again_from_its_own_tasks(live_build: Path, tmp_path: Path) -> None:
    rebuild_live(live_build, tmp_path / "again", own_tasks=True, card=live_card)
    assert Folder(tmp_path / "again").digest() == Folder(live_build).digest()


def test_tasks_have_digests_per_world_profile_and_version(live_build: Path) -> None:
    shipped = pinned()["live"]
    assert shipped.version == live.VERSION
    assert {name: set(worlds) for name, worlds in shipped.builds.items()} == {
        "bundled": {"calendar", "orders"}, "lite": {"bfcl"}, "full": {"bfcl"},
    }  # fmt: skip
    assert found_digests(Folder(live_build)) == shipped.builds["bundled"]


def test_no_other_seed_moves_a_task(live: Path, live_build: Path) -> None:
    planting.write(live, "tasks", [row | {"seed": 5} for row in planting.rows(live, "tasks")])
    assert found_digests(Folder(live)) == found_digests(Folder(live_build))


# --- training -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def training(made: Made, shared: Path) -> Path:
    """ToolRL-DR as `rbtc build toolrl-dr` makes it of the mirrored files."""
    sources = shared / "sources"

    def make(place: Path) -> None:
        api.build_training(place / "toolrl-dr", rlla=sources, sources=sources)

    return made("training", BUILDERS, make) / "toolrl-dr"


@pytest.fixture(autouse=True)
def no_sources(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RBTC_SOURCES", str(tmp_path / "nowhere"))


def request_of(row: dict[str, Any]) -> dict[str, Any]:
    return next(turn for turn in row["prompt"] if turn["role"] == "user")


def swap_requests(rows: list[dict[str, Any]]) -> None:
    one, other = map(request_of, rows[:2])
    one["content"], other["content"] = other["content"], one["content"]


def do_nothing(rows: list[dict[str, Any]]) -> None:
    request_of(rows[2])["content"] = NOTHING


def leak(rows: list[dict[str, Any]]) -> None:
    request_of(rows[3])["content"] += rows[3]["reward_model"]["ground_truth"]


def other_gold(rows: list[dict[str, Any]]) -> None:
    rows[4]["reward_model"]["ground_truth"] = rows[5]["reward_model"]["ground_truth"]


@pytest.mark.parametrize("edit", [swap_requests, do_nothing, leak, other_gold, list.reverse, list.pop])
@pytest.mark.parametrize("split", ["train", "validation"])
def test_an_edit_of_a_training_row_is_red_without_its_sources(
    toolrl: Path, edit: Callable[[list[dict[str, Any]]], Any], split: str
) -> None:
    builds.edit_training(toolrl, "full", edit, split)
    red = blocking(reseal(toolrl), rebuild_of(toolrl))
    assert {"provenance.clean_rows", "provenance.rows"} <= red


@pytest.mark.parametrize("name", ["README.md", "build_report.md", "generations.jsonl"])
def test_an_edit_beside_training_rows_is_red_without_their_sources(toolrl: Path, name: str) -> None:
    (toolrl / name).write_bytes((toolrl / name).read_bytes() + b"\n{}\n")
    assert blocking(reseal(toolrl), rebuild_of(toolrl))


def test_training_rows_with_their_digests_may_be_released_without_sources(
    training: Path, bundled: Path
) -> None:
    assert found_digests(Folder(training)) == pinned()["training"].builds[build_of(Folder(training))]
    report = gate.audit(training, benchmark=bundled)
    assert report.provenance.startswith("NOT rebuilt: ")
    assert [check.id for check in report.blocking] == []


def test_where_nothing_was_compared_nothing_is_released(
    shared: Path, tmp_path: Path, rbtc: Callable[..., Done]
) -> None:
    folder, sources = tmp_path / "toolrl-dr", shared / "sources"
    api.build_training(folder, rlla=sources, seed=3, configs=("retry",), sources=sources)
    benchmark = tmp_path / "robustbench-tc"
    api.build(benchmark, profile="bundled", types=["CD"])
    done = rbtc("audit", folder, "--benchmark", benchmark)
    assert done.code == 1 and "may be released" not in done.out and "may NOT be released" in done.out
    refused = rbtc(
        "release", folder, "--version", "1.0.0", "--out", tmp_path / "out", "--benchmark", benchmark
    ).refusal
    assert "provenance.rows" in refused and not (tmp_path / "out").exists()
