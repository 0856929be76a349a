"""A copy of the checkout that the mutation run changes, and pytest in it."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import mutation_plugin as plugin
from mutants import ROOT
from mutation_server import LOG, TIMED_OUT

NOTICED = (1, 2, 4)
"""Exit codes of pytest: failures; a file that cannot be imported; a conftest.py that cannot be."""

OPTIONS = ["-x", "-q", "--tb=short", "-p", "no:cacheprovider", "-p", "mutation_plugin"]


class Copy:
    """The tracked files as they are in the working tree, links kept, and a process that runs tests there."""

    def __init__(self, folder: Path) -> None:
        self.path = folder
        for name in tracked():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name, follow_symlinks=False)
        shared = os.environ.get("RBTC_SHARED", str(ROOT.parent / "shared"))
        paths = os.pathsep.join((str(folder / "src"), str(folder / "scripts")))
        self._environment = os.environ | {"PYTHONPATH": paths, "RBTC_SHARED": shared, "CI": "true"}
        self._server: subprocess.Popen[str] | None = None
        self._stopped = False
        self._written = 0

    def measured(self, files: Sequence[str], settings: Path) -> int:
        """Runs files of tests under coverage: the exit code of pytest."""
        under = ("-m", "coverage", "run", f"--rcfile={settings}", "-m", "pytest", *OPTIONS)
        with (self.path / LOG).open("wb") as log:
            return subprocess.run(
                [sys.executable, *under, *files], cwd=self.path, env=self._environment,
                stdout=log, stderr=subprocess.STDOUT, check=False,
            ).returncode  # fmt: skip

    def tests(
        self, files: Sequence[str], chosen: Path, tests: Sequence[str], limits: tuple[float, int]
    ) -> int:
        """Runs tests of the files: 0 where they pass (or there are none), TIMED_OUT, else one of NOTICED.

        `chosen`: the plugin's ONLY or NOT, and `tests` the node ids that it names. `limits`: seconds in all,
        and of computing.
        """
        for leftover in (plugin.ONLY, plugin.NOT, plugin.FAILED):
            (self.path / leftover).unlink(missing_ok=True)
        (self.path / chosen).write_text("\n".join(tests), "utf-8")
        if self._stopped:
            raise SystemExit("stopped")
        server = self._server or self._started()
        assert server.stdin is not None and server.stdout is not None
        basetemp = f"--basetemp={self.path / 'mutation.tmp'}"
        server.stdin.write(json.dumps([*limits, [*OPTIONS, basetemp, *files]]) + "\n")
        server.stdin.flush()
        answer = server.stdout.readline()
        if answer.strip() not in map(str, (0, 5, TIMED_OUT, *NOTICED)):
            raise SystemExit(f"pytest ended with {answer.strip() or 'nothing'}:\n{self.said()}")
        return 0 if int(answer) == 5 else int(answer)

    def _started(self) -> subprocess.Popen[str]:
        """In a process group of its own: an interruption of this run must not look like a failed test."""
        self._server = subprocess.Popen(
            [sys.executable, str(self.path / "scripts" / "mutation_server.py")], cwd=self.path,
            env=self._environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, process_group=0,
        )  # fmt: skip
        return self._server

    def failed(self) -> str:
        """The first test that failed; "" where none did."""
        path = self.path / plugin.FAILED
        return path.read_text("utf-8") if path.is_file() else ""

    def said(self) -> str:
        """The end of what pytest printed."""
        return (self.path / LOG).read_text("utf-8", errors="replace")[-2000:]

    @contextlib.contextmanager
    def holding(self, name: str, source: str) -> Iterator[None]:
        """One file with another text. Python recompiles it by its time in seconds, so each gets its own."""
        target = self.path / name
        original, times = target.read_bytes(), (target.stat().st_atime, target.stat().st_mtime)
        target.write_text(source, "utf-8")
        self._written += 1
        os.utime(target, (self._written, self._written))
        try:
            yield
        finally:
            target.write_bytes(original)
            os.utime(target, times)

    def stop(self) -> None:
        """Ends the tests that run, if any, and the process that runs them."""
        self._stopped = True
        if self._server is not None:
            self._server.send_signal(signal.SIGTERM)
            self._server.wait()


def tracked() -> list[str]:
    """The files and links that git knows, as they are in the working tree."""
    command = ["git", "ls-files", "-z"]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True).stdout
    return [name for name in names.split("\0") if name and os.path.lexists(ROOT / name)]
