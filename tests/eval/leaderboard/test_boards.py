"""Entries into boards: who has a rank, who stands beside the leader, and what moves whom."""

import itertools
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, strategies as st

from robustbench_tc.eval import paper
from robustbench_tc.eval.leaderboard.boards import Board, boards, front, p_of, paper_board
from robustbench_tc.eval.leaderboard.checker import CONDITIONS
from robustbench_tc.eval.leaderboard.entry import Entry, Flag, Reasoned, Status, Submission, Verdicts, Vouched
from robustbench_tc.eval.stats import significance
from robustbench_tc.eval.stats.significance import fisher_p

from .made import entries_of, entry

NEAR = Flag(code="near-gold", value=0.99, n=40, of="right")


def status_of(*vouched: Entry, **fields: Any) -> Status:
    tier = Vouched(tier="reproduced", by="ada", day="2026-11-20", reason="the same verdicts")
    return Status(dataset="robustbench-tc@1.0.0", tiers={one.run: tier for one in vouched}, **fields)


def board_of(entries: list[Entry], status: Status) -> Board:
    found = boards(entries, status)
    assert len(found) == 2, "this test means one board and the paper's"
    return found[0]


def names(board: Board) -> list[str]:
    return [row.run for row in board.ranked]


def replaced(one: Entry, run: str, **fields: Any) -> Entry:
    """The same run handed in under another id."""
    return msgspec.structs.replace(one, run=f"{one.run.rpartition('/')[0]}/{run}", **fields)


@given(st.lists(st.tuples(*[st.booleans()] * 4), min_size=1, max_size=12), st.randoms())
def test_who_has_a_rank_and_that_nobody_else_moves_one(kinds: list[tuple[bool, ...]], draw: Any) -> None:
    entries, vouched = [], []
    for number, (trusted, flagged, _, behind) in enumerate(kinds):
        fields: dict[str, Any] = {"flags": (NEAR,) if flagged else (), "defend": ("retry",) if behind else ()}
        one = entry(number, 12, samples=8, **fields)
        entries.append(one)
        vouched += [one] if trusted else []
    allowed = {
        one.run: trusted and not behind and (cleared or not flagged)
        for one, (trusted, flagged, cleared, behind) in zip(entries, kinds, strict=True)
    }
    clear = {
        one.run: {"near-gold": Reasoned("read")} for one, kind in zip(entries, kinds, strict=True) if kind[2]
    }
    status = status_of(*vouched, cleared=clear)
    draw.shuffle(entries)
    board = board_of(entries, status)
    assert {row.run for row in board.rows} == set(allowed), "everybody is listed"
    assert {row.run: bool(row.rank) for row in board.rows} == allowed
    assert [row.rank for row in board.ranked] == list(range(1, len(board.ranked) + 1))
    for part in (board.ranked, board.rows[len(board.ranked) :]):
        values = [row.head.value for row in part if row.head]
        assert values == sorted(values, reverse=True)
    alone = [one for one in entries if allowed[one.run]]
    if alone:
        assert board_of(alone, status).ranked == board.ranked, "what has no rank moves none, and no mark"


def test_kinds_and_fingerprints_are_never_on_one_board() -> None:
    entries = [
        entry(number, 8, samples=6, kind=kind, fingerprint=fingerprint)
        for number, (kind, fingerprint) in enumerate(itertools.product(("core", "own"), ("a" * 32, "b" * 32)))
    ]
    found = boards(entries, status_of(*entries))
    assert len(found) == 5
    assert found[-1].fingerprint == "paper"
    for board in found[:-1]:
        assert len(board.rows) == 1
        assert {(row.entry.kind, row.entry.fingerprint) for row in board.rows} == {
            (board.kind, board.fingerprint)
        }


def test_the_newest_run_of_the_same_counts_and_the_others_are_its_history() -> None:
    old = entry(1, 8, samples=8)
    new = replaced(old, "20270101-ffffffffffff")
    other_mode = replaced(old, "20270102-ffffffffffff", mode="prompt")
    defended = replaced(old, "20270103-ffffffffffff", defend=("retry",))
    stranger = replaced(old, "20270104-ffffffffffff", submitter="mallory")
    board = board_of([stranger, new, old, defended, other_mode], status_of(old, new))
    assert [(row.run, row.superseded_by) for row in board.past] == [(old.run, new.run)]
    assert {row.run for row in board.rows} == {new.run, other_mode.run, defended.run, stranger.run}
    assert names(board) == [new.run]


def test_a_copy_is_flagged_and_no_upload_takes_a_rank_with_one() -> None:
    honest = entry(3, 8, samples=30)
    before = replaced(honest, "20200101-000000000000", submitter="mallory")
    after = replaced(honest, "20291231-000000000000", submitter="mallory", mode="prompt")
    board = board_of([honest, before, after], status_of(honest))
    flags = {row.run: [(flag.code, flag.of) for flag in row.flags] for row in board.rows}
    assert names(board) == [honest.run]
    assert flags == {honest.run: [], before.run: [], after.run: [("copy", before.run)]}
    both = board_of([honest, after], status_of(honest, after))
    assert names(both) == [honest.run], "of two that are vouched for the earlier one counts"
    cleared = status_of(honest, after, cleared={after.run: {"copy": Reasoned("the same weights")}})
    assert set(names(board_of([honest, after], cleared))) == {honest.run, after.run}


def test_withdrawn_runs_stand_nowhere_and_the_one_before_counts_again() -> None:
    old = entry(1, 8, samples=8)
    new = replaced(old, "20270101-ffffffffffff")
    board = board_of([old, new], status_of(old, withdrawn={new.run: Reasoned("asked for")}))
    assert [row.run for row in (*board.rows, *board.past)] == [old.run]


def test_p_is_the_exact_paired_test_over_samples_or_fishers_over_counts() -> None:
    a, b = entry(2, 8, samples=9), entry(5, 8, samples=9)
    assert a.core and b.core and a.core.verdicts
    grid = np.zeros((len(CONDITIONS), 9), dtype=bool)
    grid[3, :7] = True  # right in one type of seven samples; never right

    def with_bits(one: Entry, *bits: Any) -> Entry:
        assert one.core
        said = Verdicts(
            9, np.packbits(np.ones_like(grid)).tobytes(), tuple(np.packbits(x).tobytes() for x in bits)
        )
        core = msgspec.structs.replace(one.core, verdicts=said)
        return msgspec.structs.replace(one, core=core, repeats=len(bits))

    nothing, some = with_bits(a, np.zeros_like(grid)), with_bits(b, grid)
    assert p_of(nothing, some) == pytest.approx(2 / 2**7)
    assert p_of(some, nothing) == p_of(nothing, some)
    clean = grid.copy()
    clean[0] = True
    assert p_of(some, with_bits(b, clean)) == 1.0, "clean rows do not count"
    assert p_of(some, with_bits(b, grid, grid)) == 1.0, "repeats are shares"
    counted = msgspec.structs.replace(b, core=msgspec.structs.replace(b.core, verdicts=None))
    assert p_of(a, counted) == fisher_p(a.core.counts["perturbed"], b.core.counts["perturbed"])


def test_marks_and_places_say_what_the_tests_say() -> None:
    entries = [one for one in entries_of(30, samples=8) if not one.defend]
    board = board_of(entries, status_of(*entries))
    leader = board.ranked[0]
    for row in board.ranked[1:]:
        assert row.p_leader == p_of(leader.entry, row.entry)
        assert row.not_behind == (row.p_leader is not None and row.p_leader >= 0.05)
        assert row.places
        assert row.places.first <= row.rank <= row.places.last
    assert leader.p_leader is None
    assert not leader.not_behind
    assert any(row.not_behind for row in board.ranked), "made to be close"
    assert not board.ranked[-1].not_behind


def test_among_many_models_the_first_ones_are_tested(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(significance, "MOST_RANKED", 4)
    entries = [one for one in entries_of(30, samples=8) if not one.defend]
    ranked = board_of(entries, status_of(*entries)).ranked
    assert len(ranked) > 20 and not any(row.places for row in ranked[4:])
    assert all(row.places and row.places.last >= len(ranked) - 3 for row in ranked[:4])


@pytest.mark.parametrize(
    ("versions", "front_line", "expected"),
    [
        (["0.9.0", "1.0.0"], None, "1.0.0"),
        (["0.9.0", "1.0.0"], "0.9.0", "0.9.0"),
        (["0.9.0"], None, "0.9.0"),
        (["1.0.0", "2.0.0"], None, "1.0.0"),
        ([], None, None),
    ],
)
def test_the_front_page_stays_until_the_status_says_otherwise(
    versions: list[str], front_line: str | None, expected: str | None
) -> None:
    prints = {version: f"{version}{'a' * 27}" for version in versions}
    entries = [
        entry(number, 8, samples=6, version=version, fingerprint=prints[version])
        for number, version in enumerate(versions)
    ]
    status = status_of(front=prints[front_line] if front_line else None)
    found = front(boards(entries, status), status)
    assert (found and found.version) == expected


def test_the_papers_models_stand_as_printed_and_apart() -> None:
    board = paper_board()
    assert len(board.ranked) == len(board.rows) == len(paper.models()) == 21
    assert {row.tier for row in board.rows} == {"published"}
    for row in board.rows:
        printed = next(
            one
            for one in paper.table2()
            if one.metric == "perturbed" and one.model == row.entry.submission.model
        )
        assert row.head
        assert round(100 * row.head.value, 1) == pytest.approx(printed.value, abs=0.051) or round(
            row.head.value, 3
        ) == pytest.approx(printed.value, abs=0.00051)
    ours = board_of([entry(1, 8, samples=6)], Status(dataset="x"))
    assert not {row.run for row in ours.rows} & {row.run for row in board.rows}
    assert all(isinstance(row.entry.submission, Submission) for row in board.rows)
