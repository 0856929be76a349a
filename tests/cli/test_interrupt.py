"""Ctrl-C, as a person presses it: a real SIGINT to the whole group of processes, with and without a terminal.

Every long command says what was kept and how to go on, exits with 130, and leaves no process behind.
"""

import os
import pty
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from ..conftest import Done
from ..eval import small
from ..loopback import LoopbackServer

RBTC = "from robustbench_tc.cli import main; main()"
LIMIT_S = 120.0
"""How long anything here may take on a busy machine; nothing is measured by it."""


class Command:
    """`rbtc …` in a session of its own; `said` grows while it runs."""

    def __init__(
        self, *words: object, terminal: bool = False, code: str = RBTC, cwd: Path | None = None
    ) -> None:
        ours, theirs = pty.openpty() if terminal else os.pipe()
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, *map(str, words)],
            stdin=theirs if terminal else subprocess.DEVNULL,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            # Whoever runs the tests in the background may have left the signal ignored.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            cwd=cwd,
            env=os.environ | {"TERM": "xterm", "COLUMNS": "200"},
        )
        os.close(theirs)
        self.said = ""
        self._reader = threading.Thread(target=self._read, args=(ours,), daemon=True)
        self._reader.start()

    def _read(self, ours: int) -> None:
        try:
            while part := os.read(ours, 65536):
                self.said += part.decode(errors="replace")
        except OSError:  # a terminal whose last process is gone
            pass
        finally:
            os.close(ours)

    def until(self, reached: Callable[[], bool]) -> None:
        deadline = time.monotonic() + LIMIT_S
        while not reached():
            assert self.process.poll() is None, f"it ended before: {self.said}"
            assert time.monotonic() < deadline, f"it never got there: {self.said}"
            time.sleep(0.005)

    def interrupt(self, times: int = 1, pause_s: float = 0.05) -> str:
        """Ctrl-C so many times; what the command said after it, its last line."""
        for number in range(times):
            time.sleep(pause_s if number else 0)
            try:
                os.killpg(self.process.pid, signal.SIGINT)
            except ProcessLookupError:
                break
        return self.end(130)

    def end(self, code: int) -> str:
        try:
            found = self.process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            raise AssertionError(f"it hangs: {self.said}") from None
        self._reader.join(10)
        assert found == code, self.said
        assert "Traceback" not in self.said and "Exception" not in self.said, self.said
        deadline = time.monotonic() + 10
        while _group_lives(self.process.pid):
            assert time.monotonic() < deadline, "a process was left behind"
            time.sleep(0.02)
        plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.said).strip()
        return re.split(r"[\r\n]+", plain)[-1]


def _group_lives(group: int) -> bool:
    """Whether a process of the group still runs. An ended one is listed until process 1 looks."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    if not Path("/proc/self/stat").exists():
        return True
    return any(
        group == found and state not in "ZX" for state, found in map(_state, Path("/proc").glob("[0-9]*"))
    )


def _state(process: Path) -> tuple[str, int]:
    """Its state and its process group, from proc(5)."""
    try:
        state, _, group = (process / "stat").read_text().rpartition(")")[2].split()[:3]
    except OSError:  # gone meanwhile
        return "X", 0
    return state, int(group)


@contextmanager
def running(*words: object, **options: Any) -> Iterator[Command]:
    command = Command(*words, **options)
    try:
        yield command
    finally:
        if _group_lives(command.process.pid):
            os.killpg(command.process.pid, signal.SIGKILL)
            command.process.wait()


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small.write(tmp_path_factory.mktemp("release") / "robustbench-tc", small.rows())


def journaled(run: Path) -> int:
    journal = run / "journal.jsonl"
    return journal.read_bytes().count(b"\n") if journal.exists() else 0


@pytest.mark.parametrize(("terminal", "times"), [(False, 1), (True, 1), (False, 4)])
def test_eval_keeps_every_answer_and_goes_on(
    terminal: bool, times: int, release: Path, tmp_path: Path, rbtc: Callable[..., Done]
) -> None:
    run = tmp_path / "run"
    with LoopbackServer(lambda body: "no call", delay_s=0.2) as server:
        words = ("eval", release, "--model", "tiny", "--base-url", server.url, "--out", run, "--no-score")
        with running(*words, "--concurrency", 2, terminal=terminal) as command:
            command.until(lambda: journaled(run) >= 3)
            last = command.interrupt(times)
        asked = server.count
    found = re.fullmatch(r"rbtc: interrupted: (\d+) of (\d+) rows have their answers in (.+); (.+)", last)
    assert found and found[3] == str(run) and found[4] == "the same command goes on", last
    kept = journaled(run)
    assert 1 <= int(found[1]) <= kept < int(found[2]) and asked <= kept + 2
    if times == 1:
        assert pq.read_table(run / "predictions.parquet").num_rows == kept == int(found[1])
    with LoopbackServer(lambda body: "no call") as server:
        assert rbtc("eval", release, "--model", "tiny", "--base-url", server.url, "--out", run).code == 0
        assert server.count == int(found[2]) - kept, "what was answered is not asked again"


@pytest.mark.parametrize(("terminal", "times"), [(False, 1), (True, 3)])
def test_build_leaves_nothing_half_written(terminal: bool, times: int, tmp_path: Path) -> None:
    out = tmp_path / "built"
    words = ("build", "--profile", "bundled", "--out", out, "--num-proc", 2)
    with running(*words, terminal=terminal, cwd=tmp_path) as command:
        command.until(lambda: any(tmp_path.glob(".built.*.partial/clean/*")))
        last = command.interrupt(times)
    assert last == f"rbtc: interrupted: nothing was written to {out}; run the same command again"
    assert not out.exists()
    if times == 1:
        assert list(tmp_path.iterdir()) == []


def test_a_download_is_taken_up_again(tmp_path: Path) -> None:
    """The server sends a few bytes and no more."""
    import http.server

    class Slow(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"a" * 100)
            self.wfile.flush()
            stopped.wait(LIMIT_S)

        def log_message(self, *_: object) -> None:
            pass

    stopped = threading.Event()
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Slow) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        with running("sources", "fetch", "--out", tmp_path / "s", "--base-url", url) as command:
            command.until(lambda: any(tmp_path.rglob("*.partial")))
            last = command.interrupt()
        stopped.set()
        server.shutdown()
    assert last == (
        f"rbtc: interrupted: what was downloaded is kept in {tmp_path / 's'}, begun files too; "
        "the same command goes on"
    )
    assert any(tmp_path.rglob("*.partial"))


AT_WORK = """
import importlib, sys, time
module, name, *sys.argv[1:] = sys.argv[1:]
def work(*_, **__):
    sys.stdout.write("AT WORK\\n"); sys.stdout.flush()
    while True:
        time.sleep(0.05)
holder = importlib.import_module("robustbench_tc." + module)
setattr(holder, name, work)
from robustbench_tc.cli import main
main()
"""
"""The command line as it is, but for one function, which never comes to its end."""


@pytest.mark.parametrize(
    ("place", "words", "kept"),
    [
        ("cli _app", "list types", "files are written whole or not at all"),
        ("eval.verdicts rows_of", "score RUN", "RUN/scores.parquet was not touched"),
        ("audits.gate audit", "audit RELEASE", "nothing was written to RELEASE"),
        ("release.freeze release", "release RELEASE --version 1.0.0 --out OUT", "nothing was written to OUT"),
        ("eval.report.content build", "report RUN --out OUT", "the files in OUT are those of before"),
        ("release.publish publish", "publish RELEASE org/name", "the tag comes last, so no half version"),
        ("sql.query query", "sql accuracy --run RUN", "run the same command again"),
        ("eval.validate validate_release", "validate RELEASE", "run the same command again"),
    ],
)
def test_the_others_say_it_too(place: str, words: str, kept: str, release: Path, tmp_path: Path) -> None:
    from ..eval.synthetic_runs import write_run
    from ..eval.test_degenerate_runs import settings

    run = write_run(
        tmp_path / "run",
        lambda c, t: True,
        [("bfcl_v3__level1_0", "clean")],
        record={"dataset_revision": None, "settings": settings("m", 1)},
    )
    names = {"RUN": str(run), "OUT": str(tmp_path / "out"), "RELEASE": str(release)}
    for name, path in names.items():
        words, kept = words.replace(name, path), kept.replace(name, path)
    with running(*place.split(), *words.split(), code=AT_WORK) as command:
        command.until(lambda: "AT WORK" in command.said)
        last = command.interrupt()
    assert last.startswith("rbtc: interrupted: ") and kept in last, last


BROKEN = """
import sys
from robustbench_tc.errors import UserError
from robustbench_tc.sql import query
def work(*_, **__):
    try:
        raise KeyboardInterrupt  # the first Ctrl-C
    finally:  # the second one leaves a file closed, a pool broken, a state that our own code finds wrong
        raise kinds[kind]
kinds = {"os": OSError(9, "Bad file descriptor"), "other": ValueError("half"), "user": UserError("no")}
kind, *sys.argv[1:] = sys.argv[1:]
query.query = work
from robustbench_tc.cli import main
main()
"""


@pytest.mark.parametrize("kind", ["os", "other", "user"])
def test_what_breaks_on_the_way_out_is_still_an_interrupt(kind: str, tmp_path: Path) -> None:
    with running(kind, "sql", "accuracy", "--run", tmp_path, code=BROKEN) as command:
        last = command.end(130)
    assert last.startswith("rbtc: interrupted: ") and last.endswith("run the same command again"), last


STORM = """
import signal, sys, threading, time
from robustbench_tc.cli import _interrupts
_interrupts.GRACE_S = 60.0
_interrupts.watch()
def slow(*_):
    for _ in range(200):
        pass
sys.addaudithook(slow)  # as filelock's under 3.12: Python code of the main thread, in every hook of ours too
def work():
    for _ in range(2000):
        pass
class Thrown:
    def __del__(self):  # what is raised here is printed and forgotten
        work()
main = threading.main_thread().ident
def press():
    time.sleep(0.02)
    while time.monotonic() < end:
        signal.pthread_kill(main, signal.SIGINT)
        time.sleep(0.0002)
for _ in range(20):
    _interrupts.watch()
    end = time.monotonic() + 0.1
    pressing = threading.Thread(target=press)
    pressing.start()
    try:
        while True:
            Thrown()
            work()
    except KeyboardInterrupt:
        while pressing.is_alive():  # cleans up
            Thrown()
            work()
    print("cleaned up")
"""


def test_ctrl_c_comes_once_and_for_good() -> None:
    """However often it is pressed: neither lost in a finalizer, nor in what is cleaned up after the first."""
    with running(code=STORM) as command:
        command.end(0)
    assert command.said.split() == ["cleaned", "up"] * 20


STUCK = """
import time
from robustbench_tc.cli import _console, _interrupts, main
from robustbench_tc.sql import query
_interrupts.GRACE_S = 0.2
def work(*_, **__):
    with _console.status("sums", "half of it"):
        print("AT WORK", flush=True)
        try:
            time.sleep(600)
        finally:
            time.sleep(600)
query.query = work
main()
"""


@pytest.mark.parametrize("terminal", [False, True])
def test_a_second_one_ends_what_does_not_come_to_its_end(terminal: bool, tmp_path: Path) -> None:
    with running("sql", "accuracy", "--run", tmp_path, code=STUCK, terminal=terminal) as command:
        command.until(lambda: "AT WORK" in command.said)
        assert command.interrupt(2) == "rbtc: interrupted: half of it"
    if terminal:
        assert command.said.rfind("\x1b[?25l") < command.said.rfind("\x1b[?25h"), "the cursor is shown again"


IN_A_LOOP = """
import asyncio
from robustbench_tc.cli import _console, _interrupts, main
from robustbench_tc.sql import query
_interrupts.GRACE_S = 60.0
async def ask():
    print("AT WORK", flush=True)
    try:
        await asyncio.sleep(600)
    finally:
        await asyncio.sleep(0.5)
        print("CLEANED UP", flush=True)
def work(*_, **__):
    with _console.keeping("half of it"):
        asyncio.run(ask())
query.query = work
main()
"""


def test_what_a_loop_cleans_up_is_not_broken(tmp_path: Path) -> None:
    with running("sql", "accuracy", "--run", tmp_path, code=IN_A_LOOP) as command:
        command.until(lambda: "AT WORK" in command.said)
        assert command.interrupt(5) == "rbtc: interrupted: half of it"
    assert "CLEANED UP" in command.said


IGNORED = """
import os, signal
signal.signal(signal.SIGINT, signal.SIG_IGN)
from robustbench_tc.cli import _interrupts
_interrupts.watch()
os.kill(os.getpid(), signal.SIGINT)
print("goes on")
"""


def test_where_a_shell_has_it_ignored_it_stays_so() -> None:
    with running(code=IGNORED) as command:
        assert command.end(0) == "goes on"


ELSE = """
import time
from robustbench_tc.cli import _interrupts
_interrupts.watch()
class Thrown:
    def __del__(self):
        raise ValueError("half a file")
Thrown()
time.sleep(600)
"""


def test_what_else_python_can_only_print_is_printed() -> None:
    with running(code=ELSE) as command:
        command.until(lambda: "ValueError: half a file" in command.said)
        assert re.match(r"Exception ignored in: <function Thrown.__del__ .*\s+Traceback ", command.said)


AT_A_QUERY = """
import sys
from robustbench_tc.sql import query
def work(*_, **__):
    with query.connect(query.Inputs()) as connection:
        print("AT WORK", flush=True)
        connection.execute("select sum(a.range * b.range % 7) from range(30000) a, range(30000) b")
query.query = work
from robustbench_tc.cli import main
main()
"""


IN_AN_IMPORT = """
import enum, os, signal, sys
from robustbench_tc.cli import main
usual = enum.EnumType.__call__
def pressing(*words, **options):
    frame = sys._getframe()
    while frame and not frame.f_code.co_filename.endswith("duckdb/__init__.py"):
        frame = frame.f_back
    if frame:
        enum.EnumType.__call__ = usual
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(1000):  # where a signal is handled, if this is the main thread
            pass
    return usual(*words, **options)
enum.EnumType.__call__ = pressing
main()
"""


def test_the_import_of_duckdb_is_interrupted(tmp_path: Path) -> None:
    """Its C++ calls Python, and aborts the process where that raises."""
    with running("sql", "accuracy", "--run", tmp_path, code=IN_AN_IMPORT) as command:
        last = command.end(130)
    assert last.startswith("rbtc: interrupted: "), last


SPINNER_LEFT = """
import os, signal
from rich.live import Live
from robustbench_tc.cli import _console, main
from robustbench_tc.sql import query
def work(*_, **__):
    with _console.status("sums", "half of it"):
        pass
query.query = work
Live._disable_redirect_io = lambda self: os.kill(os.getpid(), signal.SIGINT)  # half way
main()
"""


def test_a_spinner_that_did_not_end_leaves_the_line_and_the_cursor(tmp_path: Path) -> None:
    with running("sql", "accuracy", "--run", tmp_path, code=SPINNER_LEFT, terminal=True) as command:
        assert command.end(130) == "rbtc: interrupted: half of it"
    assert command.said.rfind("\x1b[?25l") < command.said.rfind("\x1b[?25h")


@pytest.mark.parametrize("times", [1, 3])
def test_a_query_of_duckdb_is_interrupted(times: int, tmp_path: Path) -> None:
    """DuckDB makes a RuntimeError of a Ctrl-C that comes while it is at a query."""
    with running("sql", "accuracy", "--run", tmp_path, code=AT_A_QUERY) as command:
        command.until(lambda: "AT WORK" in command.said)
        time.sleep(0.2)
        last = command.interrupt(times)
    assert last.startswith("rbtc: interrupted: ") and last.endswith("run the same command again"), last
