"""The fetcher against a real server on the loopback, with the faults that a network has."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from robustbench_tc.builders import sources
from robustbench_tc.builders.sources.upstream import (
    Pin,
    Pins,
    Repository,
    default_root,
    fetch,
    pins,
    resolve_root,
    verify,
)

from ...conftest import Rbtc
from ...loopback import LoopbackServer
from ...refusals import refuses

BODY = bytes(range(256)) * 1024
COMMIT = "c" * 40
PATH = "zoo/data/a b.json"
URL_PATH = f"/owner/zoo/{COMMIT}/data/a b.json"


class RawFiles(LoopbackServer):
    """Serves `files` by URL path; `faults` holds what happens to the next requests of a path."""

    def __init__(self) -> None:
        super().__init__(lambda body: "")
        self.files: dict[str, bytes | Path] = {URL_PATH: BODY}
        self.faults: dict[str, list[str]] = {}
        self.requests: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def add_routes(self, app: web.Application) -> None:
        app.router.add_get("/{path:.*}", self._raw)

    async def _raw(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(request.path)
        faults, found = self.faults.get(request.path, []), self.files.get(request.path)
        fault = faults.pop(0) if faults else ""
        if found is None or fault.isdigit():
            return web.Response(status=int(fault or 404))
        body = found if isinstance(found, bytes) else found.read_bytes()
        if fault == "drop":
            sent = web.Response(body=body[: len(body) // 2], headers={"Content-Length": str(len(body))})
            sent.force_close()
            return sent
        wrong = {"wrong": body[::-1], "longer": body + b"more" * 100_000}
        return web.Response(body=wrong.get(fault, body))


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[RawFiles]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with RawFiles() as running:
        yield running


def pinned(body: bytes = BODY) -> Pins:
    origin = Repository("owner/zoo", COMMIT, "2026-01-01", "Apache-2.0", "zoo/LICENSE", "")
    pin = Pin(PATH, "zoo", "data/a b.json", len(body), hashlib.sha256(body).hexdigest())
    return Pins({"zoo": origin}, (pin,))


def run(server: RawFiles, root: Path, known: Pins | None = None) -> Any:
    return fetch(root, base_url=server.url, pinned=known or pinned(), backoff_s=0.001)


SLICES = ("clean", "heavy", "medium", "slight", "union")
"""RoTBench's, as pinned."""


def serve(server: RawFiles, shared: Path, files: tuple[Pin, ...]) -> None:
    """Puts pinned files of the mirror under their upstream addresses."""
    for pin in files:
        origin = pins().sources[pin.source]
        where = f"/{origin.repository}/{origin.commit}/{pin.upstream_path}"
        server.files[where] = shared / "sources" / pin.path


def left(root: Path) -> list[str]:
    return sorted(p.name for p in root.rglob("*") if p.is_file() and p.name != ".fetch.lock")


def test_a_fetched_folder_is_as_pinned_and_reads(server: RawFiles, shared: Path, tmp_path: Path) -> None:
    serve(server, shared, pins().files)
    seen: list[str] = []
    result = fetch(tmp_path, base_url=server.url, progress=seen.append)
    assert set(result.downloaded) == {pin.path for pin in pins().files}
    assert seen == [f"{one.path}: {one.bytes / 1e6:.1f} MB" for one in pins().files]
    assert verify(tmp_path).bad == ()
    assert len(sources.read_pool(tmp_path, "paper").samples) == 199

    server.requests.clear()
    again = fetch(tmp_path, base_url=server.url)
    assert (again.downloaded, len(again.present), server.requests) == ((), len(pins().files), [])


def test_a_dropped_connection_is_tried_again(server: RawFiles, tmp_path: Path) -> None:
    server.faults[URL_PATH] = ["drop", "503", "drop"]
    run(server, tmp_path)
    assert (tmp_path / PATH).read_bytes() == BODY
    assert len(server.requests) == 4
    assert left(tmp_path) == ["a b.json"]


def test_a_wrong_file_in_place_is_replaced_on_request_only(server: RawFiles, tmp_path: Path) -> None:
    (tmp_path / PATH).parent.mkdir(parents=True)
    (tmp_path / PATH).write_bytes(b"mine")
    refuses(r"a b\.json is not the pinned file: .* --discard-changes", run, server, tmp_path)
    assert (tmp_path / PATH).read_bytes() == b"mine" and server.requests == []
    fetch(tmp_path, base_url=server.url, pinned=pinned(), discard_changes=True)
    assert (tmp_path / PATH).read_bytes() == BODY


@pytest.mark.parametrize(
    ("fault", "requests", "said"),
    [
        ("500", 5, "the server answers 500 "),
        ("429", 5, "the server answers 429 "),
        ("404", 1, "the server answers 404 "),
        ("403", 1, "the server answers 403 "),
        ("drop", 5, "wrong checksum: 131,072 bytes instead of 262,144"),
        ("wrong", 1, "wrong checksum: sha256 "),
        ("longer", 1, "wrong checksum: 262,145 bytes instead of 262,144"),  # it is not read to its end
    ],
)
def test_what_a_later_try_may_mend_is_tried_again_and_then_named(
    server: RawFiles, tmp_path: Path, fault: str, requests: int, said: str
) -> None:
    server.faults[URL_PATH] = [fault] * 9
    refuses(rf"^zoo/data/a b\.json: {said}.*http://", run, server, tmp_path)
    assert left(tmp_path) == [] and len(server.requests) == requests


def test_no_server_is_one_line(tmp_path: Path) -> None:
    refuses(
        r"^zoo/data/a b\.json: no connection: ",
        fetch,
        tmp_path,
        base_url="http://127.0.0.1:9",
        pinned=pinned(),
        backoff_s=0.001,
    )
    refuses("must begin with http:// or https://", fetch, tmp_path, base_url="file:///etc", pinned=pinned())


def test_a_folder_of_something_else_is_refused(server: RawFiles, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    refuses("holds other files and none of upstream's", run, server, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_the_pins_are_the_manifests(shared: Path) -> None:
    manifest = json.loads((shared / "sources" / "MANIFEST.json").read_text())
    rows = {row["path"]: row for row in manifest["files"]}
    for pin in pins().files:
        row, origin = rows[pin.path], pins().sources[pin.source]
        assert (row["sha256"], row["bytes"], row["upstream_path"]) == (
            pin.sha256,
            pin.bytes,
            pin.upstream_path,
        )
        assert (row["upstream_repo"], row["commit"]) == (origin.repository, origin.commit)
        assert row["licence"] == origin.licence
    paths = {pin.path for pin in pins().files}
    assert {origin.licence_file for origin in pins().sources.values()} <= paths
    assert {file for reader in sources.READERS for file in reader.files} <= paths
    assert verify(shared / "sources").bad == ()


def test_the_sources_folder_is_named_set_or_in_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RBTC_SOURCES", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_root() == tmp_path / "robustbench-tc" / "sources"
    refuses(r"run `rbtc data fetch`, or pass --sources DIR$", resolve_root)
    monkeypatch.setenv("RBTC_SOURCES", str(tmp_path))
    assert resolve_root() == tmp_path
    refuses("no sources folder at", resolve_root, tmp_path / "none")


def test_verify_names_every_bad_file_and_fails(tmp_path: Path, rbtc: Rbtc) -> None:
    (tmp_path / "rotbench").mkdir()
    (tmp_path / "rotbench" / "LICENSE").write_text("short")
    result = rbtc("data", "fetch", "--check", "--sources", tmp_path, "--source", "rotbench")
    assert result.code == 1
    assert result.out.splitlines() == [
        *(f"rotbench/Data/First_Turn/{one}.json: missing" for one in SLICES),
        "rotbench/LICENSE: 5 bytes instead of 11,357",
    ]
    assert (
        "did you mean rotbench"
        in rbtc("data", "fetch", "--check", "--sources", tmp_path, "--source", "rotbanch").refusal
    )


def test_fetch_and_verify_by_command(server: RawFiles, shared: Path, tmp_path: Path, rbtc: Rbtc) -> None:
    serve(server, shared, pins().files_of("tooleyes"))
    arguments = ["data", "fetch", "--sources", str(tmp_path), "--mirror", server.url, "--source", "tooleyes"]
    first, second = (rbtc(*arguments) for _ in range(2))
    assert (first.code, second.code) == (0, 0)
    assert "2 files downloaded, 0 were there already" in first.out
    assert "0 files downloaded, 2 were there already" in second.out
    checked = rbtc("data", "fetch", "--check", "--sources", tmp_path, "--source", "tooleyes")
    assert (checked.code, checked.out) == (0, f"{tmp_path}: 2 files, all as pinned\n")


@pytest.mark.usefixtures("new_folder")
def test_list_has_a_row_per_repository(rbtc: Rbtc) -> None:
    rows = json.loads(rbtc("list", "sources", "--json").out)
    assert [row["source"] for row in rows] == list(pins().sources)
    assert sum(row["bytes"] for row in rows) == sum(pin.bytes for pin in pins().files)
    table = rbtc("list", "sources").out
    assert all(row["repository"] in table for row in rows)
