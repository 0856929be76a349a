"""The badge for a README, and the feed: well-formed, escaped, bounded."""

import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest

from robustbench_tc.eval.leaderboard.badge import SHOWN, badge
from robustbench_tc.eval.leaderboard.board import PAPER, paper_board
from robustbench_tc.eval.leaderboard.checks import Asked
from robustbench_tc.eval.leaderboard.feed import LATEST, News, feed
from robustbench_tc.eval.leaderboard.limits import Limits
from robustbench_tc.eval.leaderboard.moderation import Decision, file_name
from robustbench_tc.eval.leaderboard.row import Row
from robustbench_tc.eval.leaderboard.scoring import entries_of_paper

from .few import entry, submission
from .served import Served, serving

ATOM = "{http://www.w3.org/2005/Atom}"
HOSTILE = "<script>alert('1')</script>&\"\x00\x1b\ud800]]>"


@pytest.fixture(scope="module")
def row() -> Row:
    return next(row for row in paper_board(entries_of_paper()).rows if row.model == "o4-mini")


@pytest.fixture(scope="module")
def board(asked: Asked, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    pytest.importorskip("fastapi", reason="needs the extra leaderboard (make env-leaderboard)")
    folder = tmp_path_factory.mktemp("feed") / "results"
    with serving(folder, asked, limits=Limits()) as served:
        for number, user, right in ((1, "ann", 2), (2, "ann", 1), (3, "bob", 0)):
            made = submission(number, "Alpha-3B", user)
            add(served, made, {"CD": [right, right]}, folder.parent)
        served.boards.refresh()
        yield served


def add(served: Served, made: object, right: dict[str, list[int]], place: Path) -> None:
    run = place / "run"
    run.mkdir(exist_ok=True)
    for name in ("predictions.parquet", "run.json"):
        (run / name).write_bytes(b"{}")
    with served.store.locked():
        served.store.add(made, run, entry({"clean": [1, 1], **right}))  # type: ignore[arg-type]


@pytest.mark.parametrize("show", SHOWN)
def test_a_badge_says_its_figure_and_the_tier_in_words(row: Row, show: str) -> None:
    drawn = ElementTree.fromstring(badge(row, show))
    said = [one.text for one in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert said[0] == "RobustBench-TC" and said[1] is not None
    assert said[1].startswith(SHOWN[show]) and said[1].endswith("· published")
    assert "o4-mini" in drawn.attrib["aria-label"] and drawn.attrib["role"] == "img"
    assert not re.search(r"<script|<style|href|url\(|on\w+=", badge(row, show))


@pytest.mark.parametrize("show", SHOWN)
def test_a_badge_of_a_defended_run_has_no_figure(row: Row, show: str) -> None:
    text = badge(msgspec.structs.replace(row, defence="retry,schema"), show)
    drawn = ElementTree.fromstring(text)
    said = [one.text for one in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert said == ["RobustBench-TC", "defended run, no rank"]
    assert "(retry,schema)" in drawn.attrib["aria-label"] and "0." not in drawn.attrib["aria-label"]


def test_texts_fit_into_the_badge_whatever_the_font(row: Row) -> None:
    drawn = ElementTree.fromstring(badge(row))
    for one in drawn.iter("{http://www.w3.org/2000/svg}text"):
        assert float(one.attrib["x"]) + float(one.attrib["textLength"]) < float(drawn.attrib["width"])


def test_a_badge_escapes_what_it_shows(row: Row) -> None:
    hostile = msgspec.structs.replace(row, model="<script>alert('1')</script>&\"")
    assert "<script" not in badge(hostile)
    assert "<script>" in ElementTree.fromstring(badge(hostile)).attrib["aria-label"]


def test_a_name_stands_for_its_newest_run(board: Served) -> None:
    def tip(path: str) -> str:
        found = board.ask("GET", path)
        assert found.status == 200 and found.headers["content-type"] == "image/svg+xml"
        return ElementTree.fromstring(found.body).attrib["aria-label"]

    assert "perturbed" in tip("/badge/Alpha-3B.svg")
    by_user = {user: tip(f"/badge/Alpha-3B.svg?user={user}") for user in ("ann", "bob")}
    assert by_user["ann"] != by_user["bob"] == tip("/badge/Alpha-3B.svg")
    old, new = (submission(number, "Alpha-3B", "ann").id for number in (1, 2))
    assert tip(f"/badge/{new}.svg") == by_user["ann"] != tip(f"/badge/{old}.svg")
    assert "nothing is listed" in tip("/badge/Nobody-1B.svg") and "nothing is listed" in tip(
        "/badge/%3Cb%3E.svg"
    )
    assert "Δ reward" in tip("/badge/paper-o4-mini.svg?show=delta_reward")
    assert board.ask("GET", "/badge/o4-mini.svg").headers["access-control-allow-origin"] == "*"


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/badge/x", 404),
        ("/badge/" + "x" * 500 + ".svg", 404),
        ("/badge/x.svg?show=<b>", 422),
        ("/badge/..%2F", 404),
    ],
)
def test_other_addresses_are_no_badge(board: Served, path: str, status: int) -> None:
    assert board.ask("GET", path).status == status


def test_the_feed_has_what_atom_asks_for(board: Served) -> None:
    found = board.ask("GET", "/feed.xml")
    assert found.headers["content-type"] == "application/atom+xml"
    root = ElementTree.fromstring(found.body)
    for name in ("id", "title", "updated", "author"):
        assert root.find(ATOM + name) is not None, name
    entries = root.findall(ATOM + "entry")
    assert [one.findtext(ATOM + "title") for one in entries] == ["Alpha-3B by bob", *["Alpha-3B by ann"] * 2]
    ids = [one.findtext(ATOM + "id") for one in entries]
    assert len(set(ids)) == 3
    moments = [one.findtext(ATOM + "updated") for one in entries]
    assert moments == sorted(moments, reverse=True, key=str) and moments[0] == root.findtext(ATOM + "updated")
    for one in entries:
        link = one.find(ATOM + "link")
        assert (
            link is not None and board.ask("GET", link.attrib["href"].removeprefix(board.url)).status == 200
        )
    assert board.ask("GET", "/feed.xml", If_None_Match=found.headers["etag"]).status == 304


def test_the_feed_is_bounded_and_escaped() -> None:
    news = [
        News(
            at=f"2026-11-20T10:{n // 60:02}:{n % 60:02}+00:00",
            what="listed",
            about=f"id{n}",
            title=HOSTILE,
            text=HOSTILE,
            page=f"/model/id{n}",
        )
        for n in range(200)
    ]
    text = feed(news, 'https://x"><y')
    root = ElementTree.fromstring(text)
    assert len(root.findall(ATOM + "entry")) == LATEST
    assert "<script" not in text and root.findtext(f"{ATOM}entry/{ATOM}id", "").endswith("id199/listed")
    assert ElementTree.fromstring(feed([], "https://x")).findall(ATOM + "entry") == []


@pytest.mark.parametrize("host", ["x y", "x/../y", '"><script>', "x" * 300, "evil@x", "[::1", ""])
def test_a_host_that_is_none_is_refused(board: Served, host: str) -> None:
    assert board.ask("GET", "/feed.xml", Host=host).status == 400


def test_the_papers_board_has_no_news(board: Served) -> None:
    assert PAPER not in board.ask("GET", "/feed.xml").body.decode()


def test_what_is_hidden_is_news_with_its_reason(board: Served) -> None:
    folder = board.store.folder / "moderation"
    folder.mkdir(exist_ok=True)
    one = "20261121-000000000001"
    made = Decision(
        submission=one, action="hide", reason="<b>copied</b>", by="lee", at="2026-11-30T00:00:00+00:00"
    )
    path = folder / file_name(one, 1)
    path.write_bytes(msgspec.json.encode(made))
    try:
        root = ElementTree.fromstring(board.ask("GET", "/feed.xml").body)
        first = root.find(ATOM + "entry")
        assert first is not None and first.findtext(ATOM + "summary") == "<b>copied</b>"
        assert first.findtext(ATOM + "title") == f"Submission {one} is hidden by a maintainer"
    finally:
        path.unlink()
