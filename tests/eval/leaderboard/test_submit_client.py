"""`rbtc leaderboard submit` and `api.submit` against a real board, killed and cut off at either end."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from huggingface_hub import constants
from typer.testing import CliRunner, Result

from robustbench_tc.cli.leaderboard import app
from robustbench_tc.errors import UserError
from robustbench_tc.eval.leaderboard import client, client_http
from robustbench_tc.eval.leaderboard.checks import Asked
from robustbench_tc.eval.leaderboard.client import NotTaken, Stage, Submitted, submit
from robustbench_tc.eval.leaderboard.limits import Limits
from robustbench_tc.eval.leaderboard.store import Store

from ...conftest import ROOT
from ...hub import STRANGER, WRITER, Hub
from .conftest import RunOf
from .served import Served, serving, wait_for

pytest.importorskip("fastapi", reason="needs the extra leaderboard (make env-leaderboard)")

LIMITS = Limits(per_day=50, checks_per_listing=10)


@pytest.fixture(scope="module")
def board(asked: Asked, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("client") / "results", asked, limits=LIMITS) as served:
        yield served


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "LOOK_S", (0.05, 0.1))
    monkeypatch.setattr(client_http, "WAITS", (0.1,) * 3)


def rbtc(*words: object, typed: str | None = None) -> Result:
    return CliRunner().invoke(app, ["submit", *map(str, words)], input=typed)


def line_of(result: Result) -> str:
    """The one line of a refusal."""
    assert isinstance(result.exception, UserError), (result.exception, result.output)
    said = str(result.exception)
    assert "\n" not in said and "Traceback" not in result.output
    return said


def test_a_run_is_submitted_with_its_stages_and_listed(board: Served, release: Path, run_of: RunOf) -> None:
    done = rbtc(
        *(run_of("oracle"), "--url", board.url, "--model", "Alpha-3B", "--licence", "mit", "--yes"),
        *("--dataset", release, "--weights", "open", "--price", "0.1,0.4", "--card", "acme/alpha"),
    )
    assert done.exit_code == 0, (done.output, done.exception)
    [mine] = [one for one in board.store.submissions()[0] if one.model == "Alpha-3B"]
    said = " ".join(done.output.split())
    assert f"listed as unverified: {board.url}/model/{mine.id}" in said
    assert "uploading: " in said and "checking" in said and "95 %" in said
    assert (mine.licence, mine.weights, mine.price_in, mine.price_out) == ("mit", "open", 0.1, 0.4)
    assert mine.card == "https://huggingface.co/acme/alpha"


def test_nobody_who_could_agree_means_that_nothing_is_listed(
    board: Served, release: Path, run_of: RunOf
) -> None:
    words = (run_of("silent"), "--url", board.url, "--model", "Quiet-3B", "--dataset", release)
    assert "say --yes to list it" in line_of(rbtc(*words))
    assert not [one for one in board.store.submissions()[0] if one.model == "Quiet-3B"]
    done = rbtc(*words, "--yes", "--json")  # finds the result that is there
    found = json.loads(done.stdout)
    assert found["page"] == f"{board.url}/model/{found['submission']['id']}"
    assert found["checked"]["entry"]["metrics"]["perturbed"]["high"] is not None


def test_what_can_be_checked_here_is_checked_before_anything_is_sent(
    board: Served, release: Path, run_of: RunOf, tmp_path: Path
) -> None:
    run = run_of("oracle")
    (tmp_path / "run.json").write_bytes((run / "run.json").read_bytes())
    (tmp_path / "predictions.parquet").write_bytes(b"PAR1 nothing")
    before = list((board.store.folder / "incoming").iterdir())
    done = rbtc(tmp_path, "--url", board.url, "--dataset", release)
    assert done.exit_code == 1 and "FAILED" in done.output
    assert "not accepted (before the upload)" in line_of(done)
    assert "looks like" not in line_of(rbtc(run, "--url", board.url, "--dataset", release, "--model", "<b>"))
    assert "model card" in line_of(rbtc(run, "--url", board.url, "--card", "javascript:1"))
    assert list((board.store.folder / "incoming").iterdir()) == before


def test_where_the_dataset_is_gone_the_board_checks(board: Served, run_of: RunOf, tmp_path: Path) -> None:
    run = run_of("oracle")
    record = json.loads((run / "run.json").read_bytes()) | {"dataset": str(tmp_path / "gone")}
    (tmp_path / "run.json").write_text(json.dumps(record))
    (tmp_path / "predictions.parquet").write_bytes(b"PAR1 nothing")
    with pytest.raises(NotTaken, match="by the board") as found:
        submit(tmp_path, board.url)
    assert found.value.checked.refused is not None


URLS = {
    "ftp://x": "must begin with http",
    "http://": "names no host",
    "http://user:secret@localhost:1": "leave out the user name",
    "http://localhost:1": "does not answer",
    "http://no-such-host.invalid": "does not answer",
    "https://huggingface.co/spaces/Acme/My_board": "https://acme-my-board.hf.space",
    "http://x/\x1b[31m": "control character",
}


@pytest.mark.parametrize("url", URLS)
def test_a_bad_address_is_one_line(run_of: RunOf, url: str) -> None:
    said = line_of(rbtc(run_of("oracle"), "--url", url))
    assert URLS[url] in said and "secret" not in said and "\x1b" not in said


def test_another_page_is_no_board(hub: Hub, run_of: RunOf) -> None:
    assert "is no leaderboard with an API" in line_of(rbtc(run_of("oracle"), "--url", hub.url))


def test_a_run_of_another_version_and_a_closed_desk_are_one_line(
    board: Served, asked: Asked, run_of: RunOf, tmp_path: Path
) -> None:
    run = run_of("oracle")
    record = json.loads((run / "run.json").read_bytes())
    record["settings"]["fingerprint"], record["dataset_version"] = "e" * 32, "0.9.0"
    (tmp_path / "run.json").write_text(json.dumps(record))
    said = line_of(rbtc(run, "--url", board.url, "--record", tmp_path / "run.json"))
    assert "'0.9.0' ('eeeeeeee…')" in said and "evaluate on that version" in said
    with serving(tmp_path / "results", asked, limits=LIMITS, closed="it is a museum.") as shut:
        assert "takes no submissions: 'it is a museum.'" in line_of(rbtc(run, "--url", shut.url))


def test_a_quota_is_one_line(asked: Asked, tmp_path: Path, run_of: RunOf) -> None:
    with serving(tmp_path / "results", asked, limits=Limits(per_day=1)) as board:
        submit(run_of("oracle"), board.url, model="First-1B")
        with pytest.raises(UserError, match="all a day takes"):
            submit(run_of("silent"), board.url, model="Second-1B")


def test_a_client_that_is_killed_goes_on_where_it_was(board: Served, run_of: RunOf) -> None:
    run = run_of("name-biased")
    code = (
        "import os, sys\n"
        "from robustbench_tc.eval.leaderboard import client\n"
        "client.PART = 3000\n"
        "def tell(stage):\n"
        "    if stage.name == 'uploading' and stage.sent > stage.total / 2: os.kill(os.getpid(), 9)\n"
        f"client.submit({str(run)!r}, {board.url!r}, model='Killed-3B', progress=tell)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    told: list[Stage] = []
    found = submit(run, board.url, model="Killed-3B", progress=told.append)
    first = next(stage for stage in told if stage.name == "uploading")
    assert first.sent > first.total / 2
    assert found.submission is not None and found.submission.model == "Killed-3B"


def test_ctrl_c_is_a_line_and_the_same_command_goes_on(board: Served, release: Path, run_of: RunOf) -> None:
    words = [str(run_of("first-of-duplicates")), "--url", board.url, "--model", "Stopped-3B", "--yes"]
    command = [sys.executable, "-m", "robustbench_tc", "leaderboard", "submit", *words]
    board.scorer.free.clear()
    process = subprocess.Popen(
        command,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # shells ignore it in the background
    )
    wait_for(lambda: list((board.store.folder / "incoming").glob("*/run.json")), bool)
    wait_for(lambda: [1 for path in notes(board) if json.loads(path.read_bytes())["ticket"]], bool)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    out, said = process.communicate(timeout=60)
    board.scorer.free.set()
    assert process.returncode == 130 and out == "", said
    assert said.splitlines()[-1].startswith("rbtc: interrupted: ") and "the same command goes on" in said
    assert "Traceback" not in said
    assert submit(words[0], board.url, model="Stopped-3B").submission is not None


def notes(board: Served) -> list[Path]:
    return [
        path
        for path in (board.store.folder / "incoming").glob("*/sent.json")
        if b"Stopped-3B" in path.read_bytes()
    ]


def environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(ROOT / "src"), "HF_HUB_OFFLINE": "1"}


def test_bytes_before_a_dropped_connection_are_kept(board: Served, run_of: RunOf) -> None:
    run = run_of("oracle")
    upload_id = board.announce(run, name="Dropped-3B").json["id"]
    content = (run / "predictions.parquet").read_bytes()
    head = f"PUT /api/v1/submissions/{upload_id}/predictions?offset=0 HTTP/1.1\r\nHost: x\r\n"
    head += f"Content-Length: {len(content)}\r\n\r\n"

    def cut_off() -> int:
        with socket.create_connection(address, timeout=30) as line:
            line.sendall(head.encode() + content[:5000])
            time.sleep(0.5)  # what the server has not begun to read when the line breaks is lost
        return int(board.get(f"/api/v1/submissions/{upload_id}")["received"]["predictions"])

    address = ("127.0.0.1", int(board.url.rpartition(":")[2]))
    wait_for(cut_off, lambda there: there == 5000)
    told: list[Stage] = []
    submit(run, board.url, model="Dropped-3B", progress=told.append)
    assert next(stage for stage in told if stage.name == "uploading").sent == 5000


class Process:
    """The whole board in a process of its own, which may be killed, always on the same port."""

    def __init__(self, release: Path, folder: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self._words = (str(release), str(folder), msgspec.json.encode(LIMITS).decode(), str(self.port))
        self.url = f"http://127.0.0.1:{self.port}"
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.eval.leaderboard.serve_for_tests", *self._words],
            cwd=ROOT,
            env=environment(),
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None and self.process.stdout.readline().strip()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(30)


def test_a_board_that_is_killed_while_it_takes_an_upload_is_waited_for(
    release: Path, run_of: RunOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("gradio", reason="needs the extra leaderboard (make env-leaderboard)")
    monkeypatch.setattr(client, "PART", 3000)
    monkeypatch.setattr(client_http, "WAITS", (0.5,) * 200)
    board = Process(release, tmp_path / "results")
    killed: list[int] = []
    starting: list[threading.Thread] = []

    def tell(stage: Stage) -> None:
        if stage.name == "uploading" and stage.sent > stage.total / 2 and not killed:
            killed.append(stage.sent)
            board.kill()
            starting.append(threading.Thread(target=board.start))
            starting[0].start()

    try:
        found = submit(run_of("oracle"), board.url, model="Steady-3B", progress=tell)
    finally:
        for thread in starting:
            thread.join(120)
        board.kill()
    assert killed and found.submission is not None
    assert [one.model for one in Store(tmp_path / "results").submissions()[0]] == ["Steady-3B"]


# --- a board that knows accounts ----------------------------------------------------------------------


@pytest.fixture
def space(asked: Asked, hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    monkeypatch.setattr(constants, "ENDPOINT", hub.url)
    with serving(tmp_path / "results", asked, limits=LIMITS, login="hf") as served:
        yield served


def test_a_board_with_accounts_knows_whose_an_upload_is(space: Served, run_of: RunOf) -> None:
    run = run_of("oracle")
    done: Submitted = submit(run, space.url, token=WRITER, model="Mine-3B")
    assert done.submission is not None and done.submission.user == "maintainer"
    assert space.announce(run).status == 401
    space.token = WRITER
    upload_id = space.uploaded(run, name="Other-3B")
    space.token = STRANGER
    for method, path in (("GET", ""), ("POST", "/finish"), ("POST", "/list"), ("PUT", "/run?offset=0")):
        assert space.ask(method, f"/api/v1/submissions/{upload_id}{path}", b"{}").status == 404
    stored = b"".join(path.read_bytes() for path in space.store.folder.rglob("*") if path.is_file())
    assert WRITER.encode() not in stored and STRANGER.encode() not in stored


def test_without_a_token_or_consent_nothing_is_sent(
    space: Served, run_of: RunOf, monkeypatch: pytest.MonkeyPatch, hub: Hub
) -> None:
    import huggingface_hub

    hub.log()
    monkeypatch.setattr(huggingface_hub, "get_token", lambda: None)
    with pytest.raises(UserError, match="hf auth login"):
        submit(run_of("oracle"), space.url)
    with pytest.raises(UserError, match="nothing was sent"):
        submit(run_of("oracle"), space.url, token=WRITER, signing_in=lambda url: False)
    assert hub.log() == []


def test_a_token_does_not_leave_in_the_clear() -> None:
    with pytest.raises(UserError, match="in the clear"):
        client_http.Connection("http://board.example").sign_in(WRITER)


class Strange:
    """A server that answers everything with one status and body."""

    def __init__(self, status: int, body: bytes) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        head = f"HTTP/1.1 {status} x\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        self._answer = head.encode() + body
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                line, _ = self._listening.accept()
            except OSError:
                return
            with line:
                line.recv(65536)
                line.sendall(self._answer)

    def close(self) -> None:
        self._listening.close()


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b'{"submissions":[]}', b'{"submissions":{"open":true}}', b"\xff\x00", b"[" * 10**5],
)
def test_strange_answers_are_one_line(run_of: RunOf, body: bytes) -> None:
    strange = Strange(200, body)
    try:
        assert len(line_of(rbtc(run_of("oracle"), "--url", strange.url))) < 500
    finally:
        strange.close()


def test_lines_of_a_hostile_board_cannot_steer_a_terminal(run_of: RunOf) -> None:
    body: dict[str, Any] = {"submissions": {"open": False, "closed": "\x1b[31mred\n" * 200}}
    strange = Strange(200, json.dumps(body).encode())
    try:
        said = line_of(rbtc(run_of("oracle"), "--url", strange.url))
        assert "\x1b" not in said and len(said) < 1500
    finally:
        strange.close()


def test_a_run_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    assert "no predictions at" in line_of(rbtc(tmp_path / "no", "--url", "http://localhost:1"))
    (tmp_path / "predictions.parquet").write_bytes(b"x")
    assert "no run record at" in line_of(rbtc(tmp_path, "--url", "http://localhost:1"))
    (tmp_path / "run.json").write_bytes(b"")
    assert "has 0 bytes" in line_of(rbtc(tmp_path, "--url", "http://localhost:1"))
