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


VIEWS: dict[str, dict[str, Any]] = {
    f"{name}, {scheme}": {"viewport": size, "color_scheme": scheme}
    for name, size in (
        ("desktop", {"width": 1280, "height": 900}),
        ("phone", {"width": 390, "height": 844}),
    )
    for scheme in ("light", "dark")
}
"""Windows that every page is looked at in."""


class Watched:
    """A page in a window of its own, with what its console says and what it asks for."""

    def __init__(self, browser: Any, **window: Any) -> None:
        self.context = browser.new_context(**VIEWS["desktop, light"] | window)
        self.page = self.context.new_page()
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("dialog", lambda dialog: self.said.append(dialog.message))
        self.page.on("request", lambda request: self.asked.append(request.url))

    def open(self, path: Path, hash: str = "") -> Any:
        """The page, once it has settled."""
        self.page.goto(path.as_uri() + hash)
        self.page.wait_for_timeout(150)
        return self.page

    def close(self) -> None:
        """Nothing was said, nothing asked of another host, and no text of a page had its way."""
        title = self.page.title()
        self.context.close()
        assert self.said == [] and title != "owned"
        assert [one for one in self.asked if not one.startswith(("file:", "data:", "blob:"))] == []


def violations(page: Any, *rules: str) -> list[str]:
    """What axe finds on a page, by all of its rules or by these; it sees a picture that nobody names."""
    page.evaluate(axe())
    options = {"resultTypes": ["violations"], "preload": False} | ({"runOnly": rules} if rules else {})
    found = page.evaluate("options => axe.run(document, options)", options)
    return [f"{one['id']}: {one['nodes'][0]['html'][:200]}" for one in found["violations"]]


def readable(page: Any) -> None:
    """With everything open axe finds nothing, and nothing sticks out; axe finds a picture without a name."""
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true })")
    page.wait_for_timeout(300)
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    page.evaluate("document.querySelector('main').append(document.createElement('img'))")
    assert [one.partition(":")[0] for one in violations(page, "image-alt")] == ["image-alt"]


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
