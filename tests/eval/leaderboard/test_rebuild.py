"""From raw predictions, once more: the same boards; and a repeated run verifies a submission."""

import os
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from robustbench_tc.errors import UserError
from robustbench_tc.eval import predictions
from robustbench_tc.eval.leaderboard.board import PAPER
from robustbench_tc.eval.leaderboard.checks import Asked
from robustbench_tc.eval.leaderboard.desk import Desk
from robustbench_tc.eval.leaderboard.limits import Limits
from robustbench_tc.eval.leaderboard.rebuild import load, rebuild, verify, write_boards
from robustbench_tc.eval.leaderboard.records import Matched, Verification
from robustbench_tc.eval.leaderboard.scoring import entries_of_paper
from robustbench_tc.eval.leaderboard.store import Store
from robustbench_tc.eval.stats.reasked import Answered, reasked

from . import desks, rebuild_twenty
from .conftest import RunOf
from .made import run_folder

NIGHTLY = os.environ.get("RBTC_NIGHTLY") == "1"
"""Every kind of submission and twenty rounds, a minute of a processor, instead of a part of each."""

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


def listed(store: Store, asked: Asked, run: Path, name: str) -> str:
    """Submits a run at a desk of its own and lists it; its id."""
    desk = Desk(store, desks.InProcess(asked, Limits()), Limits(), lambda: NOON)
    return desks.listed(desk, run, name=name)


def test_a_rebuild_from_raw_predictions_gives_the_same_boards(
    tmp_path: Path, asked: Asked, run_of: RunOf
) -> None:
    store = Store(tmp_path / "results")
    ids = [
        listed(store, asked, run_of(agent), name)
        for agent, name in (
            ("oracle", "Alpha-3B"),
            ("name-biased", "Beta-7B"),
            ("gives-up-on-error", "Gamma-14B"),
        )
    ]
    write_boards(store, load(store, entries_of_paper()))
    boards = {path.name: path.read_bytes() for path in (store.folder / "boards").glob("*.json")}
    assert len(boards) == 2

    found = rebuild(store, [asked])
    assert set(found.same) == set(ids)
    assert not found.changed and not found.new and not found.not_possible and not found.boards_changed

    for path in store.entries.iterdir():
        path.unlink()
    assert list(load(store, {})) == [PAPER]
    found = rebuild(store, [asked])
    assert set(found.new) == set(ids) and not found.boards_changed
    assert {path.name: path.read_bytes() for path in (store.folder / "boards").glob("*.json")} == boards


def test_an_edited_entry_is_put_right_and_other_versions_are_left_alone(
    tmp_path: Path, asked: Asked, run_of: RunOf
) -> None:
    store = Store(tmp_path / "results")
    one = listed(store, asked, run_of("silent"), "Alpha-3B")
    entry = store.entry(one)
    assert entry is not None
    store.put_entry(one, msgspec.structs.replace(entry, counts={**entry.counts, "perturbed": (197, 197)}))
    found = rebuild(store, [asked])
    assert found.changed == (one,) and store.entry(one) == entry
    found = rebuild(store, [])
    assert "was not given" in found.not_possible[one] and store.entry(one) == entry


def test_predictions_that_were_edited_are_not_scored(tmp_path: Path, asked: Asked, run_of: RunOf) -> None:
    store = Store(tmp_path / "results")
    one = listed(store, asked, run_of("silent"), "Alpha-3B")
    (store.path(one) / "predictions.parquet").unlink()
    predictions.write(
        store.path(one) / "predictions.parquet", predictions.read(run_of("oracle") / "predictions.parquet")
    )
    found = rebuild(store, [asked])
    assert "is not what was submitted" in found.not_possible[one]


def test_a_repeated_run_verifies_a_submission(tmp_path: Path, asked: Asked, run_of: RunOf) -> None:
    store = Store(tmp_path / "results")
    one = listed(store, asked, run_of("oracle"), "Alpha-3B")
    made = verify(store, one, run_of("oracle"), asked, by="maintainer", now=NOON)
    assert (made.rows, made.agree, made.p) == (len(asked.rows), len(asked.rows), 1.0)
    [row] = next(iter(load(store, {}).values())).rows
    assert row.tier == "reproduced"


def test_a_repeated_run_raises_a_matched_endpoint_and_keeps_what_was_asked(
    tmp_path: Path, asked: Asked, run_of: RunOf
) -> None:
    store = Store(tmp_path / "results")
    one = listed(store, asked, run_of("oracle"), "Alpha-3B")
    same = reasked([Answered("a", "clean", 1, True), Answered("b", "clean", 0, False)], 1)
    asked_again = Matched(seed="0" * 12, model="m", again=same, fresh=same)
    before = Verification(
        kind="endpoint-matched", submission=one, verified_at="2026-11-19", by="ann", rows=2, agree=2,
        submitted=0.5, repeated=0.5, p=1, predictions_sha256="", package_version="", matched=asked_again,
    )  # fmt: skip
    with store.locked():
        store.verify(before)
    with pytest.raises(UserError, match="it stays endpoint-matched"):
        verify(store, one, run_of("silent"), asked, by="bob")
    assert store.verifications()[0][one] == before
    made = verify(store, one, run_of("oracle"), asked, by="bob", now=NOON)
    assert (made.kind, made.by, made.matched) == ("reproduced", "bob", asked_again)
    [row] = next(iter(load(store, {}).values())).rows
    assert row.tier == "reproduced"
    with pytest.raises(UserError, match="verified already, by bob"):
        verify(store, one, run_of("oracle"), asked, by="eve")


def test_a_run_that_is_no_repetition_verifies_nothing(tmp_path: Path, asked: Asked, run_of: RunOf) -> None:
    store = Store(tmp_path / "results")
    one = listed(store, asked, run_of("oracle"), "Alpha-3B")
    for run, says in (
        (run_of("silent"), "does not repeat"),
        (run_of("oracle", mode="fc"), "another mode"),
        (run_of("oracle", repeat=2), "another repeat"),
        (tmp_path, "is not a run folder"),
    ):
        with pytest.raises(UserError, match=says):
            verify(store, one, run, asked, by="maintainer")
    short = predictions.read(run_of("oracle") / "predictions.parquet")[1:]
    with pytest.raises(UserError, match="1 missing"):
        verify(store, one, run_folder(tmp_path / "short", "oracle", asked, found=short), asked, by="m")
    assert store.verifications() == ({}, [])


def test_rebuilds_in_any_order_on_any_number_of_processes_have_the_same_bytes(
    tmp_path: Path,
) -> None:
    packs = rebuild_twenty.with_packs(tmp_path)
    kinds = rebuild_twenty.KINDS if NIGHTLY else rebuild_twenty.KINDS[:2] + rebuild_twenty.KINDS[6::2]
    core = rebuild_twenty.of_core(packs)
    number = rebuild_twenty.ROUNDS if NIGHTLY else 3
    store = rebuild_twenty.store_of_kinds(tmp_path, core, packs, kinds)
    assert len(set(rebuild_twenty.rounds(store, (core, packs), number, tmp_path))) == 1
