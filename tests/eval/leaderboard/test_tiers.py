"""What a rank means: nothing without one moves a rank, a mark or a p of another run."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from robustbench_tc.eval.agents.null_models import NULL_MODELS
from robustbench_tc.eval.leaderboard import tiers
from robustbench_tc.eval.leaderboard.board import Board
from robustbench_tc.eval.leaderboard.checks import Asked
from robustbench_tc.eval.leaderboard.desk import Desk
from robustbench_tc.eval.leaderboard.limits import Limits
from robustbench_tc.eval.leaderboard.moderation import Decision
from robustbench_tc.eval.leaderboard.places import places
from robustbench_tc.eval.leaderboard.query import Query, flat, select
from robustbench_tc.eval.leaderboard.rebuild import load
from robustbench_tc.eval.leaderboard.records import Verification
from robustbench_tc.eval.leaderboard.refusal import Refused
from robustbench_tc.eval.leaderboard.row import FOCUSES
from robustbench_tc.eval.leaderboard.store import Store
from robustbench_tc.eval.leaderboard.tiers import Tier

from . import desks
from .made import answers, run_folder, settings
from .test_flags import mixed

HONEST = {"Alpha-3B": 0.7, "Beta-7B": 0.65, "Gamma-14B": 0.3, "Delta-8B": 0.5}
ATTACKS = ("oracle", *NULL_MODELS, "silent", "always-calls")


@pytest.fixture(scope="module")
def store(asked: Asked, tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Four plausible runs, vouched for."""
    folder = tmp_path_factory.mktemp("tiers")
    made = Store(folder / "results")
    right, wrong = (answers(name, asked, settings(asked, "x")) for name in ("oracle", "rambler"))
    for seed, (name, share) in enumerate(HONEST.items()):
        said, _ = mixed(share, (right, right), (wrong, wrong), seed=seed)  # type: ignore[arg-type]
        run = run_folder(folder / name, name, asked, found=said, model="x")
        vouch(made, submit(made, asked, run, name), "reproduced")
    return made


def submit(store: Store, asked: Asked, run: Path, name: str, user: str = "ann") -> str:
    return desks.listed(Desk(store, desks.InProcess(asked, Limits()), Limits()), run, user, name)


def vouch(store: Store, one: str, kind: Any) -> None:
    with store.locked():
        store.verify(
            Verification(
                kind=kind, submission=one, verified_at="2026-11-20T12:00:00+00:00", by="ann", rows=1, agree=1,
                submitted=1, repeated=1, p=1, predictions_sha256="", package_version="",
            )
        )  # fmt: skip


def board(store: Store) -> Board:
    return next(iter(load(store, {}).values()))


def of_ranked(found: Board, ids: set[str], unranked: str = "") -> list[Any]:
    """Everything that the board says of these rows' places, in every focus."""
    said: list[Any] = []
    for focus in FOCUSES:
        shown = select(found, Query(version=found.version, focus=focus, unranked=unranked), whole=True).rows
        said.append([flat(row, focus) for row in shown if row.id in ids])
        said.append({one: place for one, place in places(found, focus).items() if one in ids})
    return said


def test_the_gold_and_null_models_change_no_rank_and_no_mark(
    store: Store, asked: Asked, run_of: Callable[..., Path]
) -> None:
    before = board(store)
    ids = {row.id for row in before.rows}
    assert [row.rank for row in before.rows] == [1, 2, 3, 4] and not before.copies
    expected = of_ranked(before, ids)

    attacks = [
        submit(store, asked, run_of(agent), f"Evil-{number}B", user=f"eve{number}")
        for number, agent in enumerate(ATTACKS, 1)
    ]
    found = board(store)
    assert {row.id for row in found.rows} == ids | set(attacks)
    for switch in ("", "on", "off"):
        assert of_ranked(found, ids, switch) == expected
    view = select(found, Query(version=found.version, unranked="on"))
    assert view.rows[0].id == attacks[0] and view.rows[0].rank == 0 and view.rows[0].p_leader is None
    assert select(found, Query(version=found.version)).left_out == len(attacks)

    for one in attacks:
        vouch(store, one, "endpoint-matched")
    found = board(store)
    for switch in ("", "on", "off"):
        assert of_ranked(found, ids, switch) == expected
    for row in found.rows:
        assert row.id in ids or (row.tier, row.rank) == ("endpoint-matched", 0)
        assert bool(row.flags) == (row.id in attacks), row
    assert "near-gold" in next(row for row in found.rows if row.id == attacks[0]).flags
    # A copy of the leader, vouched for as well, is behind it and has no rank.
    with store.locked():
        leader = before.rows[0].id
        copied = submit_copy(store, leader)
    vouch(store, copied, "endpoint-matched")
    found = board(store)
    assert of_ranked(found, ids) == expected and found.copies[copied].of == leader


def submit_copy(store: Store, leader: str) -> str:
    """The leader's run under another name and user."""
    import msgspec

    one, entry = store.submission(leader), store.entry(leader)
    assert entry is not None
    made = msgspec.structs.replace(
        one, id="20991231-0123456789ab", model="Copy-9B", user="eve", submitted_at="2099-12-31T00:00:00+00:00"
    )
    store.add(made, store.path(leader), entry)
    return made.id


def test_with_few_ranked_runs_the_others_follow_below(asked: Asked, store: Store) -> None:
    found = board(store)
    few = Board(
        version=found.version, dataset_version="", fingerprint="", paired=True,
        rows=tuple(row for row in found.rows if row.rank in (0, 1, 2)),
    )  # fmt: skip
    view = select(few, Query(version=few.version))
    assert view.left_out == 0 and [row.rank for row in view.rows][:3] == [1, 2, 0]
    assert {row.rank for row in view.rows[2:]} == {0}
    alone = select(few, Query(version=few.version, unranked="off"))
    assert [row.rank for row in alone.rows] == [1, 2] and alone.left_out == len(few.rows) - 2
    assert [flat(row, "clean")["rank"] for row in view.rows[:3]] == [1, 2, None]


@pytest.mark.parametrize("tier", tiers.TIERS)
def test_a_flag_takes_the_rank_in_every_tier(tier: Tier) -> None:
    class Run:
        def __init__(self, *flags: str) -> None:
            self.tier, self.flags = tier, flags

    assert tiers.is_ranked(Run()) == (tier != "unverified")
    assert not tiers.is_ranked(Run("copy"))


def test_a_hidden_submission_is_on_no_board_and_comes_back(store: Store) -> None:
    before = board(store)
    one = before.rows[0].id
    for action in ("hide", "unhide", "withdraw", "unhide"):
        revision = store.revision()
        with store.locked():
            store.decide(
                Decision(submission=one, action=action, reason="a reason", by="ann", at="2026-11-20")
            )
        assert store.revision() != revision
        there = one in {row.id for row in board(store).rows}
        assert there == (action == "unhide")
    assert board(store) == before
    (store.folder / "moderation" / f"{one}-0004.json").write_bytes(b"{")
    assert board(store).row(one) is None
    (store.folder / "moderation" / f"{one}-0004.json").unlink()


def test_names_of_others_are_refused_at_the_desk(
    store: Store, asked: Asked, run_of: Callable[..., Path]
) -> None:
    desk = Desk(store, desks.InProcess(asked, Limits()), Limits())
    for name, says in (
        ("acme/M-3B", "no member"),
        ("Alpha-3B-v2", "reads as a version"),
        ("Qwen3-8B-v2", "reads as"),
    ):
        found, ticket = desks.checked(desk, run_of("oracle"), "bob", name=name)
        assert found.refused is not None and found.refused.code == "name" and says in found.refused.text
        with pytest.raises(Refused):
            desk.list("bob", ticket)
