"""The views of the board: filters, orders, pages, plots, heat map, matrix, and how large they may get."""

import gzip
import re

import msgspec
import pytest

from robustbench_tc import taxonomy
from robustbench_tc.eval.leaderboard import copies, namesakes, plots
from robustbench_tc.eval.leaderboard.board import PAPER, Board, paper_board, ranked
from robustbench_tc.eval.leaderboard.board_page import board_page
from robustbench_tc.eval.leaderboard.heatmap import heatmap_page
from robustbench_tc.eval.leaderboard.matrix import lines, matrix_page
from robustbench_tc.eval.leaderboard.origin import Origin
from robustbench_tc.eval.leaderboard.pages import breakable
from robustbench_tc.eval.leaderboard.places import places
from robustbench_tc.eval.leaderboard.progress import course, progress_page
from robustbench_tc.eval.leaderboard.query import (
    MEASURED,
    PAGE,
    SORT_NAMES,
    SORTS,
    Query,
    address,
    parse,
    select,
)
from robustbench_tc.eval.leaderboard.records import Metric, TypeLine
from robustbench_tc.eval.leaderboard.row import Figures, Row
from robustbench_tc.eval.leaderboard.scoring import entries_of_paper
from robustbench_tc.eval.leaderboard.types_page import lines_of, types_page
from robustbench_tc.eval.leaderboard.views import VIEWS

from .few import entry


@pytest.fixture(scope="module")
def paper() -> Board:
    return paper_board(entries_of_paper())


CROWD = 1_500
"""Submissions of a large board: several times what a plot or a course of time draws."""

LAST = CROWD // PAGE

FIGURES = [
    Figures.of(
        entry({"clean": [1] * 8, "CD": [1] * good + [0] * (8 - good), "TD": [1] * good + [0] * (8 - good)})
    )
    for good in range(9)
]


def row(number: int, **changes: object) -> Row:
    """A made-up row; every value differs a little from the next one's."""
    made = Row(
        id=f"20261120-{number:012x}",
        model=f"Model-{number}",
        family=f"family-{number % 700}",
        user="ann",
        params_b=0.5 + number % 97,
        mode="fc",
        submitted_at=f"2026-11-{1 + number % 28:02d}T10:00:00+00:00",
        tier="unverified",
        licence=f"licence {number % 900}",
        weights="open" if number % 2 else "closed",
        tokens=300.0 + number,
        latency_s=1.5,
        price=0.01 + number % 89,
        figures=FIGURES[number % 9],
    )
    return msgspec.structs.replace(made, **changes)


def board(rows: list[Row]) -> Board:
    return Board(
        version="1", dataset_version="1", fingerprint="f" * 32, paired=True, rows=tuple(ranked(rows))
    )


def test_everything_that_can_be_sorted_by_has_a_name_and_an_order(paper: Board) -> None:
    assert {key for names in SORT_NAMES.values() for key in names} == set(SORTS)
    for key, (metric, _, more) in MEASURED.items():
        for end in ("value", "low", "high"):
            name = key if end == "value" else f"{key}_{end}"
            rows = select(paper, Query(version=PAPER, sort=name), whole=True).rows
            values = [getattr(one.figures.metric(metric), end) for one in rows]
            known = [value for value in values if value is not None]
            assert known == sorted(known, reverse=more) and values[len(known) :] == [None] * (21 - len(known))


def test_weights_licence_and_days_are_filtered_by() -> None:
    made = board([row(1, weights=None, licence=None), row(2), row(3), row(4, submitted_at=None)])

    def shown(**asked: str) -> set[str]:
        query, ignored = parse({"version": "1", **asked}, ["1"])
        assert not ignored
        return {one.model for one in select(made, query).rows}

    assert shown(weights="open") == {"Model-3"} and shown(weights="unstated") == {"Model-1"}
    assert shown(licence="licence 2") == {"Model-2"}
    assert shown(since="2026-11-04") == {"Model-3"}
    assert shown(since="2026-11-03", until="2026-11-04") == {"Model-2", "Model-3"}
    assert shown(until="2026-11-02") == {"Model-1"}
    query, ignored = parse({"version": "1", "since": "2026-13-01", "until": "<b>", "weights": "x"}, ["1"])
    assert set(ignored) == {"since=2026-13-01", "until=<b>", "weights=x"} and not query.narrowed


def test_runs_of_one_name_are_told_apart_by_as_little_as_it_takes() -> None:
    same = {"model": "Same-3B"}
    labels = namesakes.labels([row(1, **same), row(2, user="bob", **same), row(3)])
    assert labels == {row(1).id: "ann", row(2).id: "bob"}
    labels = namesakes.labels([row(1, **same), row(2, mode="prompt", model="SAME-3b")])
    assert set(labels.values()) == {"fc", "prompt"}
    labels = namesakes.labels([row(1, **same), row(2, defence="schema", **same)])
    assert labels == {row(1).id: "undefended", row(2).id: "schema"}
    many = [row(1, **same), row(2, user="bob", **same), row(3, user="bob", mode="prompt", **same)]
    assert sorted(namesakes.labels(many).values()) == ["ann, fc", "bob, fc", "bob, prompt"]
    alike = [row(1, **same, submitted_at=None), row(2, **same, submitted_at=None)]
    assert len(set(namesakes.labels(alike).values())) == 2
    page = board_page(select(board(many), Query(version="1")), board(many), [board(many)], "1")
    assert '<span class="apart">bob, prompt</span>' in page


def test_a_matrix_says_better_on_one_side_and_worse_on_the_other(paper: Board) -> None:
    found = lines(paper.rows, "perturbed")
    for i, line in enumerate(found):
        assert line.cells[i] is None
        for j, cell in enumerate(line.cells):
            if cell is not None:
                other = found[j].cells[i]
                assert other is not None and other.p == cell.p
                assert {cell.sign, other.sign} in ({"better", "worse"}, {""})
                assert (cell.sign != "") == (cell.p < 0.05)
                assert cell.sign != "better" or i < j
    allowed = places(paper, "perturbed")
    for line in found:
        # Of a board no larger than its matrix the ranks follow from it.
        assert allowed[line.row.id] == (1 + line.worse, len(found) - line.better)


def test_the_frontier_is_drawn_named_and_said(paper: Board) -> None:
    found = {plot.key: plot for plot in plots.plots(paper.rows, {})}
    assert list(found) == list(plots.SIDES)
    assert found["price"].figure == "" and found["price"].models == 0
    assert found["size"].left_out == 1
    best = max(paper.rows, key=lambda one: one.figures.metric("perturbed").value or 0)
    for plot in found.values():
        assert not plot.figure or best.id in plot.frontier
        for name in plot.frontier:
            assert f'href="/model/{name}"' in plot.figure


@pytest.fixture(scope="module")
def crowd() -> Board:
    """More submissions than any page may show."""
    return board([row(number) for number in range(CROWD)])


def test_however_many_submissions_make_no_page_above_150_kb(crowd: Board) -> None:
    query = Query(version="1")
    view, every = select(crowd, query), select(crowd, query, whole=True, marks=False).rows
    made = {
        "board": board_page(view, crowd, [crowd], "1", {}),
        "intervals": board_page(
            msgspec.structs.replace(view, query=Query(version="1", show="intervals")), crowd, [crowd], "1"
        ),
        "plots": plots.plots_page(view, every, crowd, [crowd], "1"),
        "heat map": heatmap_page(view, crowd, [crowd], "1"),
        "matrix": matrix_page(view, crowd, [crowd], "1", {}),
        "types": types_page(crowd, [crowd], "1"),
        "progress": progress_page(crowd, [crowd], "1"),
    }
    sizes = {name: len(gzip.compress(page.encode(), 6)) for name, page in made.items()}
    assert max(sizes.values()) < 150_000, sizes
    assert made["board"].count('class="num rank"') == PAGE == made["heat map"].count('scope="row"')
    assert f"1–100 of {CROWD} models" in made["board"] and f"Page 1 of {LAST}" in made["board"]
    assert len(re.findall("<circle", made["plots"])) <= plots.POINTS * len(plots.SIDES)


def test_the_best_so_far_is_of_runs_that_have_ranks() -> None:
    made = board(
        [
            row(1, figures=FIGURES[8]),
            row(2, figures=FIGURES[2], tier="reproduced"),
            row(3, figures=FIGURES[7], tier="reproduced", flags=(copies.COPY,)),
            row(4, figures=FIGURES[5], tier="endpoint-matched"),
        ]
    )
    found = course(made)
    assert [one.leads for one in found] == [False, True, False, True]
    two, five = (FIGURES[good].metric("perturbed").value for good in (2, 5))
    assert [one.best for one in found] == [None, two, two, five]
    page = progress_page(made, [made], "1")
    assert page.count("new best") == 2 and "an unverified or flagged run" in page
    alone = board([row(1)])
    page = progress_page(alone, [alone], "1")
    assert "new best" not in page and page.count("<circle") == 1


def test_pages_follow_each_other_and_the_last_has_no_next(crowd: Board) -> None:
    seen: list[str] = []
    for number in (1, 2, LAST, LAST + 1):
        view = select(crowd, Query(version="1", page=number))
        page = board_page(view, crowd, [crowd], "1")
        assert ('rel="next"' in page) == (number < LAST) and ('rel="prev"' in page) == (number > 1)
        seen += [one.id for one in view.rows] if number <= 2 else []
    assert len(set(seen)) == 2 * PAGE
    assert address(Query(version="1", page=3), "1", sort="clean") == "/?sort=clean"


def test_only_pages_of_the_hub_are_linked() -> None:
    here = Origin("/home/ann/data", "acme/results")
    assert here.dataset_address is None
    assert here.results_address == "https://huggingface.co/datasets/acme/results"
    assert Origin("../x").dataset_address is None and Origin().dataset_address is None


def test_every_tab_leads_to_a_page() -> None:
    from robustbench_tc.eval.leaderboard.tabs import TABS

    assert {tab.path for tab in TABS} >= set(VIEWS) - {"/"}
    assert len({tab.here for tab in TABS}) == len(TABS)


def test_rows_without_a_rank_are_one_click_away_on_every_view() -> None:
    made = board([row(1, tier="reproduced"), row(2, tier="reproduced"), row(3, tier="reproduced"), row(4)])
    view = select(made, Query(version="1"))
    shown = [
        plots.plots_page(view, view.rows, made, [made], "1"),
        heatmap_page(view, made, [made], "1"),
        matrix_page(view, made, [made], "1", places(made, "perturbed")),
        board_page(view, made, [made], "1"),
    ]
    assert all("Show 1 without a rank" in page and "unranked=on" in page for page in shown)
    assert set(places(made, "perturbed")) == {one.id for one in view.rows}


def test_the_best_under_a_type_is_a_model_with_a_rank_while_there_is_one() -> None:
    def figures(good: int) -> Figures:
        lines = {code: TypeLine(accuracy=Metric(good / 8), delta=Metric(0.0)) for code in taxonomy.codes()}
        return Figures.of(msgspec.structs.replace(entry({"CD": [1] * good + [0] * (8 - good)}), types=lines))

    better, trusted = row(1, figures=figures(8)), row(2, figures=figures(3), tier="reproduced")
    for rows, best in (([better, trusted], "Model-2"), ([better, row(3, figures=figures(1))], "Model-1")):
        [line] = [line for line in lines_of(board(rows)) if line.code == "CD"]
        assert line.best is not None and line.best.model == best and line.accuracy.models == 2
    assert all(line.best is None for line in lines_of(board([])))


def test_names_break_where_they_are_made_of_parts_and_turn_nothing() -> None:
    assert breakable("a/b_<c>") == "a/<wbr>b_<wbr>&lt;c&gt;"
    made = board([row(1, model="x\u202eevil")])
    page = board_page(select(made, Query(version="1")), made, [made], "1")
    assert "x\\u202eevil</a>" in page
