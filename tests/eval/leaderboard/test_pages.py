"""The pages: what they show, that every view has an address, and that nothing hostile comes through."""

import csv
import io
import time
from pathlib import Path

import msgspec
import pytest

from robustbench_tc import taxonomy
from robustbench_tc.eval import paper
from robustbench_tc.eval.leaderboard.records import Entry
from robustbench_tc.eval.leaderboard.row import FOCUSES
from robustbench_tc.eval.leaderboard.scoring import entries_of_paper
from robustbench_tc.eval.leaderboard.site import Boards
from robustbench_tc.eval.leaderboard.store import Store

from .conftest import RunOf
from .few import entry, submission

pytest.importorskip("fastapi", reason="the pages need the extra leaderboard (make env-leaderboard)")

from fastapi import FastAPI
from starlette.testclient import TestClient

from robustbench_tc.eval.leaderboard import pages
from robustbench_tc.eval.leaderboard.views import VIEWS
from robustbench_tc.eval.leaderboard.web import POLICY, add_routes


@pytest.fixture(scope="module")
def published() -> dict[str, Entry]:
    return entries_of_paper()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "results")


@pytest.fixture
def boards(store: Store, published: dict[str, Entry]) -> Boards:
    return Boards(store, published)


@pytest.fixture
def client(boards: Boards) -> TestClient:
    app = FastAPI()
    add_routes(app, boards)
    return TestClient(app)


def rows_of(client: TestClient, address: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(client.get(address).text)))


def test_the_papers_board_shows_table_2_to_three_decimals(client: TestClient) -> None:
    shown = {row["model"]: row for row in rows_of(client, "/board.csv?version=paper")}
    page = client.get("/?version=paper").text
    wrong = [
        (cell.model, cell.metric)
        for cell in paper.table2()
        if f"{float(shown[cell.model][cell.metric]):.3f}" != f"{cell.value:.3f}"
    ]
    assert wrong == []
    for cell in paper.table2():
        text = f"{cell.value:.3f}" if not cell.metric.startswith("delta") else f"{cell.value:+.3f}"
        assert text.replace("-", "−") in page
    assert "never ranked with runs on ours" in page


def test_every_page_of_the_paper_opens_and_has_no_script(client: TestClient) -> None:
    for address in (
        "/",
        *VIEWS,
        "/heatmap?show=delta",
        "/model/paper-o4-mini",
        "/model/paper-o4-mini?against=paper-Qwen3-8B",
        *(f"/?focus={code}" for code in FOCUSES),
    ):
        reply = client.get(address)
        assert reply.status_code == 200, address
        assert "<script" not in reply.text and "style=" not in reply.text and "http://" not in reply.text
        assert reply.headers["content-security-policy"] == POLICY


def test_rows_are_filtered_and_sorted_by_the_address(client: TestClient) -> None:
    models = paper.models()

    def shown(query: str) -> list[str]:
        return [row["model"] for row in rows_of(client, f"/board.csv?version=paper&{query}")]

    assert shown("family=ToolRL&mode=prompt") == [one for one in shown("") if one.startswith("ToolRL")]
    assert {models[one].params_b for one in shown("size=large")} == {32.0}
    assert shown("size=unknown") == ["o4-mini"]
    assert shown("q=qwen3+instruct") == [] and "Qwen3-8B" in shown("q=QWEN3")
    assert shown("tier=reproduced") == []
    clean = [float(row["clean"]) for row in rows_of(client, "/board.csv?version=paper&sort=clean&dir=asc")]
    assert clean == sorted(clean)
    assert shown("sort=model") == sorted(models, key=str.casefold)
    assert shown("sort=params")[-1] == "o4-mini" == shown("sort=params&dir=desc")[-1]
    ranks = [row["rank"] for row in rows_of(client, "/board.csv?version=paper&q=ToolRL-DR")]
    assert ranks == ["9", "10"]


def test_a_board_can_be_ranked_by_a_type_and_says_so(client: TestClient) -> None:
    found = client.get("/board.json?version=paper&focus=CD_AB").json()
    shares = [row["correct_CD_AB"] / row["n_CD_AB"] for row in found["rows"]]
    assert shares == sorted(shares, reverse=True) and found["address"] == "/?focus=CD_AB"
    page = client.get("/?version=paper&focus=CD_AB").text
    assert "Ranked by the type CD_AB" in page and taxonomy.get("CD_AB").what_is_modified[:30] in page


def test_what_is_not_understood_is_said_and_what_is_not_there_is_a_404(client: TestClient) -> None:
    page = client.get("/?focus=<script>alert(1)</script>&sort=up&size=9").text
    assert page.count("Not understood") == 3 and "<script" not in page
    for address in ("/?version=9", "/model/nobody", "/types?version=<b>", "/nothing", "/static/../web.py"):
        reply = client.get(address)
        assert reply.status_code == 404 and "<b>" not in reply.text and "Traceback" not in reply.text
    assert "None of the 21 models fits" in client.get("/?q=nobody+at+all").text


def test_an_empty_board_says_what_to_do(store: Store, published: dict[str, Entry]) -> None:
    app = FastAPI()
    add_routes(app, Boards(store, published, ("1.0.0", "f" * 32)))
    client = TestClient(app)
    assert "MUA-RL" in client.get("/").text  # the first board with a model on it
    for path in ("/", "/types", "/progress"):
        page = client.get(f"{path}?version=1.0.0-ffffffff").text
        assert "No submission yet" in page and 'href="/submit/"' in page
    assert client.get("/board.csv?version=1.0.0-ffffffff").text == ""
    assert "no course of time to draw" in client.get("/progress?version=paper").text


def test_submissions_are_on_their_board_and_history_stays(
    client: TestClient, boards: Boards, store: Store, run_of: RunOf
) -> None:
    assert client.get("/").text.count("MUA-RL") > 2
    run = run_of("oracle")
    first, second = submission(1, "one"), submission(2, "one")
    for one, right in ((first, [1, 0, 0]), (second, [1, 1, 1])):
        with store.locked():
            store.add(one, run, entry({"CD": right, "clean": [1, 1, 1]}))
    with store.locked():
        store.add(submission(3, "two", user="bob"), run, entry({"CD": [0, 0, 1], "clean": [1, 0, 1]}))
    boards.refresh()
    page = client.get("/").text
    assert "MUA-RL" not in page and page.count('class="name"><a') == 2
    assert [row["model"] for row in rows_of(client, "/board.csv")] == ["one", "two"]
    old = client.get(f"/model/{first.id}").text
    assert "Superseded by" in old and f"/model/{second.id}" in old
    new = client.get(f"/model/{second.id}?against={submission(3, 'two').id}").text
    assert "History" in new and "Paired over the same rows" in new
    progress = client.get("/progress").text  # unverified runs are drawn, and are never the best
    assert progress.count('<td class="date">') == 3 and "new best" not in progress
    again = client.get("/board.json").json()
    assert again["paired"] and again["fingerprint"] == "f" * 32


@pytest.mark.parametrize(
    "hostile", ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "{{7*7}}"]
)
def test_hostile_texts_in_a_record_are_shown_inert(
    client: TestClient, boards: Boards, store: Store, run_of: RunOf, hostile: str
) -> None:
    """Checks refuse such names; a record that was edited by hand still cannot hurt a visitor."""
    one = msgspec.structs.replace(
        submission(1, hostile), user=hostile, family=hostile, dataset_version="1", mode=hostile
    )
    with store.locked():
        store.add(one, run_of("oracle"), entry({"CD": [1, 1]}))
    boards.refresh()
    for address in (*VIEWS, f"/model/{one.id}"):
        page = client.get(address).text.replace('<img src="/badge/', "")
        assert "<script" not in page and "<img" not in page and "49" not in page.split("<main")[1][:400]


def test_the_same_view_has_one_address(client: TestClient) -> None:
    page = client.get("/?version=paper&focus=perturbed&sort=clean&dir=").text
    assert "/board.csv?sort=clean" in page
    assert "/?sort=clean&amp;dir=asc" in page


def test_types_that_cost_nothing_are_not_called_hard(client: TestClient, boards: Boards) -> None:
    page = client.get("/model/paper-o4-mini").text
    listed = page.partition("Hardest types")[2].partition("Every type")[0]
    assert listed.count("<li>") == 5 and "transient_rate_limit" in listed
    found = boards.entry("paper-o4-mini")
    assert found is not None
    none = {
        code: msgspec.structs.replace(line, delta=msgspec.structs.replace(line.delta, value=0.0))
        for code, line in found.types.items()
    }
    assert pages.hardest(msgspec.structs.replace(found, types=none)) == []


def test_every_interval_is_there_on_request(client: TestClient) -> None:
    page = client.get("/?version=paper").text
    assert 'href="/?show=intervals"' in page and page.count("[") < 60
    every = client.get("/?version=paper&show=intervals&sort=clean").text
    leader = rows_of(client, "/board.csv?version=paper")[0]
    for name in ("clean", "accuracy_reward", "retention"):
        assert f"[{float(leader[f'{name}_low']):.3f}, {float(leader[f'{name}_high']):.3f}]" in every
    low, high = (f"{float(leader[f'delta_transition_{end}']):+.3f}" for end in ("low", "high"))
    assert f"[{low}, {high}]" in every
    assert 'name="show" value="intervals"' in every and 'href="/?sort=clean"' in every


def test_what_another_process_added_shows_up_by_itself(
    client: TestClient, store: Store, run_of: RunOf
) -> None:
    assert "Late-3B" not in client.get("/").text
    with Store(store.folder).locked():
        Store(store.folder).add(submission(1, "Late-3B"), run_of("oracle"), entry({"CD": [1, 1]}))
    for _ in range(200):
        if "Late-3B" in client.get("/").text:
            break
        time.sleep(0.02)
    assert "Late-3B" in client.get("/").text
