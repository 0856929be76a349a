"""The tab of live runs and their API: figures of `rbtc live report`, and nothing of them anywhere else."""

import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest

from robustbench_tc.eval.leaderboard import live_board, live_query
from robustbench_tc.eval.leaderboard.checks import Asked
from robustbench_tc.eval.leaderboard.limits import Limits
from robustbench_tc.eval.leaderboard.live_data import LiveAsked
from robustbench_tc.eval.leaderboard.live_page import live_page, run_page
from robustbench_tc.eval.leaderboard.moderation import Decision
from robustbench_tc.eval.leaderboard.store import Store
from robustbench_tc.eval.leaderboard.tiers import Flag
from robustbench_tc.eval.live.after import score_live
from robustbench_tc.eval.live.report import report_live

pytest.importorskip("fastapi", reason="needs the extra leaderboard (make env-leaderboard)")

from . import live_runs
from .conftest import RunOf
from .served import Served, serving

Site = tuple[Served, dict[str, str]]


@pytest.fixture(scope="module")
def site(
    tmp_path_factory: pytest.TempPathFactory,
    asked: Asked,
    live_asked: LiveAsked,
    live_run: Path,
    run_of: RunOf,
) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("live-pages")
    agent = live_runs.played(folder / "agent", live_asked, "gives-up", model="Agent-9B")
    with serving(folder / "results", asked, limits=Limits(per_day=50), live=live_asked) as served:
        before = everything(served)
        ids = {"core": served.listed(run_of("silent", model="Alpha-3B"))}
        core = everything(served)
        assert core != before
        ids |= {"live": served.listed(live_run), "agent": served.listed(agent)}
        assert everything(served) == core, "a live run changes nothing of the others"
        yield served, ids


def everything(served: Served) -> list[bytes]:
    """What the board says of runs over the rows, in every form."""
    version = next(iter(served.boards.all()))
    paths = ("/", "/board.csv", "/board.json", "/plots", "/heatmap", "/matrix", "/progress", "/packs",
             "/defences", "/api/v1/boards", f"/api/v1/boards/{version}/rows",
             f"/api/v1/boards/{version}/rows.parquet", "/badge/Alpha-3B.svg")  # fmt: skip
    return [served.ask("GET", path).body for path in paths]


def text_of(served: Served, path: str) -> str:
    found = served.ask("GET", path)
    assert found.status == 200, (path, found.body[:300])
    assert "script-src" not in found.headers["content-security-policy"]
    assert b"<script" not in found.body
    return found.body.decode()


def cells(html: str, table: str) -> list[list[str]]:
    """The texts of the rows of a table, by its label."""
    region = html[html.index(f'aria-label="{table}"') :]
    rows = re.findall(r"<tr>(.*?)</tr>", region[: region.index("</table>")], re.S)
    found = (re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.S) for row in rows)
    return [[" ".join(re.sub(r"<[^>]*>", " ", cell).split()) for cell in row] for row in found]


def test_the_page_of_a_run_has_the_numbers_of_the_live_report(
    site: Site, live_run: Path, live_release: Path, tmp_path: Path
) -> None:
    served, ids = site
    score_live(live_run, dataset=str(live_release))
    report_live(live_run, tmp_path / "report", dataset=str(live_release))
    made = msgspec.json.decode((tmp_path / "report" / "live.json").read_bytes())
    costs, effects = made["tables"]
    html = text_of(served, f"/live/{ids['live']}")
    shown = {row[0]: row[1:] for row in cells(html, "What each fault costs")}
    for name, right, success, *rest in costs["rows"]:
        mine = shown[name]
        assert mine[:2] == [right, success]
        if name == "clean":
            continue
        *others, harm, calls, tokens = rest
        omission, _, repetition = harm.partition(" / ")
        wanted = [*others, omission, repetition, calls, tokens]
        assert mine[2:-1] == [one or "–" for one in wanted]
    table = {row[0]: row[1:] for row in cells(html, "Side effects")}
    for name, *numbers in effects["rows"]:
        assert table[name] == [number or "–" for number in numbers]
    assert "Episodes, call by call" in html and "was cut off" not in html


def test_the_tab_has_the_same_numbers_for_the_focus(site: Site) -> None:
    served, ids = site
    entry = served.store.live_entry(ids["live"])
    assert entry is not None
    for focus in ("all", "silent_no_op"):
        html = text_of(served, f"/live?focus={focus}")
        [mine, agents] = [row for row in cells(html, "Live runs") if row[0] == "–"]
        line = entry.line(focus)
        assert line is not None
        spelled = f"{line.success.value:.2f} [{line.success.low:.2f}, {line.success.high:.2f}]"
        assert mine[2].endswith(spelled) and mine[1].startswith("Alpha-3B")
        assert mine[2].startswith(f"{round(line.success.value * line.n)} / {line.n}")
        assert agents[1].startswith("Agent-9B") and "reference-agent" in agents[3]
        assert [int(mine[at]) for at in (7, 8, 10, 11)] == [
            line.honest, line.silent, line.omission, line.repetition
        ]  # fmt: skip
    clean = text_of(served, "/live?focus=clean")
    assert "clean episodes" in clean


def test_the_tab_sorts_and_passes_over_what_means_nothing(site: Site) -> None:
    served, _ = site
    for key in live_query.SORTS:
        for order in ("asc", "desc"):
            html = text_of(served, f"/live?sort={key}&dir={order}")
            assert f'aria-sort="{order}ending"' in html, key
    up, down = (
        [
            row[1].split()[0]
            for row in cells(text_of(served, f"/live?sort=model&dir={order}"), "Live runs")[1:]
        ]
        for order in ("asc", "desc")
    )
    assert up == down[::-1] == ["Agent-9B", "Alpha-3B"]
    html = text_of(served, "/live?sort=%3Cscript%3E&focus=nothing&version=x&page=0")
    for word in ("sort=&lt;script&gt;", "focus=nothing", "version=x", "page=0"):
        assert word in html


def test_programs_get_live_runs_from_their_own_routes(site: Site, live_run: Path) -> None:
    served, ids = site
    [board] = served.get("/api/v1/live")["boards"]
    assert [row["id"] for row in board["rows"]] == [ids["live"], ids["agent"]]
    assert {row["kind"] for row in board["rows"]} == {"live"}
    one = served.get(f"/api/v1/live/runs/{ids['live']}")
    entry = served.store.live_entry(ids["live"])
    assert entry is not None
    assert one["faults"]["all"]["success"]["value"] == entry.line("all").success.value  # type: ignore[union-attr]
    raw = served.ask("GET", one["links"]["journal.jsonl"])
    assert raw.body == (served.store.path(ids["live"]) / "journal.jsonl").read_bytes()
    assert served.ask("GET", f"/api/v1/live/runs/{ids['live']}/record.json").status == 404
    assert served.ask("GET", f"/api/v1/live/runs/{ids['core']}").status == 404
    assert served.ask("GET", f"/api/v1/models/{ids['live']}").status == 404
    assert served.ask("GET", "/api/v1/live?version=nothing").status == 404
    assert served.ask("GET", "/api/v1/live?x=1").status == 422
    assert served.get("/api/v1")["submissions"]["live"]["open"] is True
    assert served.ask("GET", f"/model/{ids['live']}").status == 404
    assert served.ask("GET", "/live/nobody").status == 404


def test_the_feed_names_live_runs_as_live(site: Site) -> None:
    served, ids = site
    atom = "{http://www.w3.org/2005/Atom}"
    entries = ElementTree.fromstring(served.ask("GET", "/feed.xml").body).findall(f"{atom}entry")
    found = {str(one.findtext(f"{atom}id")): one for one in entries}
    [mine] = [one for name, one in found.items() if ids["live"] in name]
    assert mine.findtext(f"{atom}title") == "Live: Alpha-3B by local"
    link = mine.find(f"{atom}link")
    assert link is not None and link.attrib["href"].endswith(f"/live/{ids['live']}")


def test_a_hidden_live_run_is_gone_with_its_reason(site: Site) -> None:
    served, ids = site

    def decide(action: str) -> None:
        with served.store.locked():
            made = Decision(submission=ids["live"], action=action, reason="its words", by="me",  # type: ignore[arg-type]
                            at="2026-11-20T12:00:00+00:00")  # fmt: skip
            served.store.decide(made)
        served.boards.refresh(always=True)

    decide("withdraw")
    try:
        gone = served.ask("GET", f"/live/{ids['live']}")
        assert gone.status == 410 and b"its words" in gone.body
        assert "Alpha-3B" not in text_of(served, "/live")
        assert served.ask("GET", f"/api/v1/live/runs/{ids['live']}/journal.jsonl").status == 404
        assert f"/live/{ids['live']}" in served.ask("GET", "/feed.xml").body.decode()
    finally:
        decide("unhide")


def test_a_board_without_a_live_dataset_says_so(asked: Asked, live_run: Path, tmp_path: Path) -> None:
    with serving(tmp_path / "results", asked, limits=Limits()) as served:
        assert "takes no live runs: it was started without a live dataset (--live-dataset)" in text_of(
            served, "/live"
        )
        upload_id = served.uploaded(live_run)
        served.post(f"/api/v1/submissions/{upload_id}/finish")
        failed = [one for one in served.done(upload_id)["result"]["steps"] if one["passed"] is False]
        assert [one["code"] for one in failed] == ["dataset"] and "--live-dataset" in failed[0]["text"]
        assert served.get("/api/v1")["submissions"]["live"]["open"] is False


def test_hostile_words_of_a_live_run_stay_text(site: Site, tmp_path: Path) -> None:
    """Names are bounded when they are listed; a store that was written by hand is shown all the same."""
    served, ids = site
    [board] = served.boards.live().values()
    row = board.row(ids["live"])
    assert row is not None and row.entry.drawn
    evil = "<script>alert(1)</script>\x1b[2J\u202e"
    drawn = msgspec.convert(
        msgspec.json.decode(
            msgspec.json.encode(row.entry.drawn[0]).replace(
                msgspec.json.encode(row.entry.drawn[0].turns[0].says[0]), msgspec.json.encode(evil)
            )
        ),
        type(row.entry.drawn[0]),
    )
    bad = msgspec.structs.replace(
        row,
        submission=msgspec.structs.replace(row.submission, model=evil, family=evil, defence=evil, card=evil),
        entry=msgspec.structs.replace(row.entry, drawn=(drawn,)),
    )
    boards = {board.version: msgspec.structs.replace(board, rows=(bad,))}
    query, _ = live_query.parse({}, boards)
    view = live_query.select(boards[board.version], query)
    for html in (
        live_page(view, query, boards, taken=True, core="paper"),
        run_page(bad, board, [bad], None, "paper"),
    ):
        assert "<script" not in html and "\x1b" not in html.partition("<footer")[2]
    assert r"\u202e" in run_page(bad, board, [bad], None, "paper")
    assert live_board.is_ranked(bad) is False and Store is not None


def test_a_flag_of_a_live_run_that_was_cleared_is_struck_through_with_who_and_why(site: Site) -> None:
    served, ids = site
    [board] = served.boards.live().values()
    row = board.row(ids["live"])
    assert row is not None
    flag = Flag(code="reference-agent", value=1.0, n=9, of="oracle")
    entry = msgspec.structs.replace(row.entry, flags=(flag,))
    flagged = msgspec.structs.replace(row, entry=entry, cleared=())
    cleared = msgspec.structs.replace(row, entry=entry, cleared=(flag.code,))
    by = Decision(
        submission=row.id, action="clear-flag", flag=flag.code, reason="<b>", by="ann", at="2026-11-20"
    )
    shown = run_page(cleared, board, [cleared], None, "paper", {flag.code: by})
    assert flagged.flags == (flag.code,) and cleared.flags == ()
    assert "<s><strong>reference-agent</strong>" in shown
    assert "Cleared on 2026-11-20 by ann: &lt;b&gt;" in shown
    assert "<s>" not in run_page(flagged, board, [flagged], None, "paper")
