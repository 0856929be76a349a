"""Copies of the checkout that the mutation run changes, and pytest in one of them."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import mutation_plugin as plugin
from mutants import ROOT

NOTICED = (1, 2, 4)
"""Exit codes of pytest: failures; a file that cannot be imported; a conftest.py that cannot be."""

_RUNNING: set[subprocess.Popen[bytes]] = set()
_INTERRUPTED = threading.Event()


def tests(
    copy: Path,
    files: Sequence[str],
    chosen: tuple[Path, list[str]] | None,
    timeout_s: float | None = None,
    *,
    under: Sequence[str] = ("-m", "pytest"),
) -> int:
    """Runs tests of a copy: 0 where they pass (or none is chosen), 124 where they do not end, else 1, 2 or 4.

    `chosen` are node ids and the plugin's file for them; None runs all of the files. Their own process group
    keeps an interruption of this run from looking like a failure.
    """
    for leftover in (plugin.ONLY, plugin.NOT, plugin.FAILED):
        (copy / leftover).unlink(missing_ok=True)
    if chosen is not None:
        (copy / chosen[0]).write_text("\n".join(chosen[1]), "utf-8")
    shared = os.environ.get("RBTC_SHARED", str(ROOT.parent / "shared"))
    paths = os.pathsep.join((str(copy / "src"), str(copy / "scripts")))
    environment = os.environ | {"PYTHONPATH": paths, "RBTC_SHARED": shared, "CI": "true"}
    options = ["-x", "-q", "--tb=short", "-p", "no:cacheprovider", "-p", "mutation_plugin"]
    command = [sys.executable, *under, *options, *files]
    with (copy / "mutation.log").open("wb") as log:
        process = subprocess.Popen(
            command, cwd=copy, env=environment, stdout=log, stderr=subprocess.STDOUT, process_group=0
        )
        _RUNNING.add(process)
        if _INTERRUPTED.is_set():
            _stop(process)
        try:
            code = process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            code = 124
        finally:
            _stop(process)
            _RUNNING.discard(process)
    if code not in (0, 5, 124, *NOTICED):
        said = (copy / "mutation.log").read_text("utf-8", errors="replace")
        raise SystemExit(f"pytest ended with {code}:\n{said[-2000:]}")
    return 0 if code == 5 else code


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Ends the process and what it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def interrupt() -> None:
    """Ends every run of tests; the threads that wait for one end with an error instead of a verdict."""
    _INTERRUPTED.set()
    for process in tuple(_RUNNING):
        _stop(process)


def tracked() -> list[str]:
    """The files and links that git knows, as they are in the working tree."""
    command = ["git", "ls-files", "-z"]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True).stdout
    return [name for name in names.split("\0") if name and os.path.lexists(ROOT / name)]


def copy_of_checkout(folder: Path) -> Path:
    """The tracked files as they are in the working tree, links kept."""
    for name in tracked():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, folder / name, follow_symlinks=False)
    return folder
