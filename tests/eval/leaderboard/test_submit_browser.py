"""The submit page in a browser: axe, the form, the stages, and a form that is refused."""

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from .conftest import RunOf
from .test_browser import DESKTOP, PHONE, Server, Watched, browser, upload

pytest.importorskip("axe_playwright_python", reason="axe comes with the extra browser (make env-leaderboard)")

AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8")

__all__ = ["browser"]


@pytest.fixture(scope="module")
def server(release: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    made = Server(release, tmp_path_factory.mktemp("form") / "results")
    yield made
    said = made.stop()
    assert "Traceback" not in said, said


def violations(page: Any) -> list[str]:
    page.evaluate(AXE)
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [f"{one['id']}: {one['nodes'][0]['html'][:300]}" for one in found["violations"]]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_axe_finds_nothing_on_the_submit_page(
    browser: Any, server: Server, size: dict[str, int], scheme: str
) -> None:
    watched = Watched(browser, server, size, scheme)
    watched.page.goto("/submit/")
    watched.page.wait_for_selector("#check")
    watched.page.wait_for_timeout(300)
    assert violations(watched.page) == []
    assert watched.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    watched.close()


def test_the_form_is_stated_on_the_board_after_its_stages(
    browser: Any, server: Server, run_of: RunOf
) -> None:
    watched = Watched(browser, server, DESKTOP)
    page, run = watched.page, run_of("oracle")
    stages: list[str] = []
    page.expose_function("stage", lambda text: stages.append(str(text)))
    page.goto("/submit/")
    page.wait_for_selector("#check")
    page.evaluate(
        """() => new MutationObserver(() => {
          const now = document.querySelector("#report [aria-current=step]");
          if (now) window.stage(now.innerText);
        }).observe(document.querySelector("#report"), {childList: true, subtree: true})"""
    )
    for where, path in (("#predictions", "predictions.parquet"), ("#record", "run.json")):
        page.set_input_files(f"{where} input[type=file]", str(run / path))
        page.wait_for_selector(f"{where} .file-preview, {where} table")
    values = {"name": "Stated-3B", "card": "acme/alpha", "licence": "apache-2.0", "price-in": "0.1"}
    for field, value in (values | {"price-out": "0.4"}).items():
        page.fill(f"#{field} textarea, #{field} input", value)
    page.click("#weights >> text=closed")
    page.click("#check")
    page.wait_for_selector("#report .verdict")
    assert "Every check passed" in page.inner_text("#report .verdict")
    assert stages and {one.partition(" ")[0] for one in stages} == {"now"}
    assert violations(page) == []
    page.click("#list")
    page.wait_for_selector("#outcome .verdict.good")
    [one] = [one for one in server.store.submissions()[0] if one.model == "Stated-3B"]
    assert (one.card, one.licence, one.weights) == (
        "https://huggingface.co/acme/alpha",
        "apache-2.0",
        "closed",
    )
    assert (one.price_in, one.price_out) == (0.1, 0.4)
    watched.close()


def test_a_form_that_cannot_be_listed_is_one_line(browser: Any, server: Server, run_of: RunOf) -> None:
    watched = Watched(browser, server, DESKTOP)
    page = watched.page
    upload(page, run_of("oracle") / "predictions.parquet", None)
    assert "there is no run record" in page.inner_text("#report .verdict")
    page.fill("#card textarea, #card input", "javascript:alert(1)")
    page.click("#check")
    page.wait_for_function("document.querySelector('#report .verdict')?.innerText.includes('model card')")
    assert violations(page) == []
    watched.close()
