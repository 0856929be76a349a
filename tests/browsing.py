"""A real Chromium for the tests of pages, and a server of ours for it."""

import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = Path(os.environ.get("RBTC_CHROMIUM", "/usr/bin/chromium"))

OPTIONS = (
    "--no-sandbox --disable-gpu --disable-background-networking --disable-component-update --disable-sync"
).split()


def axe() -> str:
    """The script that looks at a page; the test is skipped where the extra `browser` is not installed."""
    pytest.importorskip("axe_playwright_python", reason="axe comes with the extra browser (env-leaderboard)")
    return files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8")


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser; the test is skipped where there is none."""
    playwright = pytest.importorskip("playwright.sync_api", reason="driven by playwright (env-leaderboard)")
    if not CHROMIUM.is_file():
        pytest.skip(f"no browser at {CHROMIUM} (set RBTC_CHROMIUM)")
    with playwright.sync_playwright() as tool:
        found = tool.chromium.launch(executable_path=str(CHROMIUM), args=OPTIONS)
        yield found
        found.close()


@contextmanager
def running(words: list[str], url: str, log: Path, **options: Any) -> Iterator["subprocess.Popen[bytes]"]:
    """A server, from when it answers until the block ends; what it prints is in `log`."""
    with log.open("wb") as file:
        server = subprocess.Popen([sys.executable, *words], stdout=file, stderr=file, **options)
        try:
            for _ in range(600):
                assert server.poll() is None, log.read_text()
                try:
                    urllib.request.urlopen(f"{url}/submit/", timeout=5).read()
                    break
                except OSError:
                    time.sleep(0.1)
            yield server
        finally:
            server.terminate()
            server.wait(60)
