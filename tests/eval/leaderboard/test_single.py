"""Pages of single things: samples, comparisons, packs, defended runs. Replies are hostile."""

import json
import re
import shutil
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote

import msgspec
import pytest

from robustbench_tc.eval import predictions, verdicts
from robustbench_tc.eval.leaderboard.checks import Asked, Trail, check
from robustbench_tc.eval.leaderboard.defended import group, keys
from robustbench_tc.eval.leaderboard.limits import Limits
from robustbench_tc.eval.leaderboard.records import Submission
from robustbench_tc.eval.leaderboard.scoring import score
from robustbench_tc.eval.leaderboard.site import Boards
from robustbench_tc.eval.leaderboard.store import Store
from robustbench_tc.eval.record import open_run
from robustbench_tc.eval.stats import defences
from robustbench_tc.eval.stats.runs import read

from .conftest import RunOf
from .few import submission
from .made import behind

pytest.importorskip("fastapi", reason="the pages need the extra leaderboard (make env-leaderboard)")

from fastapi import FastAPI
from starlette.testclient import TestClient

from robustbench_tc.eval.leaderboard.web import add_routes

HOSTILE = "</div><script>alert(1)</script><img src=x onerror=alert(1)>\u202e\x1b[31m\x00"
ONE, TWO, THREE, FOUR, FIVE = (submission(number, "x").id for number in range(1, 6))


def put(store: Store, asked: Asked, run: Path, number: int, folder: Path, **said: str) -> Submission:
    """Checks, scores and lists a run as the desk does."""
    accepted = check(run / "predictions.parquet", run / "run.json", asked, limits=Limits(), trail=Trail())
    entry, _ = score(accepted, asked, folder)
    one = msgspec.structs.replace(
        submission(number, accepted.model),
        mode="prompt",
        dataset_version=asked.label,
        fingerprint=asked.fingerprint(),
        predictions_sha256=sha256((folder / "predictions.parquet").read_bytes()).hexdigest(),
        defence=",".join(accepted.record.settings.defend),
        **said,
    )
    with store.locked():
        store.add(one, folder, entry)
    return one


class Site:
    def __init__(self, asked: Asked, run_of: RunOf, folder: Path) -> None:
        self.asked = asked
        self.store = Store(folder / "results")
        self.base = run_of("gives-up-on-error", model="Agent-7B")
        loud = shutil.copytree(run_of("silent", model="Loud-1B"), folder / "loud")
        told = [
            msgspec.structs.replace(one, raw_output=HOSTILE + "A" * 150_000 * (at == 0))
            for at, one in enumerate(predictions.read(loud / "predictions.parquet"))
        ]
        (loud / "predictions.parquet").unlink()
        predictions.write(loud / "predictions.parquet", told)
        self.defended = behind(run_of("oracle", model="Agent-7B"), folder / "defended", "retry")
        alone = behind(run_of("oracle", model="Alone-2B"), folder / "alone", "schema", "hint")
        runs = (self.base, loud, run_of("oracle", model="Best-9B"), self.defended, alone)
        for number, run in enumerate(runs, 1):
            put(self.store, asked, run, number, folder / f"run{number}")
        self.boards = Boards(self.store, {}, (asked.label, asked.fingerprint()))
        self.boards.datasets.add(asked)
        app = FastAPI()
        add_routes(app, self.boards)
        self.client = TestClient(app)
        self.board = next(iter(self.boards.all().values()))

    def page(self, address: str, status: int = 200) -> str:
        reply = self.client.get(address)
        assert reply.status_code == status, address
        text: str = reply.text
        for bad in ("<script", "<img", "\u202e", "\x1b", "\x00", "Traceback"):
            assert bad not in text, (address, bad)
        assert "default-src 'none'" in reply.headers["content-security-policy"]
        return text


@pytest.fixture(scope="module")
def site(asked: Asked, run_of: RunOf, tmp_path_factory: pytest.TempPathFactory) -> Site:
    return Site(asked, run_of, tmp_path_factory.mktemp("single"))


def test_a_samples_page_shows_every_reply_inert_and_bounded(site: Site) -> None:
    row = site.asked.rows[0]
    path = f"/sample/{quote(row.clean_id, safe='')}"
    clean = site.page(path)
    assert len(clean) < 100_000 and "of 150," in clean
    assert "&lt;script&gt;" in clean and r"\u202e" in clean and r"\x1b" in clean
    assert clean.count('<article class="reply">') == 3 and "2 of 3 models" in clean
    assert site.page(f"{path}?verdict=wrong").count('<article class="reply">') == 1
    for other in site.asked.rows:
        if other.clean_id == row.clean_id:
            text = site.page(f"{path}?type={other.type_code}")
            assert other.type_code in text
    typos = site.page(f"{path}?type=realistic_typos")
    assert "<del>" in typos and "<ins>" in typos
    assert "Before the error" in site.page(f"{path}?type=transient_timeout")


def test_the_list_is_filtered_and_counts_the_models(site: Site) -> None:
    every = site.page("/samples?type=all")
    assert f"{len(site.asked.rows)} rows, 1 to 50 shown" in every
    assert "No row fits" in site.page("/samples?right=nobody")
    lost = sum(row.injected_error is not None for row in site.asked.rows)
    assert f"{lost} rows" in site.page(f"/samples?a={THREE}&b={ONE}")
    assert "No row fits" in site.page(f"/samples?a={ONE}&b={THREE}")
    assert "Not understood" in site.page("/samples?right=<b>&page=0")


def test_what_is_not_there_is_one_line(site: Site) -> None:
    clean_id = quote(site.asked.rows[0].clean_id, safe="")
    for address in (
        "/sample/nothing",
        "/sample/%3Cscript%3E",
        f"/sample/{clean_id}?type=none",
        "/samples?version=paper",
        "/samples?version=9",
        "/packs?pack=%3Cb%3E",
        "/defences?version=9",
    ):
        assert "Not found" in site.page(address, 404)


def test_up_to_six_models_of_one_board_are_compared(site: Site) -> None:
    page = site.page(f"/compare?ids={ONE},{THREE}&id={TWO}")
    assert page.count("Only A right") == 2 and "They differ" in page and "Every two of them" in page
    assert "Choose at least two" in site.page(f"/compare?ids={ONE}&q=best") and THREE in site.page(
        "/compare?q=best"
    )
    assert "of no model on any board" in site.page("/compare?ids=nobody,<script>")
    assert "focus=up" in site.page(f"/compare?ids={ONE},{TWO}&focus=up")


def test_packs_say_what_they_ask(site: Site) -> None:
    assert "None of the models shown" in site.page("/packs")
    assert "context_2k" in site.page("/packs?pack=context")


def test_defended_runs_have_no_place_and_the_figures_of_the_command(site: Site, tmp_path: Path) -> None:
    board = site.board
    assert {row.id for row in board.rows} == {ONE, TWO, THREE}
    assert {row.id for row in board.defended} == {FOUR, FIVE}
    assert "retry" not in site.page("/") and FOUR not in site.page("/")
    first, second = (group(board, key, site.boards.entry) for key in keys(board))
    assert first.base is not None and first.base.id == ONE and second.base is None
    folders = [shutil.copytree(run, tmp_path / run.name) for run in (site.base, site.defended)]
    for folder in folders:
        (folder / "scores.parquet").unlink(missing_ok=True)
        run = open_run(folder)
        verdicts.score_run(run, site.asked, predictions.read(run.predictions_path))
    plain, defended = map(read, folders)
    told = defences.table(plain, [defended])
    [ours] = first.runs
    assert ours.line is not None
    assert msgspec.structs.replace(ours.line, run="") == msgspec.structs.replace(told.lines[0], run="")
    assert first.base_cost == told.base_cost and ours.cost.requests_per_row is not None
    page = site.page("/defences")
    # Nobody knows the tokens of these runs: none of them is said to be on the frontier.
    assert ours.cost.tokens_per_right is None and '<span class="mark"' not in page
    assert "Listed without comparison" in page
    assert "Behind defences (retry)" in site.page(f"/model/{FOUR}")


def test_what_is_stored_of_the_sessions_is_how_many_requests_they_made(site: Site) -> None:
    stored = json.loads((site.store.path(FOUR) / "run.json").read_bytes())
    [session] = stored["sessions"]
    assert (session["requests"], session["retries"], session["endpoint"]) == (1071, 2, "")
    assert f"/api/v1/models/{FOUR}/predictions.parquet" in site.page(f"/model/{FOUR}")


def test_no_table_of_a_models_page_has_a_heading_without_a_column(site: Site) -> None:
    page = site.client.get(f"/model/{ONE}").text
    tables = [table for table in re.findall(r"<table.*?</table>", page, re.DOTALL) if "rowspan" not in table]
    assert len(tables) > 3
    for table in tables:
        head, *lines = re.findall(r"<tr>.*?</tr>", table, re.DOTALL)
        assert {len(re.findall("<t[hd]", line)) for line in lines} == {len(re.findall("<t[hd]", head))}, head
