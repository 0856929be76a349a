"""The pages in Chromium, from files: axe, phone and dark, without script; and search, filters and order."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from robustbench_tc.eval.leaderboard import entry, site

from ...browsing import VIEWS, Watched, readable
from .made import entries_of
from .test_site import hostile, live_entry, some_of_all, status_of


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site with a page of every kind, two pages of ranked runs, and one whose texts are attacks."""
    entries = [*some_of_all(), msgspec.structs.replace(hostile(7), run="lab/evil/20260101-eeeeeeeeeeee")]
    out = tmp_path_factory.mktemp("board") / "site"
    vouched = entry.Vouched(tier="reproduced", by="ada", day="2026-11-20", reason="the same verdicts")
    status = status_of(entries)
    ranked = {one.run: vouched for one in entries[:155]} | {one.run: vouched for one in entries[-6:]}
    site.build(
        entries,
        msgspec.structs.replace(status, tiers=ranked),
        out,
        repository="lab/results",
        dropped={"lab/gone/20260101-000000000000": "its entry does not fit its files"},
    )
    return out


def kinds_of_pages(folder: Path) -> list[str]:
    every = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.html"))
    tops = [name for name in every if "/" not in name]
    runs = [
        "model/lab0/Model-0-1B",
        "model/lab4/Model-4-5B",
        "model/lab/live-1",
        "model/lab/evil",
        "paper/Qwen3-14B",
    ]
    return [*tops, *(next(name for name in every if name.startswith(run)) for run in runs)]


@pytest.mark.parametrize("view", VIEWS)
def test_every_kind_of_page_can_be_read_named_and_reached(browser: Any, made: Path, view: str) -> None:
    watched = Watched(browser, **VIEWS[view], bypass_csp=True)
    names = kinds_of_pages(made)
    assert len(names) >= 12
    for name in names:
        page = watched.open(made / name)
        readable(page)
        assert page.title() != "owned", name
    watched.close()


def texts(page: Any, column: int) -> list[str]:
    """The values of a column of the page's first board, once it has settled."""
    page.wait_for_timeout(150)
    found: list[str] = (
        page.locator("section.board")
        .first.locator("tbody tr")
        .evaluate_all("(rows, at) => rows.map(row => row.cells[at].firstChild.textContent)", column)
    )
    return found


def test_search_filters_and_order_reach_every_run_from_a_folder(browser: Any, made: Path) -> None:
    watched = Watched(browser)
    page = watched.open(made / "index.html")
    board = page.locator("section.board").first
    first = texts(page, 1)
    assert len(first) == site.PAGE
    assert first == sorted(first, reverse=True)
    ranked = int(board.locator(".count").inner_text().split(" of ")[1].split()[0])
    board.get_by_role("button", name="Clean").click()
    clean = texts(page, 3)
    assert clean == sorted(clean, reverse=True)
    assert board.locator("th[aria-sort=descending]").inner_text() == "Clean"
    assert f"1 to {site.PAGE} of {ranked}" in board.locator(".count").inner_text()
    board.get_by_role("button", name="Later").click()
    assert len(texts(page, 3)) == ranked - site.PAGE
    assert max(texts(page, 3)) <= min(clean), "sorted over all pages"
    board.get_by_role("button", name="Clean").click()
    assert texts(page, 3) == sorted(texts(page, 3)), "the other way round"
    board.get_by_role("button", name="Clean").click()
    assert texts(page, 1) == first, "and by rank again"
    board.get_by_label("Shown").select_option("all")
    board.get_by_label("Search").fill("model-12 lab12")
    assert len(texts(page, 0)) >= 1
    assert all("Model-12" in name for name in board.locator("tbody tr th a").all_inner_texts())
    board.get_by_label("Search").fill("")
    board.get_by_label("Tier").select_option("unverified")
    assert set(texts(page, 10)) == {"unverified"}
    assert board.locator("tbody .rank").all_inner_texts()[0] == "–"
    board.get_by_label("Search").fill("nobody has this name")
    assert texts(page, 0) == []
    assert board.locator(".count").inner_text() == "None fits."
    board.get_by_label("Search").fill("<script>")
    board.get_by_label("Tier").select_option("")
    assert texts(page, 0) != []
    assert page.title() != "owned"
    board.locator("tbody a").first.click()
    assert "<script>" in page.locator("h1").inner_text()
    assert page.title() != "owned"
    watched.close()


def test_intervals_come_on_demand_and_all_is_read_without_script(browser: Any, made: Path) -> None:
    watched = Watched(browser, java_script_enabled=False)
    page = watched.open(made / "index.html")
    board = page.locator("section.board").first
    assert board.locator("tbody tr").count() == site.PAGE
    assert not board.locator("small.span").first.is_visible()
    board.get_by_label("95 % intervals").check()
    assert board.locator("small.span").first.is_visible()
    assert not board.get_by_label("Search").is_visible(), "what needs the script is not shown"
    assert page.get_by_role("img", name="perturbed accuracy of every run").is_visible()
    board.locator("nav.pager a").first.click()
    assert page.locator("section.board tbody tr").count() > 10
    watched.close()


def test_a_board_of_live_runs_and_of_own_tools_is_sorted_too(browser: Any, tmp_path: Path) -> None:
    entries = [*map(live_entry, range(4)), *entries_of(3, samples=20)]
    site.build(entries, entry.Status(dataset="x"), tmp_path / "site", repository=None)
    watched = Watched(browser)
    page = watched.open(tmp_path / "site" / "live.html")
    assert texts(page, 1) == ["0.560", "0.540", "0.520", "0.500"]
    page.get_by_role("button", name="Success", exact=True).click()
    page.get_by_role("button", name="Success", exact=True).click()
    assert texts(page, 1) == ["0.500", "0.520", "0.540", "0.560"]
    watched.close()
