"""The API as a script meets it: a real server on loopback, hostile requests included."""

import io
import json
import re
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from robustbench_tc import taxonomy
from robustbench_tc.eval.leaderboard.checks import Asked
from robustbench_tc.eval.leaderboard.limits import Limits
from robustbench_tc.eval.leaderboard.moderation import Action, Decision
from robustbench_tc.eval.leaderboard.query import FILTERS

from ...conftest import ROOT
from .conftest import RunOf
from .made import behind
from .served import Served, serving

pytest.importorskip("fastapi", reason="needs the extra leaderboard (make env-leaderboard)")

LIMITS = Limits(per_day=50, uploads_of_user=4, uploads_of_address=6, checks_per_listing=10)


@pytest.fixture(scope="module")
def board(asked: Asked, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("api") / "results", asked, limits=LIMITS) as served:
        yield served


@pytest.fixture(scope="module")
def two(board: Served, run_of: RunOf) -> tuple[str, str]:
    """Two listed runs."""
    stated = {"card": "acme/alpha", "licence": "apache-2.0", "weights": "open", "price_in": "1"}
    first = board.listed(run_of("oracle"), name="Alpha-3B", **stated)
    return first, board.listed(run_of("name-biased"), name="Beta-3B")


def error(found: Any, status: int) -> str:
    assert found.status == status, (found.status, found.body)
    assert found.headers["content-type"] == "application/json"
    assert set(found.headers) >= {"content-security-policy", "x-content-type-options"}
    said = found.json["error"]
    assert isinstance(said, str) and "\n" not in said and "Traceback" not in said
    return said


# --- reading ------------------------------------------------------------------------------------------


def test_every_route_is_described_and_every_description_is_a_route(board: Served) -> None:
    described = {(one["method"], one["path"]) for one in board.get("/api/v1")["routes"]}
    served = {(m, path) for m, path in board.routes if path.startswith("/api/") and m != "HEAD"}
    renamed = {
        (method, path.replace("{upload_id}", "{id}")) for method, path in served if "{rest" not in path
    }
    assert renamed == described
    paths = board.get("/api/v1/openapi.json")["paths"]
    assert {(method.upper(), path) for path, found in paths.items() for method in found} == described
    [rows] = [one for one in board.get("/api/v1")["routes"] if one["path"].endswith("/rows")]
    assert set(rows["query"]) == {*FILTERS, "focus", "sort", "dir", "page", "page_size"}
    for route in board.get("/api/v1")["routes"]:
        if route["method"] == "GET" and route["example"]:
            found = board.ask("GET", route["example"])
            assert found.status == 200 and found.headers["content-type"] == route["answers"], route


def test_the_documented_fields_are_those_of_a_row(board: Served) -> None:
    text = (ROOT / "docs" / "leaderboard-api.md").read_text("utf-8")
    [rows] = [part for part in text.split("\n### ") if part.startswith("A row")]
    cells = [line.split("|")[1] for line in rows.splitlines() if line.startswith("| `")]
    named = {word.strip("` ") for cell in cells for word in cell.split(",")}
    meant: set[str] = set()
    for name in named:
        for one in (
            [name.replace("COMPONENT", c) for c in taxonomy.COMPONENTS] if "COMPONENT" in name else [name]
        ):
            if one.endswith("NAME"):
                meant |= {one.replace("NAME", code) for code in ("clean", "perturbed", *taxonomy.codes())}
            elif one.partition("_")[0] in ("clean", "perturbed", "accuracy", "delta", "retention"):
                meant |= {one, f"{one}_low", f"{one}_high"}
            else:
                meant.add(one)
    [row, *_] = board.get("/api/v1/boards/paper/rows")["rows"]
    assert set(row) == meant


def test_rows_come_in_pages_filtered_and_sorted(board: Served) -> None:
    found = board.get("/api/v1/boards/paper/rows?page_size=10&page=3")
    assert (found["total"], found["pages"], len(found["rows"])) == (21, 3, 1)
    small = board.get("/api/v1/boards/paper/rows?size=small&focus=CD&sort=clean&dir=asc")["rows"]
    assert small and all(row["params_b"] <= 4 and row["focus"] == "CD" for row in small)
    assert [row["clean"] for row in small] == sorted(row["clean"] for row in small)
    assert board.get("/api/v1/boards/paper/rows?page=900")["rows"] == []


def test_parquet_holds_the_same_rows_also_of_an_empty_board(board: Served, two: tuple[str, str]) -> None:
    for version in [one["version"] for one in board.get("/api/v1/boards")["boards"]]:
        rows = board.get(f"/api/v1/boards/{version}/rows")["rows"]
        content = board.ask("GET", f"/api/v1/boards/{version}/rows.parquet").body
        assert pq.read_table(io.BytesIO(content)).to_pylist() == rows
    nothing = board.ask("GET", "/api/v1/boards/paper/rows.parquet?q=nobody").body
    empty, full = pq.read_table(io.BytesIO(nothing)), pq.read_table(io.BytesIO(content))
    assert empty.num_rows == 0 and empty.schema == full.schema


def test_a_model_has_its_figures_and_its_raw_answers(board: Served, two: tuple[str, str]) -> None:
    found = board.get(f"/api/v1/models/{two[0]}")
    assert (found["model"], found["tier"], found["weights"]) == ("Alpha-3B", "unverified", "open")
    assert found["figures"]["perturbed"]["value"] == found["perturbed"] == 1.0
    assert set(found["types"]) == set(taxonomy.codes()) and found["types"]["CD"]["accuracy"]["n"] > 0
    assert [one["id"] for one in found["history"]] == [two[0]]
    raw = board.ask("GET", found["links"]["predictions.parquet"])
    assert raw.body == (board.store.path(two[0]) / "predictions.parquet").read_bytes()
    assert board.get(found["links"]["run.json"])["settings"]["model"] == "Alpha-3B"
    paper = board.get("/api/v1/models/paper-o4-mini")
    assert paper["submission"] is None and "run.json" not in paper["links"]
    error(board.ask("GET", "/api/v1/models/paper-o4-mini/run.json"), 404)


def test_a_flag_that_was_cleared_is_shown_with_who_and_why(board: Served, two: tuple[str, str]) -> None:
    one, path = two[0], f"/api/v1/models/{two[0]}"
    assert "near-gold" in board.get(path)["flags"] and board.get(path)["cleared_flags"] == {}

    def page_after(action: Action) -> str:
        decision = Decision(
            submission=one, action=action, flag="near-gold", reason="<b>ours</b>", by="ann", at="2026-11-20"
        )
        with board.store.locked():
            board.store.decide(decision)
        board.boards.refresh(always=True)
        return board.ask("GET", f"/model/{one}").body.decode()

    struck = page_after("clear-flag")
    found = board.get(path)
    assert "near-gold" not in found["flags"] and "reference-agent" in found["flags"]
    assert (
        found["cleared_flags"]["near-gold"] | {"by": "ann", "reason": "<b>ours</b>"}
        == (found["cleared_flags"]["near-gold"])
    )
    wanted = r"<s><strong>near-gold</strong>: [^<]+</s>\. Cleared on 2026-11-20 by ann: &lt;b&gt;"
    assert re.search(wanted, struck)
    assert "<s><strong>reference-agent" not in struck and "<b>" not in struck
    feed = board.ask("GET", "/feed.xml").body.decode()
    assert f"Submission {one} is cleared of a flag: near-gold" in feed
    assert "<s>" not in page_after("restore-flag") and "near-gold" in board.get(path)["flags"]


def test_a_defended_upload_is_listed_without_a_place_beside_the_plain_run(
    board: Served, two: tuple[str, str], run_of: RunOf, tmp_path: Path
) -> None:
    run = behind(run_of("gives-up-on-error"), tmp_path / "defended", "retry")
    one = board.listed(run, name="Alpha-3B")
    page = board.ask("GET", "/defences").body.decode()
    [group] = [part for part in page.split('<section class="group">') if f'href="/model/{one}"' in part]
    assert f'<h2><a href="/model/{two[0]}">Alpha-3B</a>' in group and "Undefended: perturbed 1.000" in group
    sessions = json.loads((run / "run.json").read_text())["sessions"]
    answers = pq.read_metadata(run / "predictions.parquet").num_rows
    requests = sum(session["requests"] - session["retries"] for session in sessions) / answers
    assert f'<td class="num">{requests:.2f}</td>' in group, group
    found = board.get(f"/api/v1/models/{one}")
    assert (found["defence"], found["rank"]) == ("retry", None)
    rows = board.get(f"/api/v1/boards/{found['board']}/rows")["rows"]
    assert one not in {row["id"] for row in rows} and two[0] in {row["id"] for row in rows}
    change = found["perturbed"] - 1.0
    assert change < -0.05 and f"−{-change:.3f}" in group.replace("-", "−")


def test_two_runs_of_a_board_are_compared(board: Served, two: tuple[str, str]) -> None:
    found = board.get(f"/api/v1/compare?a={two[0]}&b={two[1]}")
    assert found["paired"] and found["a"]["model"] == "Alpha-3B"
    [perturbed] = [one for one in found["differences"] if one["name"] == "perturbed"]
    assert perturbed["low"] <= perturbed["difference"] <= perturbed["high"]
    assert "different boards" in error(board.ask("GET", f"/api/v1/compare?a={two[0]}&b=paper-o4-mini"), 409)
    error(board.ask("GET", "/api/v1/compare?a=paper-o4-mini"), 422)


def test_public_answers_are_open_to_pages_and_cost_nothing_twice(board: Served) -> None:
    path = "/api/v1/boards/paper/rows"
    found = board.ask("GET", path, Origin="https://elsewhere.example")
    assert found.headers["access-control-allow-origin"] == "*" and found.headers["etag"]
    again = board.ask("GET", path, If_None_Match=found.headers["etag"])
    assert again.status == 304 and again.body == b""
    private = board.ask("GET", f"/api/v1/submissions/{'a' * 24}", Origin="https://elsewhere.example")
    assert private.status == 404 and "access-control-allow-origin" not in private.headers
    assert private.headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/v1/nothing", 404),
        ("/api/", 404),
        ("/api/v2/boards", 404),
        ("/api/v1/boards/none/rows", 404),
        ("/api/v1/boards/..%2F..%2Fetc/rows", 404),
        ("/api/v1/boards/paper/rows?focus=<b>", 422),
        ("/api/v1/boards/paper/rows?colour=red", 422),
        ("/api/v1/boards/paper/rows?page=0", 422),
        ("/api/v1/boards/paper/rows?page=-1", 422),
        ("/api/v1/boards/paper/rows?page=%D9%A1", 422),
        ("/api/v1/boards/paper/rows?page_size=1001", 422),
        ("/api/v1/boards/paper/rows?page_size=9999999999999999999", 422),
        ("/api/v1/models/nobody", 404),
        ("/api/v1/models/..%2F..%2Frbtc.json", 404),
        ("/api/v1/models/%00/predictions.parquet", 404),
        ("/api/v1/models/" + "x" * 5000, 404),
        ("/api/v1/submissions/x", 404),
    ],
)
def test_what_is_not_there_is_one_line_of_json(board: Served, path: str, status: int) -> None:
    error(board.ask("GET", path), status)


# --- submitting ---------------------------------------------------------------------------------------


def test_an_upload_goes_from_announcement_to_the_board(board: Served, run_of: RunOf) -> None:
    run = run_of("silent")
    made = board.announce(run, name="Gamma-3B", licence="mit", weights="closed")
    assert made.status == 201 and made.json["stage"] == "uploading"
    assert made.headers["location"] == f"/api/v1/submissions/{made.json['id']}"
    upload_id = made.json["id"]
    content = (run / "predictions.parquet").read_bytes()
    assert board.put(upload_id, "predictions", content[:1000]).json == {"received": 1000}
    assert board.announce(run, name="Gamma-3B", licence="mit", weights="closed").json["received"] == {
        "predictions": 1000,
        "run": 0,
    }
    assert error(board.put(upload_id, "predictions", content), 409).startswith("1000 bytes have arrived")
    early = board.post(f"/api/v1/submissions/{upload_id}/finish")
    assert "have arrived" in error(early, 409)
    error(board.post(f"/api/v1/submissions/{upload_id}/list"), 409)
    assert board.put(upload_id, "predictions", content[1000:], 1000).status == 200
    assert board.put(upload_id, "run", (run / "run.json").read_bytes()).status == 200
    board.scorer.free.clear()
    for _ in range(2):
        assert board.post(f"/api/v1/submissions/{upload_id}/finish").json["stage"] in ("checking", "scoring")
    assert board.get(f"/api/v1/submissions/{upload_id}")["stage"] in ("checking", "scoring")
    board.scorer.free.set()
    state = board.done(upload_id)
    assert state["listable"] and state["result"]["entry"]["metrics"]["perturbed"]["value"] is not None
    ids = {board.post(f"/api/v1/submissions/{upload_id}/list").json["submission"]["id"] for _ in range(2)}
    [listed] = ids
    assert board.get(f"/api/v1/models/{listed}")["licence"] == "mit"
    assert board.announce(run, name="Gamma-3B", licence="mit", weights="closed").json["stage"] == "done"


def test_a_refused_upload_says_why_and_can_be_tried_again(
    board: Served, run_of: RunOf, tmp_path: Path
) -> None:
    for name in ("predictions.parquet", "run.json"):
        (tmp_path / name).write_bytes((run_of("oracle") / name).read_bytes())
    (tmp_path / "predictions.parquet").write_bytes(b"PAR1 and nothing else")
    upload_id = board.uploaded(tmp_path, name="Broken-1B")
    assert board.post(f"/api/v1/submissions/{upload_id}/finish").status == 202
    state = board.done(upload_id)
    assert not state.get("listable") and [one for one in state["result"]["steps"] if one["passed"] is False]
    error(board.post(f"/api/v1/submissions/{upload_id}/list"), 429)
    again = board.announce(tmp_path, name="Broken-1B").json
    assert again["id"] != upload_id and again["stage"] == "uploading"


def test_other_bytes_than_announced_begin_anew(board: Served, run_of: RunOf) -> None:
    run = run_of("oracle")
    upload_id = board.announce(run, name="Forged-1B").json["id"]
    size = (run / "predictions.parquet").stat().st_size
    assert board.put(upload_id, "predictions", b"x" * size).status == 200
    assert board.put(upload_id, "run", (run / "run.json").read_bytes()).status == 200
    assert "sha256" in error(board.post(f"/api/v1/submissions/{upload_id}/finish"), 422)
    assert board.get(f"/api/v1/submissions/{upload_id}")["received"]["predictions"] == 0
    assert error(board.put(upload_id, "predictions", b"x" * (size + 1)), 413)


@pytest.mark.parametrize("offset", ["-1", "1e3", "x", "", "9" * 30, "%D9%A1", "0;drop"])
def test_hostile_offsets_are_refused(board: Served, run_of: RunOf, offset: str) -> None:
    upload_id = board.announce(run_of("oracle"), name="Offset-1B").json["id"]
    assert board.put(upload_id, "predictions", b"x", offset).status in (409, 422)
    assert board.get(f"/api/v1/submissions/{upload_id}")["received"]["predictions"] == 0


BODIES = {
    "no json": b"{",
    "a list": b"[]",
    "deep": b"[" * 50_000,
    "no files": b'{"form":{}}',
    "a text for a size": b'{"files":{"run":{"bytes":"9","sha256":"x"}},"form":{}}',
    "a surplus field": b'{"files":{},"form":{},"user":"admin"}',
    "a huge number": b'{"files":{"run":{"bytes":1e400,"sha256":"x"}},"form":{}}',
    "not utf-8": b'{"files":{"\xff":{}},"form":{}}',
}


@pytest.mark.parametrize("name", BODIES)
def test_hostile_announcements_are_refused(board: Served, name: str) -> None:
    error(board.ask("POST", "/api/v1/submissions", BODIES[name]), 422)


def test_a_form_is_refused_before_anything_is_sent(board: Served, run_of: RunOf) -> None:
    assert "model card" in error(board.announce(run_of("oracle"), card="javascript:alert(1)"), 422)
    assert "open or closed" in error(board.announce(run_of("oracle"), weights="half"), 422)


def test_bodies_are_bounded_before_they_are_held(board: Served) -> None:
    error(board.ask("POST", "/api/v1/submissions", b" " * 70_000), 413)
    host = board.url.removeprefix("http://").split(":")
    with socket.create_connection((host[0], int(host[1])), timeout=30) as line:
        line.sendall(
            b"POST /api/v1/submissions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            b"Content-Length: 99999999999\r\n\r\n"
        )
        assert b" 413 " in line.recv(200)


def test_pages_of_other_sites_cannot_submit(board: Served) -> None:
    body = json.dumps({"files": {}, "form": {}}).encode()
    assert "other sites" in error(
        board.ask("POST", "/api/v1/submissions", body, Origin="https://evil.example"), 403
    )
    error(board.ask("POST", "/api/v1/submissions", body, "text/plain"), 415)


def test_a_hundred_announcements_at_once_are_bounded(board: Served, run_of: RunOf) -> None:
    statuses: list[int] = []

    def announce(number: int) -> None:
        statuses.append(board.announce(run_of("oracle"), name=f"Flood{number}-1B").status)

    threads = [threading.Thread(target=announce, args=(number,)) for number in range(100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(statuses) == {201, 429} and statuses.count(201) <= LIMITS.uploads_of_user
    notes = list((board.store.folder / "incoming").glob("*/sent.json"))
    open_ones = [path for path in notes if not json.loads(path.read_bytes())["ticket"]]
    assert len(open_ones) <= LIMITS.uploads_of_user
    for path in open_ones:
        board.store.throw_away(path.parent)


def test_a_board_without_a_desk_says_so(asked: Asked, tmp_path: Path, run_of: RunOf) -> None:
    with serving(tmp_path / "results", asked, limits=LIMITS, closed="it is a museum.") as shut:
        assert shut.get("/api/v1")["submissions"] == {"open": False, "closed": "it is a museum."}
        assert "museum" in error(shut.announce(run_of("oracle")), 503)
        assert "museum" in error(shut.put("x", "run", b"x"), 503)
