"""The page of a live run in a browser: axe, the console, the network, and no cut at the side."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from robustbench_tc import api

from ...browsing import VIEWS, Watched, chromium, readable
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
    watched = Watched(browser, **VIEWS[view])
    page = watched.open(live_page)
    readable(page)
    assert page.locator("li.met").count() > 0
    watched.close()
