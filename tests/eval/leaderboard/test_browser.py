"""The served app in Debian's Chromium: what a visitor and a submitter do, and what they may not meet.

Every page of this file is watched: no error on the console, no request to another host.
"""

import json
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec
import pytest

from robustbench_tc.eval.leaderboard.checks import Asked
from robustbench_tc.eval.leaderboard.desk import Desk
from robustbench_tc.eval.leaderboard.limits import Limits
from robustbench_tc.eval.leaderboard.live_data import LiveAsked
from robustbench_tc.eval.leaderboard.sample_pages import sample_path
from robustbench_tc.eval.leaderboard.store import Store

from ...conftest import ROOT
from . import desks
from .bad_files import BAD, Bad
from .conftest import RunOf
from .few import submission

pytest.importorskip("gradio", reason="the app needs the extra leaderboard (make env-leaderboard)")
from .made import behind
from .test_single import put

playwright = pytest.importorskip(
    "playwright.sync_api", reason="the browser is driven by playwright (make env-leaderboard)"
)

pytest.importorskip("axe_playwright_python", reason="axe comes with the extra browser (make env-leaderboard)")

AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8")
CHROMIUM = Path(os.environ.get("RBTC_CHROMIUM", "/usr/bin/chromium"))
if not CHROMIUM.is_file():
    pytest.skip(f"no browser at {CHROMIUM} (set RBTC_CHROMIUM)", allow_module_level=True)

OPTIONS = (
    "--no-sandbox --disable-gpu --disable-background-networking --disable-component-update --disable-sync"
).split()
DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
LIMITS = Limits(file_bytes=4_000_000, per_day=200, pending=50)


class Server:
    def __init__(
        self, release: Path, store: Path, live_release: Path | None = None, live_id: str = ""
    ) -> None:
        self.store = Store(store)
        self.live_id = live_id
        command = [sys.executable, "-m", "tests.eval.leaderboard.serve_for_tests", str(release), str(store)]
        kept = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
        self.process = subprocess.Popen(
            [*command, msgspec.json.encode(LIMITS).decode(), "0", str(live_release or "")],
            cwd=ROOT,
            env=kept | {"HF_HUB_OFFLINE": "1", "HF_TOKEN": "hf_secret_of_the_server"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        port = self.process.stdout.readline().strip()
        assert port, self.process.stderr and self.process.stderr.read()
        self.url = f"http://127.0.0.1:{port}"
        for _ in range(200):
            try:
                urllib.request.urlopen(self.url, timeout=5).read()
                return
            except OSError:
                time.sleep(0.05)
        raise AssertionError("the server did not come up")

    def stop(self) -> str:
        """Ends the server; what it wrote to standard error."""
        self.process.terminate()
        _, said = self.process.communicate(timeout=60)
        return said


@pytest.fixture(scope="module")
def server(
    release: Path,
    asked: Asked,
    run_of: RunOf,
    live_release: Path,
    live_asked: LiveAsked,
    live_run: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("served")
    base = run_of("gives-up-on-error", model="Agent-7B")
    defended = behind(run_of("oracle", model="Agent-7B"), folder / "defended", "retry")
    for number, run in enumerate((base, run_of("silent", model="Loud-1B"), defended), 1):
        put(Store(folder / "results"), asked, run, number, folder / f"run{number}")
    scorer = desks.InProcess(asked, LIMITS, live_asked)
    live_id = desks.listed(Desk(Store(folder / "results"), scorer, LIMITS), live_run)
    made = Server(release, folder / "results", live_release, live_id)
    yield made
    said = made.stop()
    assert "Traceback" not in said and "hf_secret" not in said, said


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as tool:
        found = tool.chromium.launch(executable_path=str(CHROMIUM), args=OPTIONS)
        yield found
        found.close()


class Watched:
    """A page whose console and requests are written down."""

    def __init__(self, browser: Any, server: Server, size: dict[str, int], scheme: str = "light") -> None:
        self.context = browser.new_context(viewport=size, color_scheme=scheme, base_url=server.url)
        self.page = self.context.new_page()
        self.page.set_default_timeout(60_000)
        self.errors: list[str] = []
        self.outside: list[str] = []
        self._ours = (server.url, "data:", "blob:")
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("dialog", lambda dialog: self.errors.append(f"dialog: {dialog.message}"))
        self.page.on("request", self._asked)

    def _said(self, message: Any) -> None:
        if message.type == "error":
            self.errors.append(message.text)

    def _asked(self, request: Any) -> None:
        if not request.url.startswith(self._ours):
            self.outside.append(request.url)

    def close(self) -> None:
        self.context.close()
        assert self.errors == [] and self.outside == []


@pytest.fixture
def page(browser: Any, server: Server) -> Iterator[Any]:
    watched = Watched(browser, server, DESKTOP)
    yield watched.page
    watched.close()


def upload(page: Any, predictions: Path, record: Path | None, name: str | None = None) -> None:
    """Fills the submit page in and asks for the check."""
    page.goto("/submit/")
    page.wait_for_selector("#check")
    for where, path in (("#predictions", predictions), ("#record", record)):
        if path is not None:
            page.set_input_files(f"{where} input[type=file]", str(path))
            page.wait_for_selector(f"{where} .file-preview, {where} table")
    if name is not None:
        page.fill("#name textarea, #name input", name)
    page.click("#check")
    page.wait_for_selector("#report .verdict")


def listed(page: Any, run: Path, name: str) -> str:
    """Uploads a good run and lists it; the address of its page."""
    upload(page, run / "predictions.parquet", run / "run.json", name)
    assert "Every check passed" in page.inner_text("#report .verdict")
    page.click("#list")
    page.wait_for_selector("#outcome .verdict.good")
    return str(page.get_attribute("#outcome .verdict a", "href"))


def test_a_visitor_opens_sorts_filters_and_reads_a_model(page: Any, server: Server) -> None:
    page.goto("/?version=paper")
    assert page.inner_text("h1") == "Leaderboard"
    assert page.locator("table.board tbody tr").count() == 21
    page.click("table.board thead >> text=Clean")
    page.wait_for_url("**sort=clean**")
    assert page.get_attribute("th[aria-sort]", "aria-sort") == "descending"
    page.click("table.board thead >> text=Clean")
    page.wait_for_url("**dir=asc**")
    first = page.inner_text("table.board tbody tr:first-child th")
    assert first.startswith("Llama-3.2-3B")
    page.goto("/?version=paper")
    page.fill("#q", "toolrl")
    page.select_option("#size", "small")
    page.select_option("#focus", "CD_AB")
    page.click("text=Apply")
    page.wait_for_url("**focus=CD_AB**")
    names = page.locator("table.board tbody th a").all_inner_texts()
    assert names and all("ToolRL" in name for name in names)
    assert "q=toolrl" in page.url and "size=small" in page.url
    page.click(f"table.board tbody th a >> text={names[0]}")
    page.wait_for_selector("#compare")
    assert page.inner_text("h1") == names[0]
    page.select_option("#against", "paper-o4-mini")
    page.get_by_role("button", name="Compare", exact=True).click()
    page.wait_for_url("**against=paper-o4-mini**")
    assert page.locator("[aria-label=Comparison] tbody tr").count() == 28
    with page.expect_download() as download:
        page.goto("/?version=paper")
        page.click("text=CSV")
    assert Path(download.value.path()).read_text().count("\n") == 22


def test_a_submitter_uploads_sees_the_report_and_is_listed(page: Any, server: Server, run_of: RunOf) -> None:
    run = run_of("name-biased")
    upload(page, run / "predictions.parquet", run / "run.json", "Lured-3B")
    report = page.inner_text("#report")
    assert "Every check passed" in report and "The file holds no verdicts of its own" in report
    assert "Lured-3B" not in page.request.get("/board.json").text()
    page.click("#list")
    page.wait_for_selector("#outcome .verdict.good")
    assert not page.is_visible("#list")
    page.click("#outcome .verdict a >> nth=0")
    page.wait_for_selector("h1")
    assert page.inner_text("h1") == "Lured-3B" and "unverified" in page.inner_text(".facts")
    page.goto("/")
    assert "Lured-3B" in page.inner_text("table.board")
    [one] = [one for one in server.store.submissions()[0] if one.model == "Lured-3B"]
    assert one.user == "local"


def test_the_same_model_on_the_same_day_has_to_wait(page: Any, run_of: RunOf) -> None:
    listed(page, run_of("oracle"), "Daily-3B")
    upload(page, run_of("silent") / "predictions.parquet", run_of("silent") / "run.json", "Daily-3B")
    assert "one submission per model and day" in page.inner_text("#report .verdict")
    assert not page.is_visible("#list")


@pytest.mark.parametrize("bad", BAD, ids=[bad.name for bad in BAD])
def test_a_bad_file_meets_its_message(
    page: Any, server: Server, run_of: RunOf, bad: Bad, tmp_path: Path
) -> None:
    before = server.store.submissions()[0]
    made = bad.make(run_of("oracle"), tmp_path)
    upload(page, made.predictions, made.record, made.name)
    said = page.inner_text("#report .verdict")
    assert said.startswith("Not accepted") and bad.says in said
    assert page.locator("#report .checks > .failed").count() == 1
    assert page.locator("#report script, #report img").count() == 0
    assert not page.is_visible("#list")
    assert server.store.submissions()[0] == before
    assert not Path("/tmp/rbtc-unpickled").exists()


def test_nothing_chosen_names_what_to_choose(page: Any) -> None:
    page.goto("/submit/")
    page.wait_for_selector("#check")
    page.click("#check")
    page.wait_for_selector("#report .verdict")
    assert "choose one" in page.inner_text("#report .verdict")


ONE, TWO, DEFENDED = (submission(number, "x").id for number in range(1, 4))

VIEWS = (
    "/",
    "/?focus=CD&show=intervals",
    "/?version=paper",
    "/plots?version=paper",
    "/heatmap",
    "/heatmap?version=paper&show=delta",
    "/matrix?version=paper",
    "/types",
    "/progress",
    "/about",
    "/model/paper-o4-mini?against=paper-Qwen3-8B",
    f"/model/{DEFENDED}",
    "/model/nobody",
    "/samples",
    f"/samples?type=all&ids={ONE},{TWO}&differ=1",
    "/sample",
    f"/sample?type=realistic_typos&ids={ONE},{TWO}",
    "/sample?type=transient_timeout",
    "/compare",
    f"/compare?ids={ONE},{TWO}",
    "/compare?ids=paper-o4-mini,paper-Qwen3-8B&focus=CD",
    "/packs",
    "/packs?pack=context",
    "/defences",
    "/live",
    "/live?focus=clean&sort=model",
    "/live/RUN",
    "/submit/",
)
"""`/sample` stands for the page of the first sample, `RUN` for the id of a live run."""

CONTRAST = """() => {
  const parse = (text) => text.match(/[0-9.]+/g).map(Number).concat(1).slice(0, 4);
  const light = ([r, g, b]) => [r, g, b].map(v => v / 255)
    .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (el) => {
    for (let e = el; e; e = e.parentElement) {
      const c = parse(getComputedStyle(e).backgroundColor);
      if (c[3] > 0.99) return c;
    }
    return matchMedia("(prefers-color-scheme: dark)").matches ? [18, 22, 27, 1] : [255, 255, 255, 1];
  };
  const bad = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; (node = walker.nextNode());) {
    const el = node.parentElement, text = node.textContent.trim().slice(0, 30);
    if (!text || !el.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
    if (el.closest("script, style, noscript, .skip, svg")) continue;
    const style = getComputedStyle(el), size = parseFloat(style.fontSize);
    const [a, b] = [light(parse(style.color)), light(behind(el))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05), large = size >= 24 || (size >= 18.6 && style.fontWeight >= 700);
    if (ratio < (large ? 3 : 4.5)) bad.add(`${ratio.toFixed(2)} ${el.tagName}.${el.className}: ${text}`);
  }
  return [...bad];
}"""
"""Texts whose contrast is below WCAG's 4.5 (3 for large ones)."""

FAINT = """() => { const p = document.createElement("p"); p.textContent = "faint"; p.style.color = "#888";
  p.style.background = "#999"; (document.querySelector("main") ?? document.body).append(p); }"""

UNNAMED = """() => [...document.querySelectorAll("input, select, textarea, button, a[href], [role=button]")]
  .filter(el => el.checkVisibility())
  .filter(el => !(el.labels?.length || el.getAttribute("aria-label") || el.innerText?.trim() || el.title))
  .map(el => el.outerHTML.slice(0, 120))"""

UNREACHABLE = """() => [...document.querySelectorAll("a[href], button, input, select, textarea, summary")]
  .filter(el => el.checkVisibility() && el.tabIndex < 0 && !el.disabled)
  // A plot's points are links beside those of the table, which are reached.
  .filter(el => !(el.closest("svg") && el.closest("main").querySelector("table tbody a")))
  .map(el => el.outerHTML.slice(0, 120))"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_every_view_can_be_read_named_and_reached(
    browser: Any, server: Server, asked: Asked, run_of: RunOf, size: dict[str, int], scheme: str
) -> None:
    watched = Watched(browser, server, size, scheme)
    page = watched.page

    def violations(only: str | None = None) -> list[str]:
        options = {"resultTypes": ["violations"]} | ({"runOnly": [only]} if only else {})
        found = page.evaluate(f"options => {{ {AXE}; return axe.run(document, options); }}", options)
        return [f"{one['id']}: {one['nodes'][0]['html'][:200]}" for one in found["violations"]]

    for view in VIEWS:
        path = view.replace("RUN", server.live_id)
        page.goto(re.sub(r"^/sample(?!s)", sample_path(asked.rows[0].clean_id), path))
        page.wait_for_selector("#check" if view == "/submit/" else "main")
        page.wait_for_timeout(300)
        assert violations() == [], view
        assert page.evaluate(CONTRAST) == [], view
        assert page.evaluate(UNNAMED) == [], view
        assert page.evaluate(UNREACHABLE) == [], view
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, view
        if view == "/about":
            page.evaluate("""() => { const bad = document.createElement("img"); bad.src = "data:,";
                document.querySelector("main").append(bad); }""")
            assert [one.partition(":")[0] for one in violations("image-alt")] == ["image-alt"], "axe is blind"
        page.evaluate(FAINT)
        assert len(page.evaluate(CONTRAST)) == 1, "the contrast check sees nothing"
        for figure in page.locator("svg[role=img], svg[role=group]").all():
            assert figure.locator("xpath=ancestor::main//table").count() > 0, view
    watched.errors = [error for error in watched.errors if "404" not in error]  # the page of an error
    if size is DESKTOP:
        upload(page, run_of("oracle") / "predictions.parquet", None)
        page.wait_for_timeout(300)
        assert page.evaluate(CONTRAST) == []
    watched.close()


def test_on_a_phone_the_filters_fold_and_the_name_stays(browser: Any, server: Server) -> None:
    watched = Watched(browser, server, PHONE)
    page = watched.page
    page.goto("/?version=paper&mode=prompt")
    assert not page.is_visible("#mode") and "(1 set)" in page.inner_text(".fold summary")
    page.click(".fold summary")
    assert page.is_visible("#mode") and page.is_visible("#sort")
    left = "document.querySelector('table.board tbody th').getBoundingClientRect().left"
    before = page.evaluate(left)
    page.evaluate("document.querySelector('.scroll').scrollLeft = 400")
    assert 0 <= page.evaluate(left) <= before
    watched.close()
    wide = Watched(browser, server, DESKTOP)
    wide.page.goto("/?version=paper")
    assert wide.page.is_visible("#mode") and not wide.page.is_visible(".fold summary")
    wide.close()


def test_a_point_of_a_plot_leads_to_its_model(page: Any) -> None:
    page.goto("/plots?version=paper")
    point = page.locator("svg.scatter a").first
    address = point.get_attribute("href")
    point.locator("circle").dispatch_event("click")
    page.wait_for_url(f"**{address}")
    page.goto("/matrix?version=paper&q=qwen3")
    assert 2 < page.locator("table.matrix tbody tr").count() < 21


def test_the_board_is_worked_by_keyboard_alone(page: Any) -> None:
    page.goto("/?version=paper")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == "q":
            break
    page.keyboard.type("o4-mini")
    page.keyboard.press("Enter")
    page.wait_for_url("**q=o4-mini**")
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.innerText") == "o4-mini":
            break
    page.keyboard.press("Enter")
    page.wait_for_url("**/model/paper-o4-mini")


def sent(server: Server, path: str, body: bytes, kind: str = "application/json") -> tuple[int, str]:
    request = urllib.request.Request(server.url + path, body, {"Content-Type": kind}, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=60) as reply:
            return int(reply.status), reply.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_files_of_the_server_cannot_be_named_in_place_of_an_upload(
    server: Server, page: Any, run_of: RunOf
) -> None:
    """What a browser would never send: events with paths of ours, uploads with names that climb."""
    address = listed(page, run_of("first-of-duplicates"), "Secret-3B")
    stored = server.store.path(address.rpartition("/")[2]) / "predictions.parquet"
    typed = {"meta": {"_type": "gradio.FileData"}}
    paths = ("/etc/passwd", str(stored), f"{server.store.folder}/.lock")
    tries: list[dict[str, object]] = [{"path": path, **typed} for path in paths]
    tries += [
        {"path": "/etc/passwd", "is_stream": True, **typed},
        {"path": "/nowhere", **typed},
        {"path": f"{server.url}/board.json", **typed},
    ]
    for number, chosen in enumerate(tries):
        event = {"data": [chosen, chosen, "Stolen-3B", *[""] * 6], "session_hash": f"thief{number}"}
        status, said = sent(server, "/submit/gradio_api/run/check", json.dumps(event).encode())
        assert status == 500 and "report" not in said, said
    for path in paths:
        for prefix in ("/submit/gradio_api/file=", "/submit/file="):
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(f"{server.url}{prefix}{path}", timeout=60)
            assert refused.value.code in (403, 404)
    border = "----border"
    climbing = (
        f'--{border}\r\nContent-Disposition: form-data; name="files"; filename="../../../evil<b>.parquet"\r\n'
        f"Content-Type: application/octet-stream\r\n\r\nPAR1\r\n--{border}--\r\n"
    )
    status, said = sent(
        server, "/submit/gradio_api/upload", climbing.encode(), f"multipart/form-data; boundary={border}"
    )
    assert status == 200
    [place] = json.loads(said)
    assert ".." not in place and "<" not in place
    assert not list(server.store.folder.parent.rglob("evil*"))


def test_an_unknown_page_is_a_page_of_ours(browser: Any, server: Server) -> None:
    watched = Watched(browser, server, DESKTOP)
    watched.page.goto("/model/nobody")
    assert watched.page.inner_text("h1") == "Not found"
    assert [error for error in watched.errors if "404" not in error] == []
    watched.errors.clear()
    watched.close()
