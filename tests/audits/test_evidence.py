"""The evidence table: complete, and looked at again without harm where nothing answers."""

import http.server
import threading
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from robustbench_tc import taxonomy
from robustbench_tc.audits import evidence
from robustbench_tc.audits.evidence import fetch_page
from robustbench_tc.builders import configs

CASES = list(map(msgspec.structs.asdict, configs.table_rows("evidence")))


def problems(**changes: Any) -> list[str]:
    """What is wrong with a table whose first case is changed."""
    checks, _ = evidence.audit([{**CASES[0], **changes}, *CASES[1:]], taxonomy.codes())
    return [check.id for check in checks if check.blocks]


def test_the_packages_own_table_is_in_order() -> None:
    assert problems() == []


@pytest.mark.parametrize(
    "changes",
    [
        {"verdict": "proves"},
        {"role": ""},
        {"claim": " "},
        {"note": None},
        {"checked_on": "yesterday"},
        {"url": "https://github.com/another/place/issues/1"},
        {"url": None},
        {"kind": "paper", "url": "https://github.com/x/y"},
    ],
)
def test_an_incomplete_case_fails(changes: dict[str, Any]) -> None:
    assert problems(**changes) == ["evidence.cases_are_complete"]


def test_a_type_without_a_case_fails() -> None:
    checks, found = evidence.audit([c for c in CASES if c["type_code"] != "CD"], taxonomy.codes())
    assert [f.where for f in checks[0].failures] == ["CD"]
    assert {one.type_code for one in found} == set(taxonomy.codes())


def test_support_must_fit_the_type() -> None:
    case = {"verdict": "supports", "role": "cited", "construct_fit": "adjacent"}
    assert evidence.summary("CD", [case]).constructed
    assert not evidence.summary("CD", [{**case, "construct_fit": "close"}]).constructed


def test_a_second_look_tells_same_other_and_gone() -> None:
    cases = [{"type_code": "CD", "url": f"https://x/{n}", "title": f"Title & {n}"} for n in range(4)]
    pages = {
        "https://x/0": (200, "<html><title>Title &amp; 0 · Issue #1</title></html>"),
        "https://x/1": (200, "<title>Something else</title>"),
        "https://x/2": (404, ""),
        "https://x/3": (429, ""),
    }
    asked: list[str] = []
    found = evidence.refetch([*cases, cases[0]], pages.__getitem__, asked.append)
    assert [one.outcome for one in found] == ["same title", "other title", "gone", "status 429"]
    assert asked == list(pages)


def test_without_a_network_it_stops_after_three_tries() -> None:
    tried: list[str] = []

    def fetch(url: str) -> tuple[int, str]:
        tried.append(url)
        raise OSError("Network is unreachable")

    found = evidence.refetch(CASES, fetch, lambda line: None)
    assert len(tried) == 3
    assert {one.outcome.split(":")[0] for one in found} == {"no connection", "not tried"}


class _Pages(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = b"<title>There</title>"
        self.send_response(200 if self.path == "/there" else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Silent."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    found = http.server.HTTPServer(("127.0.0.1", 0), _Pages)
    threading.Thread(target=found.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{found.server_port}"
    found.shutdown()
    found.server_close()


def test_pages_are_fetched_and_missing_ones_are_no_error(server: str) -> None:
    assert fetch_page(f"{server}/there") == (200, "<title>There</title>")
    assert fetch_page(f"{server}/elsewhere")[0] == 404


def test_no_connection_is_an_os_error() -> None:
    with pytest.raises(OSError):
        fetch_page("http://127.0.0.1:9/nobody")
