"""Boards and their pages: who has a rank, what pages say, where links lead, that texts are inert."""

import gzip
import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag

import msgspec
import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st

from robustbench_tc.eval import paper
from robustbench_tc.eval.leaderboard import checker, site
from robustbench_tc.eval.leaderboard.boards import Board, boards, front, p_of, paper_board
from robustbench_tc.eval.leaderboard.entry import (
    Entry,
    Flag,
    LiveFigures,
    Reasoned,
    Status,
    Submission,
    Verdicts,
    Vouched,
)
from robustbench_tc.eval.stats import intervals, significance
from robustbench_tc.eval.stats.packs.live import Line

from ...pages import Page
from ...trees import tree
from .made import entries_of, entry

EVIL = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">\u202e"
NEAR = Flag(code="near-gold", value=0.99, n=40, of="letter")


def live_entry(number: int) -> Entry:
    share, loss = (
        intervals.Interval(0.5 + number / 50, 0.4, 0.8, 40, "hull"),
        intervals.Interval(0.2, 0.1, 0.3, 40, "mover", 0.01),
    )
    lines = tuple(
        Line(name=name, n=40, unmet=0, left_out=0, success=share, delta=loss, met=30, recovery=share,
             silent=4, false_success=(1, 3), omission=2, repetition=1, honest=3, unclear=2,
             false_failures=1, false_claims=0, ceiling=40, extra_steps=1.4, extra_tokens=None)
        for name in ("timeout_before", "explicit", "all")
    )  # fmt: skip
    return Entry(
        kind="live", run=f"lab/live-{number}/20260301-{number:012x}",
        submission=Submission(model=f"live-{number}"),
        mode="fc", dataset="live", version="1.0.0", fingerprint="e" * 32, checker="0.1",
        live=LiveFigures(episodes=80, clean=intervals.Interval(0.75, 0.6, 0.87, 40, "hull"), lines=lines),
    )  # fmt: skip


def again(number: int, day: str) -> str:
    """Another run of the same model."""
    return f"{entry(number, samples=20).run.rpartition('/')[0]}/{day}-aaaaaaaaaaaa"


def some_of_all(count: int = 160) -> list[Entry]:
    """Runs of every kind, of two dataset versions; some flagged, some of them superseded. `count`: runs of
    the core."""
    core = [
        msgspec.structs.replace(one, flags=(NEAR,)) if number % 9 == 4 else one
        for number, one in enumerate(entries_of(count, samples=20))
    ]
    newer = msgspec.structs.replace(core[0], run=again(0, "20270101"))
    older = [
        entry(number, 8, samples=20, run=again(number, "20250101"), version="0.9.0", fingerprint="d" * 32)
        for number in range(4)
    ]
    own = [
        entry(
            number, 8, samples=20, run=again(number, "20260202"), kind="own", fingerprint=str(number % 2) * 32
        )
        for number in range(20, 25)
    ]
    return [*core, newer, *older, *own, *map(live_entry, range(3))]


def status_of(entries: list[Entry]) -> Status:
    vouched = Vouched(
        tier="reproduced", by="ada", day="2026-11-20", reason="the same verdict in 3,960 of 3,977 rows"
    )
    return Status(
        dataset="lab/robustbench-tc@1.0.0",
        tiers={one.run: vouched for number, one in enumerate(entries) if number % 3 != 1},
        withdrawn={entries[6].run: Reasoned("its submitter asked")},
        cleared={entries[13].run: {"near-gold": Reasoned("the maintainers read its replies")}},
    )


@pytest.fixture(scope="module")
def entries() -> list[Entry]:
    return some_of_all(45)


DROPPED = {"lab/gone/20260101-000000000000": "its entry does not fit its files"}

ROWS = 25
"""Of a page here: with as few a site of several pages is quick to make."""


@pytest.fixture(scope="module", autouse=True)
def short_pages() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(site, "PAGE", ROWS)
        yield


@pytest.fixture(scope="module")
def made(entries: list[Entry], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("board") / "site"
    done = site.build(entries, status_of(entries), out, repository="lab/results", dropped=DROPPED)
    assert (done.runs, done.left_out) == (len(entries) - 1 + 21, 2)
    return out


def read(page: Path) -> Page:
    return Page(page.read_text("utf-8"))


def html_of(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*.html")))


def test_every_link_leads_somewhere_and_nothing_is_loaded_from_outside(made: Path) -> None:
    outside = set()
    for page in html_of(made):
        found = read(page)
        for link in (*found.links, *found.loads):
            if link.startswith("https://"):
                outside.add(re.sub(r"^(https://[^/]+).*", r"\1", link))
                assert link in found.links, f"{page} loads {link}"
            else:
                assert (page.parent / unquote(urldefrag(link).url)).is_file(), f"{page}: {link}"
    assert outside == {"https://arxiv.org", "https://huggingface.co"}
    for script in made.glob("*-rows.js"):
        name, _, rows = (
            script.read_text("utf-8").removeprefix("boardRows(").removesuffix(");\n").partition(", ")
        )
        assert f"{json.loads(name)}-rows.js" == script.name
        assert all((made / unquote(row[3])).is_file() for row in json.loads(rows))
    styles = (made / "site.css").read_text() + (made / "site.js").read_text()
    assert "url(" not in styles
    assert not re.search(r"https?://(?!www\.w3\.org/)", styles)


def test_every_run_is_reached_by_links_alone_from_the_first_page(made: Path, entries: list[Entry]) -> None:
    seen, new = set[Path](), {(made / "index.html").resolve()}
    while new:
        seen |= new
        links = {(page.parent / unquote(link)).resolve() for page in new for link in read(page).links}
        new = {path for path in links if path.suffix == ".html" and path.is_file()} - seen
    assert seen == set(html_of(made.resolve()))
    for one in entries:
        assert (made / f"model/{one.run}.html").is_file() == (one is not entries[6])


def test_the_pages_say_what_the_boards_and_entries_hold(made: Path, entries: list[Entry]) -> None:
    status = status_of(entries)
    for board in boards(entries, status):
        if board.fingerprint == "paper":
            continue
        for row in (*board.rows, *board.past):
            text = read(made / f"model/{row.run}.html").text
            assert row.head
            assert f"{row.head.value:.3f}" in text
            assert f"[{row.head.low:.3f}, {row.head.high:.3f}]" in text.replace("−", "-")
            assert row.tier in text
            assert ("It therefore has no rank" in text) == any(flag.code == "near-gold" for flag in row.flags)
            assert ("Superseded by" in text) == (row.superseded_by is not None)
            assert (
                f"https://huggingface.co/datasets/lab/results/tree/main/runs/{row.run}"
                in read(made / f"model/{row.run}.html").links
            )
    history = read(made / f"model/{again(0, '20270101')}.html")
    assert "2025-01-01" in history.text
    assert "0.9.0 (" in history.text
    assert f"{Path(entries[0].run).name}.html" in " ".join(history.links)
    cleared = read(made / f"model/{entries[13].run}.html").text
    assert "Cleared by a maintainer: the maintainers read its replies" in cleared
    index = read(made / "index.html").text
    leader = next(board for board in boards(entries, status) if board.version == "1.0.0").ranked[0]
    assert (
        f"{leader.entry.submission.model} leads: {leader.head.value:.3f}" in index if leader.head else False
    )
    assert "another version of the dataset" in index
    assert "Qwen3-14B" in index
    assert "withdrawn: its submitter asked" in index
    assert "its entry does not fit its files" in index
    assert "its figures are not the model's alone" in read(made / f"model/{entries[10].run}.html").text


def test_the_data_files_hold_every_run_and_its_counts(made: Path, entries: list[Entry]) -> None:
    table = {row["run"]: row for row in pq.read_table(made / "data.parquet").to_pylist()}
    headline = json.loads((made / "data.json").read_text())
    listed = {run["run"]: run for board in headline["boards"] for run in board["runs"]}
    assert set(table) == {one.run for one in entries if one is not entries[6]} | {
        run for run in listed if run.startswith("paper/")
    }
    assert set(headline["left_out"]) == {entries[6].run, "lab/gone/20260101-000000000000"}
    for one in entries:
        if one.core and one.run in table:
            row = table[one.run]
            assert (row["right_perturbed"], row["n_perturbed"]) == one.core.counts["perturbed"]
            assert row["perturbed"] == (one.core.metrics["perturbed"] or intervals.Interval(0, 0, 0, 0)).value
            assert listed.get(one.run, row)["rank"] == row["rank"]
        elif one.live:
            assert table[one.run]["success_all"] == one.live.lines[-1].success.value


def test_the_same_entries_in_any_order_make_the_same_bytes(
    made: Path, entries: list[Entry], tmp_path: Path
) -> None:
    site.build(entries[::-1], status_of(entries), tmp_path / "b", repository="lab/results", dropped=DROPPED)
    files, again = tree(made), tree(tmp_path / "b")
    assert files.keys() == again.keys()
    assert [name for name in files if files[name] != again[name]] == []


def test_a_site_is_replaced_an_empty_one_says_so_and_a_folders_has_no_links_to_the_hub(
    tmp_path: Path,
) -> None:
    out, status = tmp_path / "site", Status(dataset="x")
    site.build(entries_of(2, samples=20), status, out, repository=None)
    assert "No run has a rank yet" in read(out / "index.html").text
    assert len(list(out.glob("model/*/*/*.html"))) == 2
    links = {link for page in html_of(out) for link in read(page).links}
    assert not [link for link in links if "/tree/main/" in link]
    site.build([], status, out, repository=None)
    assert not list(out.glob("model/*/*/*.html"))
    assert "Qwen3-14B" in read(out / "index.html").text
    assert "No run yet" in read(out / "live.html").text


def hostile(number: int = 1) -> Entry:
    """An entry whose every text is an attack; the card is one too."""
    stated = Submission(
        model=EVIL, licence=EVIL, card=f"javascript:{EVIL}", agent=EVIL, contact=EVIL, note=EVIL
    )
    return entry(
        number,
        8,
        samples=20,
        submission=stated,
        submitter=EVIL,
        mode=EVIL,
        dataset=EVIL,
        version=EVIL,
        checker=EVIL,
    )


def test_no_text_of_a_run_is_ever_markup(tmp_path: Path) -> None:
    one = hostile()
    live = msgspec.structs.replace(live_entry(1), submission=one.submission, submitter=EVIL)
    vouched = Vouched(tier="reproduced", by=EVIL, day=EVIL, reason=EVIL)
    status = Status(
        dataset=EVIL, live=EVIL, own=(EVIL,), tiers={one.run: vouched, live.run: vouched},
        withdrawn={EVIL: Reasoned(EVIL)},
    )  # fmt: skip
    own = msgspec.structs.replace(one, kind="own", fingerprint="9" * 32, run="lab/own/20260101-0123456789ab")
    site.build([one, live, own], status, tmp_path / "site", repository="lab/results", dropped={"x/y/z": EVIL})
    pages = list(html_of(tmp_path / "site"))
    assert len(pages) == 3 + 21 + 4
    for page in pages:
        found = read(page)
        assert (found.open, found.scripts, found.inline) == ([], {"": [""]}, []), page
        assert not [link for link in found.links if "script" in link], page
        assert "\u202e" not in page.read_text("utf-8"), "nothing turns the direction of a text"
    assert "javascript:" in read(tmp_path / "site/model" / f"{one.run}.html").text, "shown as what it is"
    for drawing in (tmp_path / "site").rglob("*.svg"):
        assert "<script" not in drawing.read_text()


def test_only_a_web_address_becomes_a_link_and_one_that_search_engines_do_not_follow(tmp_path: Path) -> None:
    addresses = (
        "https://example.org/a?b=1&c=2",
        "javascript:alert(1)",
        "data:text/html,x",
        "//example.org",
        " https://example.org",
        "file:///etc",
    )
    runs = [
        entry(number, 8, samples=20, submission=Submission(model="m", card=address))
        for number, address in enumerate(addresses)
    ]
    site.build(runs, Status(dataset="x"), tmp_path / "site", repository=None)
    for one, address in zip(runs, addresses, strict=True):
        text = (tmp_path / f"site/model/{one.run}.html").read_text()
        links = re.findall(r'<a href="([^"]*)" rel="nofollow noopener">', text)
        assert links == ([address.replace("&", "&amp;")] if one is runs[0] else [])


def test_the_first_page_is_small_whatever_the_board_holds(made: Path) -> None:
    """The bound on the compressed page is 40,000 bytes for one of 100 rows."""
    assert len(list(made.glob("core-*-2.html"))) == 1
    assert len(gzip.compress((made / "index.html").read_bytes())) < 10_000 + 300 * ROWS
    assert (made / "index.html").read_text().count("<tr>") < 2 * ROWS + 30


# --- boards -------------------------------------------------------------------------------------------


def board_status_of(*vouched: Entry, **fields: Any) -> Status:
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
    entries = [
        entry(number, 12, samples=8, flags=(NEAR,) * flagged, defend=("retry",) * behind)
        for number, (_, flagged, _, behind) in enumerate(kinds)
    ]
    pairs = [*zip(entries, kinds, strict=True)]
    vouched = [one for one, (trusted, *_) in pairs if trusted]
    allowed = {
        one.run: trusted and not behind and (cleared or not flagged)
        for one, (trusted, flagged, cleared, behind) in pairs
    }
    clear = {one.run: {"near-gold": Reasoned("read")} for one, (_, _, cleared, _) in pairs if cleared}
    status = board_status_of(*vouched, cleared=clear)
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
    found = boards(entries, board_status_of(*entries))
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
    board = board_of([stranger, new, old, defended, other_mode], board_status_of(old, new))
    assert [(row.run, row.superseded_by) for row in board.past] == [(old.run, new.run)]
    assert {row.run for row in board.rows} == {new.run, other_mode.run, defended.run, stranger.run}
    assert names(board) == [new.run]
    board = board_of([old, new], board_status_of(old, withdrawn={new.run: Reasoned("asked for")}))
    assert [row.run for row in (*board.rows, *board.past)] == [old.run], "the one before counts again"


def test_a_copy_is_flagged_and_no_upload_takes_a_rank_with_one() -> None:
    honest = entry(3, 8, samples=30)
    before = replaced(honest, "20200101-000000000000", submitter="mallory")
    after = replaced(honest, "20291231-000000000000", submitter="mallory", mode="prompt")
    board = board_of([honest, before, after], board_status_of(honest))
    flags = {row.run: [(flag.code, flag.of) for flag in row.flags] for row in board.rows}
    assert names(board) == [honest.run]
    assert flags == {honest.run: [], before.run: [], after.run: [("copy", before.run)]}
    both = board_of([honest, after], board_status_of(honest, after))
    assert names(both) == [honest.run], "of two that are vouched for the earlier one counts"
    cleared = board_status_of(honest, after, cleared={after.run: {"copy": Reasoned("the same weights")}})
    assert set(names(board_of([honest, after], cleared))) == {honest.run, after.run}


def test_p_is_the_exact_paired_test_over_samples_or_fishers_over_counts() -> None:
    a, b = entry(2, 8, samples=9), entry(5, 8, samples=9)
    assert a.core and b.core and a.core.verdicts
    grid = np.zeros((len(checker.CONDITIONS), 9), dtype=bool)
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
    assert p_of(a, counted) == significance.fisher_p(a.core.counts["perturbed"], b.core.counts["perturbed"])


def test_marks_and_places_say_what_the_tests_say() -> None:
    entries = [one for one in entries_of(30, samples=8) if not one.defend]
    board = board_of(entries, board_status_of(*entries))
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
    ranked = board_of(entries, board_status_of(*entries)).ranked
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
    status = board_status_of(front=prints[front_line] if front_line else None)
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
