"""The report in Debian's Chromium, from file://: what a reader does with it, what a reply may not do to it,
and what axe, the console and the network say.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from robustbench_tc import api, schema, taxonomy
from robustbench_tc.io.numbers import number, typeset

from ..browsing import VIEWS, Watched, readable
from . import small
from .synthetic_runs import clean_ids, coin, pairs, write_run

HOSTILE = (
    "</script><script>document.title = 'owned'</script><img src=x onerror=\"document.title = 'owned'\">",
    "\u202egnp.exe\u202c a null \u0000 and \u200b\u200b\u200b \x1b[31m <!-- <script>",
    "y" * 20_000,
)
ROW = "bfcl_v3__made_1::CD"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page over two runs: one right but for CD, one that replies with hostile texts."""
    root = tmp_path_factory.mktemp("report")
    release = small.write(root / "release", small.rows())

    def good(row: schema.Sample) -> Mapping[str, Any]:
        wrong = row.type_code == "CD" or row.source == "tooleyes"
        call = '[summit.height(mountain="Galdhoppen")]' if row.source == "bfcl_v3" else "no call"
        return {"raw_output": "I cannot do this." if wrong else call, "finish_reason": "stop"}

    def bad(row: schema.Sample) -> Mapping[str, Any]:
        return {"raw_output": HOSTILE[len(row.id) % 3], "finish_reason": "length"}

    runs = [
        small.scored_run(root / "good", release, "good-7b", good),
        small.scored_run(root / "bad", release, "other<b>bad</b>/long_name-of_a_model_1.5B", bad),
    ]
    api.report(runs, root / "out")
    return root / "out" / "report.html"


def opened(browser: Any, report: Path, view: str = "desktop, light", hash: str = "") -> Watched:
    """The page in a window, once its rows can be browsed."""
    watched = Watched(browser, **VIEWS[view], accept_downloads=True)
    watched.open(report, hash)
    watched.page.wait_for_selector("#rowbrowser[data-ready]")
    return watched


@pytest.fixture
def page(browser: Any, report: Path) -> Iterator[Any]:
    watched = opened(browser, report)
    yield watched.page
    watched.close()


def ids(page: Any) -> list[str]:
    return [str(one) for one in page.locator("#found a").all_inner_texts()]


CUT = """() => [...document.querySelectorAll("main *")]
  .filter(el => el.checkVisibility() && el.scrollWidth > el.clientWidth + 1 && el.clientWidth > 0)
  .filter(el => getComputedStyle(el).overflowX !== "visible")
  .filter(el => !(el.tabIndex === 0
    && (el.classList.contains("shown") || el.nextElementSibling?.matches(".hint:not([hidden])")))
    && !el.matches("select, input"))
  .map(el => el.outerHTML.slice(0, 160))"""
"""Elements that cut what they hold and neither say so nor can be scrolled by keyboard."""

BROKEN = """() => [...document.querySelectorAll("#found a, td.id, h3")].filter(el => el.checkVisibility())
  .flatMap(el => {
    const walker = document.createTreeWalker(el, NodeFilter.SHOW_TEXT), out = [];
    for (let node; (node = walker.nextNode());) {
      const range = document.createRange();
      range.selectNodeContents(node);
      const lines = new Set([...range.getClientRects()].map(box => Math.round(box.top)));
      if (lines.size > 1 && !/[\\s-]/.test(node.textContent)) out.push(node.textContent);
    }
    return out;
  })"""
"""Parts of ids that stand on two lines."""


@pytest.mark.parametrize("view", VIEWS)
def test_axe_the_console_and_the_network_have_nothing_to_say(browser: Any, report: Path, view: str) -> None:
    watched = opened(browser, report, view, f"#row={quote(ROW)}")
    page = watched.page
    page.click(".menu > summary")
    readable(page)
    assert page.evaluate(CUT) == [] and page.evaluate(BROKEN) == []
    watched.close()


def test_the_figures_of_a_table_have_one_width(page: Any) -> None:
    found = page.evaluate("""() => [...document.querySelectorAll("table, .answer, .card dd")]
        .map(el => getComputedStyle(el).fontVariantNumeric)""")
    assert len(found) > 10 and set(found) == {"tabular-nums"}


# --- the first screen -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Any]]:
    """Pages over a run with losses, over one with too little to tell, and over one with every warning."""
    root = tmp_path_factory.mktemp("answers")
    few: dict[str, Any] = {"rows": pairs(clean_ids({"apibank": 20}))}
    warned: dict[str, Any] = {
        "status": lambda c, t: "agent_error" if c.endswith("7") else "rejected" if t == "CD" else "ok",
        "finish_reason": lambda c, t: "length" if c.endswith(("1", "2")) else "stop",
    }
    made = {
        "loses": write_run(root / "loses", coin(2, 0.75, 0.7), model="a/model_of-a-very-long-name-1.5B"),
        "cannot tell": write_run(root / "few", lambda c, t: c.endswith(("_1", "_2")) and t != "CD", **few),
        "warned": write_run(root / "warned", coin(3), **warned),
    }
    found = {}
    for name, run in made.items():
        report = api.report([run], root / f"{name} page", allow_missing=True)
        found[name] = root / f"{name} page" / "report.html", report.models[0].answer
    return found


BOXES = """() => [...document.querySelectorAll(
    ".sentence, .level strong, .level small, .drops tr > *, .drops svg, .warnings li, .menu > summary")]
  .map(el => [el.textContent.slice(0, 40), el.getBoundingClientRect()])
  .map(([text, box]) => [text, box.left, box.top, box.right, box.bottom, box.width * box.height])"""


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("name", ["loses", "cannot tell", "warned"])
def test_the_first_screen_holds_the_answer(
    browser: Any, answers: dict[str, tuple[Path, Any]], name: str, view: str
) -> None:
    path, answer = answers[name]
    watched, size = Watched(browser, **VIEWS[view]), VIEWS[view]["viewport"]
    page = watched.open(path)
    assert page.evaluate("scrollY") == 0
    for text, left, top, right, bottom, area in page.evaluate(BOXES):
        assert left >= 0 and top >= 0 and area > 0, text
        assert right <= size["width"] and bottom <= size["height"], (text, right, bottom)
    assert page.inner_text(".sentence") == answer.sentence
    assert page.locator(".level small").all_inner_texts()[1].endswith("right")
    rows = page.locator(".drops tbody tr").all_inner_texts()
    assert len(rows) == len(answer.lines) == 5
    for shown, line in zip(rows, answer.lines.values(), strict=True):
        ends = [typeset(number(100 * end, 1)) for end in (line.drop.value, line.drop.low, line.drop.high)]
        assert shown.split()[:5] == [line.name, ends[0], ends[1], "to", ends[2]] and line.word in shown
    assert page.locator(".warnings li").all_inner_texts() == list(answer.warnings)
    assert bool(answer.warnings) == (name == "warned")
    assert page.locator(".unsure li").count() == sum(bool(line.why) for line in answer.lines.values())
    assert page.locator("nav a, button[data-file]").filter(visible=True).count() == 0
    watched.close()


def test_the_bars_of_the_first_screen_are_one_chart(
    browser: Any, answers: dict[str, tuple[Path, Any]]
) -> None:
    """Equal points are equally long, whiskers stand at the interval, and every zero in one line."""
    path, answer = answers["loses"]
    watched = Watched(browser)
    bars = watched.open(path).evaluate("""() => [...document.querySelectorAll(".drops svg")].map(svg =>
        ["rect", ".whisker", ".base"].map(part => svg.querySelector(part).getBoundingClientRect())
        .map(box => [box.left, box.right]).flat())""")
    drops = [line.drop for line in answer.lines.values()]
    zero, unit = bars[0][4], (bars[0][3] - bars[0][2]) / (drops[0].high - drops[0].low)
    for (left, right, low, high, base, _), drop in zip(bars, drops, strict=True):
        assert base == pytest.approx(zero, abs=0.1)
        assert left + right - zero == pytest.approx(zero + unit * drop.value, abs=1.5)
        assert [low, high] == pytest.approx([zero + unit * drop.low, zero + unit * drop.high], abs=1.5)
    watched.close()


def test_the_menu_opens_leads_to_a_section_and_closes(page: Any) -> None:
    page.click(".menu > summary")
    links = page.locator(".menu nav a")
    assert links.count() > 15 and all(links.nth(i).is_visible() for i in range(links.count()))
    page.click(".menu nav a[href='#types']")
    heading = page.locator("#types h2").bounding_box()
    bar = page.locator(".topbar").bounding_box()
    assert bar["y"] + bar["height"] <= heading["y"] < 200, "not below the bar that stays"
    assert not page.locator(".menu nav").is_visible()
    page.click(".menu > summary")
    page.keyboard.press("Escape")
    assert not page.locator(".menu nav").is_visible()


def test_a_case_shows_both_replies_gold_verdict_and_stage(page: Any) -> None:
    cases = page.locator("#cases details[open] .case")
    heads = [one.partition(":")[0] for one in cases.locator("h3").all_inner_texts()]
    assert heads and heads == [name for name in taxonomy.COMPONENTS if name in heads]
    case = cases.filter(has_text="summit.height").first
    clean, perturbed = (case.locator(".half").nth(i) for i in range(2))
    assert "right" in clean.locator("h4").inner_text() and "wrong" in perturbed.locator("h4").inner_text()
    assert '[summit.height(mountain="Galdhoppen")]' in clean.inner_text()
    assert "I cannot do this." in perturbed.inner_text()
    assert "decide: " in perturbed.inner_text()
    assert all(side.locator("h5", has_text="gold").count() == 1 for side in (clean, perturbed))
    case.locator("a", has_text="The whole row").click()
    page.wait_for_function("document.querySelector('#row h3').textContent.includes('::')")
    assert page.locator("#row h3").inner_text() == ROW


def test_a_reader_filters_searches_and_reads_a_row(page: Any) -> None:
    every = len(ids(page))
    assert page.locator("#found a").first.is_visible()
    page.select_option("#by-type", "CD")
    assert 0 < len(ids(page)) < every and all(one.endswith("::CD") for one in ids(page))
    page.select_option("#by-source", "bfcl_v3")
    assert ids(page) == [ROW]
    page.click("#found a")
    row = page.inner_text("#row")
    assert "clean" in row and "perturbed" in row and "I cannot do this." in row and "summit.height" in row
    assert page.locator("#row del, #row ins").count() > 0
    assert page.url.endswith(f"#row={quote(ROW, safe='')}")
    page.select_option("#by-outcome", "A lost: right on clean, wrong here")
    assert ids(page) == [ROW]
    page.select_option("#by-outcome", "A gained: wrong on clean, right here")
    assert ids(page) == [] and page.inner_text("#count").startswith("None of")
    page.keyboard.press("Escape")  # every filter back
    page.select_option("#by-mode", index=1)
    assert 0 < len(ids(page)) <= every
    page.keyboard.press("Escape")
    page.fill("#by-text", "SLEEPY cat")
    assert ids(page) and all("toolalpaca" in one for one in ids(page))
    page.keyboard.press("Enter")  # nothing is sent anywhere
    page.fill("#by-text", "I cannot do this")
    page.press("#by-text", "Enter")
    assert ROW in ids(page)


def test_run_a_stands_against_run_b(page: Any) -> None:
    page.select_option("#by-outcome", "A right, B wrong")
    assert ids(page) and all("bfcl_v3" in one for one in ids(page))
    page.click("#found a")
    heads = page.locator("#row h4").all_inner_texts()
    assert "A: good-7b" in heads and "B: other<b>bad</b>/long_name-of_a_model_1.5B" in heads
    page.select_option("#by-b", "")
    assert ids(page) == []  # nobody to set it against
    assert not [one for one in page.locator("#row h4").all_inner_texts() if one.startswith("B:")]


def test_keys_step_search_help_and_can_be_turned_off(page: Any) -> None:
    def current() -> str:
        return str(page.locator("#found a[aria-current]").inner_text())

    every, first = ids(page), current()
    page.keyboard.press("j")
    assert current() == every[every.index(first) + 1]
    page.keyboard.press("k")
    assert current() == first
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "by-text"
    page.keyboard.type("jk?/")
    assert page.input_value("#by-text") == "jk?/" and not page.is_visible("#help")
    page.keyboard.press("Escape")
    assert page.input_value("#by-text") == "" and page.evaluate("document.activeElement.id") != "by-text"
    page.keyboard.press("?")
    assert page.is_visible("#help")
    page.uncheck("#keys")
    page.keyboard.press("Escape")
    assert not page.is_visible("#help")
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("j")
    assert current() == first


def test_a_permalink_opens_its_row_and_a_wrong_one_says_so(browser: Any, report: Path) -> None:
    watched = opened(browser, report, hash=f"#row={quote(ROW)}")
    assert watched.page.inner_text("#row h3") == ROW
    assert watched.page.evaluate("document.getElementById('browser').getBoundingClientRect().top") < 900
    watched.page.evaluate("location.hash = '#row=%3Cb%3Enobody'")
    watched.page.wait_for_function("document.getElementById('row').innerText.includes('no row')")
    assert watched.page.inner_text("#row") == "This page has no row <b>nobody."
    watched.close()


def test_hostile_replies_are_text_bounded_and_seen_for_what_they_are(browser: Any, report: Path) -> None:
    watched = opened(browser, report)
    page = watched.page
    page.select_option("#by-a", "1")
    seen = ""
    for source in ("bfcl_v3", "apibank", "rotbench", "toolalpaca"):
        page.select_option("#by-source", source)
        page.locator("#found a >> nth=0").click()
        seen += str(page.inner_text("#row"))
    assert "</script><script>document.title = 'owned'</script>" in seen
    assert "[U+202E]gnp.exe[U+202C] a null [U+0000] and [U+200B and 2 more]" in seen
    assert "shown 8,000 of 20,000 characters" in seen
    assert page.locator("#row script, #row img, #row b, main img").count() == 0
    watched.close()


def test_everything_can_be_saved_from_the_page(page: Any, report: Path) -> None:
    page.click(".menu > summary")
    for name in ("report.csv", "report.json", "report.md", "report.tex"):
        with page.expect_download() as download:
            page.click(f"button[data-file='{name}']")
        assert download.value.suggested_filename == name
        text = Path(download.value.path()).read_text("utf-8")
        if name == "report.tex":
            assert text.count(r"\begin{table}") == 2 and r"other\textless{}b\textgreater{}bad" in text
        else:
            assert text == report.with_name(name).read_text("utf-8")
    with page.expect_download() as download:
        page.click("button.save >> nth=0")
    figure = Path(download.value.path()).read_text("utf-8")
    assert figure.startswith("<svg") and "prefers-color-scheme" in figure and "good-7b" in figure
    json.loads(report.with_name("report.json").read_text())


def test_the_filter_states_how_long_it_took(page: Any) -> None:
    page.select_option("#by-source", "bfcl_v3")
    assert float(page.get_attribute("#found", "data-ms")) >= 0
