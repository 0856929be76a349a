"""The boards: the paper's values and order, ranking, marks, superseding, differences."""

import itertools

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robustbench_tc.eval import paper
from robustbench_tc.eval.leaderboard.board import (
    PAPER,
    Board,
    boards,
    differences,
    marked,
    p_of,
    paper_board,
    ranked,
    row_of,
)
from robustbench_tc.eval.leaderboard.board_page import blind_of, board_page
from robustbench_tc.eval.leaderboard.heatmap import heatmap_page
from robustbench_tc.eval.leaderboard.index import Kept
from robustbench_tc.eval.leaderboard.pages import sure_gains
from robustbench_tc.eval.leaderboard.query import Query, address, parse, select
from robustbench_tc.eval.leaderboard.records import Entry, Gain, Metric, TypeLine, Usage, Verification
from robustbench_tc.eval.leaderboard.row import Figures, Row
from robustbench_tc.eval.leaderboard.scoring import entries_of_paper
from robustbench_tc.eval.stats.blind import TypeFigures
from robustbench_tc.eval.stats.significance import fisher_p

from .few import entry, submission


@pytest.fixture(scope="module")
def published() -> dict[str, Entry]:
    return entries_of_paper()


def test_the_papers_board_equals_table_2_in_all_126_cells(published: dict[str, Entry]) -> None:
    board = paper_board(published)
    shown = {row.model: row.figures for row in board.rows}
    printed = paper.table2()
    assert len(printed) == 126 and len(shown) == 21
    wrong = [
        (cell.model, cell.metric)
        for cell in printed
        if f"{shown[cell.model].metric(cell.metric).value:.3f}" != f"{cell.value:.3f}"
    ]
    assert wrong == []


def test_the_papers_board_is_in_the_order_of_perturbed_accuracy(published: dict[str, Entry]) -> None:
    board = paper_board(published)
    keys = []
    for row in board.rows:
        correct, n = row.figures.counts("perturbed") or (0, 0)
        keys.append((-correct / n, -correct, row.model.casefold()))
    assert keys == sorted(keys)
    assert [row.rank for row in board.rows] == list(range(1, 22))
    assert not board.paired and {row.tier for row in board.rows} == {"published"}
    leader, second = marked(board.rows[:2], board.rows[0], "perturbed")
    assert leader.p_leader is None
    counts = [one.figures.counts("perturbed") or (0, 0) for one in (leader, second)]
    assert second.p_leader == fisher_p(*counts)


def of(right: dict[str, list[int]]) -> Figures:
    return Figures.of(entry(right))


def row(model: str, found: Entry, row_id: str = "") -> Row:
    return Row(
        id=row_id or model,
        model=model,
        family=model,
        user="ann",
        params_b=None,
        mode="fc",
        submitted_at="2026-11-20T10:00:00+00:00",
        tier="reproduced",
        figures=Figures.of(found),
    )


def test_ties_go_by_correct_count_and_then_by_name() -> None:
    once = entry({"CD": [1, 1, 0, 0]})
    twice = entry({"CD": [2, 2, 0, 0]}, repeats=2)
    rows = [row("b", once), row("C", once), row("a", once), row("z", twice)]
    for given_order in itertools.permutations(rows):
        assert [one.model for one in ranked(given_order)] == ["z", "a", "b", "C"]


def test_a_board_can_be_ranked_by_any_type() -> None:
    one = row("one", entry({"CD": [1, 1, 1, 1], "TD": [0, 0, 0, 0]}))
    two = row("two", entry({"CD": [0, 0, 0, 0], "TD": [1, 1, 0, 0]}))
    assert [found.model for found in ranked([two, one])] == ["one", "two"]
    assert [found.model for found in ranked([two, one], "TD")] == ["two", "one"]
    assert [found.model for found in ranked([two, one], "reward")] == ["one", "two"]


def test_the_mark_is_a_paired_test_over_clean_ids() -> None:
    # Ten samples on which one is always right and the other never: 2 / 2**10.
    a, b = of({"CD": [1] * 10}), of({"CD": [0] * 10})
    assert p_of(a, b, "CD") == pytest.approx(2 / 2**10)
    assert p_of(a, a, "perturbed") == 1.0
    # The same ten, but every flip of one kind has its counterpart.
    assert p_of(of({"CD": [1, 0] * 5}), of({"CD": [0, 1] * 5}), "CD") == 1.0


def test_counts_alone_are_tested_as_independent() -> None:
    a, b = of({"CD": [1] * 10}), of({"CD": [0] * 10})
    blind = msgspec.structs.replace(b, verdicts=None)
    assert p_of(a, blind, "CD") == fisher_p((10, 10), (0, 10))


@given(st.lists(st.lists(st.integers(0, 1), min_size=6, max_size=6), min_size=2, max_size=6))
def test_ranking_is_a_permutation_and_never_rises(found: list[list[int]]) -> None:
    rows = [row(f"m{i}", entry({"CD": verdicts})) for i, verdicts in enumerate(found)]
    order = ranked(rows)
    assert sorted(one.id for one in order) == sorted(one.id for one in rows)
    shares = [one.figures.counts("perturbed") or (0, 0) for one in order]
    assert shares == sorted(shares, reverse=True)
    assert [one.rank for one in order] == list(range(1, len(found) + 1))
    leader, *others = marked(order, order[0], "perturbed")
    assert leader.p_leader is None
    assert all(one.p_leader is not None and 0 < one.p_leader <= 1 for one in others)


def test_differences_are_paired_and_signed_b_minus_a() -> None:
    a, b = (
        of({"clean": [1, 1, 1, 1], "CD": [0, 0, 1, 0]}),
        of({"clean": [1, 1, 1, 0], "CD": [1, 1, 1, 0]}),
    )
    found = {one.name: one for one in differences(a, b)}
    assert found["clean"].difference.value == -0.25
    assert found["CD"].difference.value == 0.5 and found["CD"].difference.method == "mover"
    assert found["CD"].p_holm is not None and found["clean"].p_holm is None
    assert np.isclose(found["perturbed"].difference.value, 2 / (22 * 4))


def test_boards_are_apart_by_version_and_the_newest_submission_counts(published: dict[str, Entry]) -> None:
    good, bad = entry({"CD": [1, 1]}), entry({"CD": [0, 1]})
    made = [
        submission(0, "one"),
        submission(1, "two"),
        submission(2, "one"),
        submission(3, "one", user="bob"),
        submission(4, "one", fingerprint="e" * 32),
        submission(5, "no entry"),
    ]
    entries = {one.id: bad if one.id == made[2].id else good for one in made[:5]}
    verified = Verification(
        submission=made[1].id,
        verified_at="",
        by="",
        rows=1,
        agree=1,
        submitted=1,
        repeated=1,
        p=1,
        predictions_sha256="",
        package_version="",
    )
    found = boards(made, {made[1].id: verified}, entries, published)
    assert list(found) == ["1.0.0-eeeeeeee", "1.0.0-ffffffff", PAPER]
    board = found["1.0.0-ffffffff"]
    assert [(one.model, one.user, one.tier) for one in board.rows] == [
        ("two", "ann", "reproduced"),
        ("one", "bob", "unverified"),
        ("one", "ann", "unverified"),
    ]
    assert [(one.id, one.superseded_by, one.rank) for one in board.past] == [(made[0].id, made[2].id, 0)]
    assert isinstance(board, Board) and board.row(made[0].id) is not None and board.row("x") is None


def test_without_submissions_there_is_the_papers_board(published: dict[str, Entry]) -> None:
    assert list(boards([], {}, {}, published)) == [PAPER]


# --- what needs no reading --------------------------------------------------------------------------------


def test_reference_lines_stand_below_the_models_and_are_not_entrants() -> None:
    counted = TypeFigures("CD", 10, 0.5, {"picks-best-offer": 10})
    trained = msgspec.structs.replace(counted, classifier=4)
    ones = {"clean": [1, 1], "CD": [0, 1]}
    entries = {
        submission(1, "a").id: msgspec.structs.replace(entry(ones), needs_no_reading=(counted,)),
        submission(2, "b").id: msgspec.structs.replace(entry(ones), needs_no_reading=(trained,)),
        submission(3, "c").id: entry(ones),
    }
    made = boards([submission(1, "a"), submission(2, "b"), submission(3, "c")], {}, entries, {})
    board = next(iter(made.values()))
    assert [line.name for line in board.reference] == ["picks-best-offer", "registry-classifier", "chance"]
    assert [row.model for row in board.rows] == ["a", "b", "c"]
    assert made[PAPER].reference == ()
    assert [blind_of(board.reference[1], focus) for focus in ("CD", "reward", "TD")] == [0.4, 0.4, None]

    def shown(one: Board, focus: str) -> str:
        view = select(one, Query(version=one.version, focus=focus))
        return board_page(view, one, list(made.values()), board.version)

    for focus in ("perturbed", "reward", "CD"):
        assert shown(board, focus).count("reference, reads no request") == 3
    view = select(board, Query(version=board.version))
    assert "references, not entrants" in heatmap_page(view, board, list(made.values()), board.version)
    assert "reference, reads no request" not in shown(made[PAPER], "perturbed")


def test_a_type_is_worth_fixing_only_beyond_chance() -> None:
    """Net losses that are more than chance after Holm, most first; a model that guesses is promised
    nothing."""
    made = entry({"clean": [1, 1, 1, 1], "CD": [0, 0, 1, 0]})
    rises = {"TD": 0.2, "CD": 0.1, "CD_NT": -0.1}
    gains = tuple(Gain(code, 30, 2, rise, None) for code, rise in rises.items())
    lines = {
        code: TypeLine(accuracy=Metric(), delta=Metric(), p_holm=p)
        for code, p in (("CD", 0.001), ("TD", 0.2), ("CD_NT", 0.001), ("TD_NT", None))
    }
    found = sure_gains(msgspec.structs.replace(made, gains=gains, types=lines))
    assert [one.type_code for one in found] == ["CD"]
    assert sure_gains(msgspec.structs.replace(made, gains=())) == []


# --- rows -------------------------------------------------------------------------------------------------


def test_a_row_holds_what_its_entry_says(published: dict[str, Entry]) -> None:
    for made in (*published.values(), entry({"CD": [1, 2, 0], "TD": [2, 2, 2]}, repeats=2)):
        found = Figures.of(made)
        assert {name: found.metric(name) for name in made.metrics} == made.metrics
        assert {name: found.counts(name) for name in made.counts} == made.counts
        for code, line in made.types.items():
            assert found.type(code) == (line.accuracy, line.delta)
        assert msgspec.msgpack.decode(msgspec.msgpack.encode(found), type=Figures) == found


@pytest.mark.parametrize(
    "wrong",
    [
        {"metrics": {}},
        {"counts": {}},
        {"counts": {"perturbed": (10**400, 1), "clean": (1, 1)}},
        {"verdicts": {"CD": "11", "TD": "1"}},
        {"verdicts": {"CD": "x1"}},
    ],
)
def test_what_is_no_entry_of_a_run_is_no_row(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"^its? "):
        Figures.of(msgspec.structs.replace(entry({"CD": [1, 1]}), **wrong))


def test_price_and_tokens_are_said_only_where_they_are_known() -> None:
    used = Kept.of(msgspec.structs.replace(entry({"CD": [1]}), usage=Usage(1500.0, 500.0, 2.5)))
    priced = msgspec.structs.replace(submission(1, "a"), price_in=2.0, price_out=10.0)
    found = row_of(priced, used)
    assert (found.tokens, found.latency_s, found.price) == (2000.0, 2.5, 8.0)  # 3 + 5 dollars a million
    assert row_of(submission(1, "a"), used).price is None
    plain = row_of(priced, Kept.of(entry({"CD": [1]})))
    assert (plain.tokens, plain.latency_s, plain.price) == (None, None, None)


def test_a_board_is_shown_in_pages_of_a_hundred() -> None:
    rows = [row(f"m{i:03}", entry({"CD": [1, i % 2]}), f"id{i:03}") for i in range(205)]
    board = Board(version="v", dataset_version="v", fingerprint="f", paired=True, rows=tuple(ranked(rows)))
    whole = select(board, Query(version="v"), whole=True)
    seen = [select(board, Query(version="v", page=page)) for page in (1, 2, 3)]
    assert [len(one.rows) for one in seen] == [100, 100, 5] and {one.fits for one in seen} == {205}
    assert tuple(one for view in seen for one in view.rows) == whole.rows
    assert select(board, Query(version="v", page=99)).rows == seen[2].rows  # beyond the last is the last
    assert address(Query(version="v", page=2), "v", sort="clean") == "/?sort=clean"
    assert parse({"page": "2"}, ["v"]) == (Query(version="v", page=2), ())
    for wrong in ("0", "-1", "x", "9" * 70):
        assert parse({"page": wrong}, ["v"]) == (Query(version="v"), (f"page={wrong}",))
