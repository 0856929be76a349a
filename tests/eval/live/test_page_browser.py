"""The page of a live run in a browser: axe, the console, the network, and no cut at the side."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from robustbench_tc import api

from ...browsing import chromium
from ..test_report_browser import AXE, VIEWS
from . import purses


@pytest.fixture(scope="module")
def live_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("live")
    purses.write(root / "purses", purses.rows())
    world = [str(purses.FILE)]
    api.evaluate(root / "purses", agent="blind-retrier", worlds=world, out=root / "run")
    api.score(root / "run", worlds=world)
    api.report([root / "run"], root / "page", worlds=world)
    return root / "page" / "report.html"


@pytest.fixture(scope="module")
def browser(live_page: Path) -> Iterator[Any]:
    """After the page: playwright leaves an event loop running, in which no episode is replayed."""
    with chromium() as found:
        yield found


@pytest.mark.parametrize("view", VIEWS)
def test_axe_finds_nothing_and_nothing_is_cut_or_asked_for(browser: Any, live_page: Path, view: str) -> None:
    size, scheme = VIEWS[view]
    context = browser.new_context(viewport=size, color_scheme=scheme)
    page = context.new_page()
    said: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(live_page.as_uri())
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true })")
    assert page.locator("li.met").count() > 0
    width = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert width <= 0, f"{view}: {width} pixels are cut"
    page.evaluate(AXE)
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    assert [f"{one['id']}: {one['nodes'][0]['html'][:200]}" for one in found["violations"]] == []
    context.close()
    assert said == [] and all(url.startswith("file:") for url in asked)
