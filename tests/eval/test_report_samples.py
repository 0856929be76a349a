"""What a page embeds of rows and replies, and its figures: unchanged, bounded, inert, to scale."""

import base64
import json
import re
import shutil
import zlib
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec
import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st
from markupsafe import Markup

from robustbench_tc import api, taxonomy
from robustbench_tc.eval import inputs
from robustbench_tc.eval.report import figures, page, samples
from robustbench_tc.eval.report.figures import Axis, Dot, Shift
from robustbench_tc.eval.report.samples import Embedded, cut, embed
from robustbench_tc.eval.stats.intervals import Interval
from robustbench_tc.eval.stats.runs import Run, read_run
from robustbench_tc.schema import ERROR_MODES, Call, Message, Sample, dumps

from . import small

OTHER = (Message("user", "Something else was asked."),)

HOSTILE = (
    "</script><script>alert(1)</script>",
    "<!-- <script>",
    "\u202egnp.exe\u202c\u0000\u200b\x1b[31m",
    "<img src=x onerror=alert(1)>",
    "x" * 30_000,
    "\U0001d54f" * 9_000,
)


@pytest.fixture(scope="module")
def runs(release: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    def reply(row: Sample) -> Mapping[str, Any]:
        made = {"raw_output": HOSTILE[len(row.id) % len(HOSTILE)], "finish_reason": "stop"}
        return made | ({"injected": True, "first_output": "first"} if row.injected_error else {})

    root = tmp_path_factory.mktemp("runs")
    return [read_run(small.scored_run(root / name, release, f"{name}-3b", reply)) for name in ("a", "b")]


def unpacked(found: Embedded) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(found.text), -15))
    return made


def test_every_row_comes_back_as_the_dataset_has_it(release: Path, runs: list[Run]) -> None:
    data = unpacked(embed(runs, ["a", "b"]))
    texts, tools = data["texts"], data["tools"]
    found = {}
    for sample, kind, messages, registry, _, error, flags, _ in data["rows"]:
        row = f"{data['samples'][sample][0]}::{data['types'][kind][0]}"
        injected = None if error < 0 else texts[error]
        found[row] = (
            [(role, texts[at]) for role, at in messages],
            [tools[at] for at in registry],
            injected,
            flags,
        )
    dataset = inputs.load_samples(str(release))
    assert found == {
        row.id: (
            [(message.role, message.content) for message in row.messages],
            [dumps(tool) for tool in row.tools],
            row.injected_error,
            list(row.flags),
        )
        for row in dataset.rows
    }
    assert len(set(texts)) == len(texts) and len(set(tools)) == len(tools)


def test_every_reply_and_verdict_is_there_and_bounded(release: Path, runs: list[Run]) -> None:
    data = unpacked(embed(runs, ["a", "b"]))
    assert [run["label"] for run in data["runs"]] == ["a", "b"]
    clip = data["clip"]
    rows = [f"{data['samples'][row[0]][0]}::{data['types'][row[1]][0]}" for row in data["rows"]]
    answers = {rows[one[0]]: one for one in data["runs"][0]["answers"]}
    assert set(answers) == {row.id for row in inputs.load_samples(str(release)).rows}
    for row, one in answers.items():
        whole = HOSTILE[len(row) % len(HOSTILE)]
        assert one[8] == whole[:clip] and one[9] == (len(whole) if len(whole) > clip else 0)
        assert one[2] == 0 and one[3] and one[5] == "ok"
        assert (one[12] == "first") == ("transient" in row)


def test_texts_are_inert_where_they_lie(runs: list[Run]) -> None:
    found = embed(runs, ["a", "b"])
    assert re.fullmatch(r"[A-Za-z0-9+/=]+", found.text)
    made = page.html(api.report([run.path for run in runs]), found)
    assert "alert(1)" not in made and found.text in made and 'id="by-text"' in made


def test_the_same_runs_give_the_same_text(runs: list[Run]) -> None:
    assert embed(runs, ["a", "b"]) == embed(runs, ["a", "b"])


def test_replies_are_cut_shorter_until_the_page_is_small_enough(
    runs: list[Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = embed(runs, ["a", "b"])
    monkeypatch.setattr(samples, "BUDGET", len(whole.text) - 1)
    found = embed(runs, ["a", "b"])
    assert whole.clip == samples.CLIPS[0] > found.clip
    assert len(found.text) < len(whole.text) and found.rows == whole.rows and found.notes == ()


def test_of_too_many_rows_whole_samples_stay_and_the_page_says_so(
    runs: list[Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    every = embed(runs, ["a", "b"]).rows
    monkeypatch.setattr(samples, "MOST_ROWS", every // 2)
    found = embed(runs, ["a", "b"])
    data = unpacked(found)
    assert found.notes == (
        f"The page has {found.rows} of {every} rows: whole samples, in proportion to the sources.",
    )
    assert 0 < len(data["samples"]) < 5 and len(data["rows"]) == found.rows <= every // 2
    assert {row[0] for row in data["rows"] if row[1] == 0} == set(range(len(data["samples"])))
    monkeypatch.setattr(samples, "BUDGET", 10)
    assert embed(runs, ["a", "b"]).rows > 0  # one sample is never given up


def test_without_the_dataset_there_is_a_line_and_no_browser(
    release: Path, runs: list[Run], tmp_path: Path
) -> None:
    moved = tmp_path / "gone"
    shutil.copytree(runs[0].path, moved)
    record = json.loads((moved / "run.json").read_text())
    (moved / "run.json").write_text(json.dumps(record | {"dataset": "/data/of/somebody/rows"}))
    run = read_run(moved)
    found = embed([run], ["a"])
    assert found.text == "" and found.notes == (
        "The dataset folder of these runs (rows) is not on this machine: --dataset names one.",
    )
    made = page.html(api.report([moved]), found)
    assert found.notes[0] in made and "by-text" not in made and "/data/of" not in made
    assert embed([run], ["a"], release).rows == embed(runs[:1], ["a"]).rows


def test_a_dataset_with_other_texts_is_not_shown_as_what_was_asked(runs: list[Run], tmp_path: Path) -> None:
    changed = [
        row if row.source == "bfcl_v3" else msgspec.structs.replace(row, messages=OTHER)
        for row in small.rows("CD")
    ]
    found = embed(runs, ["a", "b"], small.write(tmp_path / "other", changed))
    assert "rows of these runs have other texts in other, or none." in found.notes[0]
    assert {one[1] for one in unpacked(found)["samples"]} == {"bfcl_v3"}
    none = small.write(tmp_path / "none", [row for row in changed if row.source != "bfcl_v3"])
    assert embed(runs, ["a", "b"], none).notes == (
        "The dataset folder none has none of the texts that these runs were asked.",
    )
    (tmp_path / "empty").mkdir()
    assert (
        "The dataset cannot be read: empty is not a RobustBench-TC dataset"
        in embed(runs, ["a", "b"], tmp_path / "empty").notes[0]
    )


def test_a_damaged_dataset_is_a_line(runs: list[Run], release: Path, tmp_path: Path) -> None:
    shutil.copytree(release, tmp_path / "torn")
    next((tmp_path / "torn" / "CD").iterdir()).write_bytes(b"PAR1 torn PAR1")
    found = embed(runs, ["a", "b"], tmp_path / "torn")
    assert found.text == "" and found.notes[0].startswith("The dataset cannot be read: ")
    assert str(tmp_path) not in found.notes[0] and "\n" not in found.notes[0]


def test_scores_without_texts_are_shown_without_them(runs: list[Run], tmp_path: Path) -> None:
    shutil.copytree(runs[0].path, tmp_path / "a")
    table = pq.read_table(tmp_path / "a" / "scores.parquet")
    pq.write_table(table.drop_columns(["raw_output"]), tmp_path / "a" / "scores.parquet")
    embedded = embed([read_run(tmp_path / "a")], ["a"])
    [run] = unpacked(embedded)["runs"]
    assert {one[8] for one in run["answers"]} == {""} and embedded.cases == {}


def test_a_case_is_a_sample_of_its_component_that_was_lost_and_its_texts_are_inert(
    release: Path, tmp_path: Path
) -> None:
    right = '[summit.height(mountain="Galdhoppen")]'

    def reply(row: Sample) -> Mapping[str, Any]:
        told = {"injected": True, "first_output": right} if row.injected_error else {}
        clean = row.type_code in ("clean", "redundant")
        return {"raw_output": right if clean else HOSTILE[2], "finish_reason": "stop"} | told

    run = small.scored_run(tmp_path / "run", release, "a-3b", reply)
    embedded = embed([read_run(run)], ["a-3b"])
    [cases] = embedded.cases.values()
    verdicts = {one["id"]: one for one in pq.read_table(run / "scores.parquet").to_pylist()}
    lost = {
        one["component"]
        for one in verdicts.values()
        if not one["correct"] and verdicts[f"{one['clean_id']}::clean"]["correct"]
    }
    assert [case.component for case in cases] == [name for name in taxonomy.COMPONENTS if name in lost]
    assert {"action", "reward", "transition"} <= lost
    for case in cases:
        clean, perturbed = case.sides
        judged = verdicts[case.row]
        assert taxonomy.component_of(case.type_code) == case.component == judged["component"]
        assert verdicts[f"{judged['clean_id']}::clean"]["correct"] and not judged["correct"]
        assert dict(clean)["reply"] == (right, 0) and dict(clean)["gold"].text.startswith("summit.height ")
        assert "stage" not in dict(clean) and dict(clean)["verdict"].text.startswith("right")
        assert dict(perturbed)["stage"].text.split(":")[0] == judged["stage"]
        assert r"\u202egnp.exe\u202c\x00\u200b\x1b[31m" in {text.text for _, text in perturbed}
    said = [name for name, _ in cases[-1].sides[1]]
    assert said[:3] == ["first reply", "answered with", "second reply"]
    shown = (
        page.html(api.report([run]), embedded).partition('<section id="cases">')[2].partition("</section>")[0]
    )
    assert shown.count('<article class="case">') == len(cases) and "\u202e" not in shown


def test_a_cut_text_states_its_length() -> None:
    assert cut("abc", 3) == ("abc", 0) and cut("abcd", 3) == ("abc", 4)


def test_calls_are_written_as_calls() -> None:
    assert samples.calls_said([Call("f", {"a": 1, "b": "x"}), Call("g", {})]) == 'f(a: 1, b: "x"); g()'


# --- the figures --------------------------------------------------------------------------------------


FIG_HOSTILE = """<script>alert("1")</script> & 'x'"""
HALF = Interval(0.5, 0.4, 0.6, 10)


def heatmap(name: str) -> Markup:
    rows: list[tuple[str, dict[str, Interval | None]]] = [
        (name, {"clean": HALF, "CD": None}),
        ("other", {"clean": Interval(0.9, 0.8, 1.0, 10)}),
    ]
    return figures.heatmap(rows, {"": {"clean": "clean"}, name: {"CD": name}}, name)


def chart(name: str) -> Markup:
    x = Axis(1, 100, {1: "1", 10: name}, log=True, name=name)
    dots = [Dot(1, 0.0, "paper", name), Dot(100, 1.0, "ours"), Dot(10, 0.5, "past")]
    paths = [figures.Path([(1, 0.0), (100, 1.0)], kind, name) for kind in ("first", "second", "third")]
    return figures.chart(
        x, Axis(0, 1, {0: "0", 1: "1"}, name=name), dots, paths, name, size=(300, 200), right=60
    )


def shifts(name: str) -> Markup:
    cells = {"a": Shift(0.4, True, name), "b": Shift(-0.1, False, name), "c": None}
    return figures.shifts([(name, cells)], {name: {"a": name, "b": "b", "c": "c"}}, name, 0.4)


FIGURES: dict[str, Callable[[str], Markup]] = {make.__name__: make for make in (heatmap, chart, shifts)}


def parsed(figure: str) -> ElementTree.Element:
    return ElementTree.fromstring(figure)


@pytest.mark.parametrize("make", FIGURES.values(), ids=FIGURES)
def test_a_name_is_text_and_nothing_else(make: Callable[[str], Markup]) -> None:
    hostile, harmless = parsed(make(FIG_HOSTILE)), parsed(make("x"))
    assert [one.tag for one in hostile.iter()] == [one.tag for one in harmless.iter()]
    assert {key for one in hostile.iter() for key in one.attrib} == {
        key for one in harmless.iter() for key in one.attrib
    }


@pytest.mark.parametrize("make", FIGURES.values(), ids=FIGURES)
def test_every_shape_is_inside_and_coloured_by_the_sheet(make: Callable[[str], Markup]) -> None:
    root = parsed(make("name"))
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    sheet = figures.style()
    for one in root.iter():
        for key in ("x", "x1", "x2", "cx"):
            assert -1 <= float(one.get(key, 0)) <= width, one.attrib
        for key in ("y", "y1", "y2", "cy"):
            assert -1 <= float(one.get(key, 0)) <= height, one.attrib
        assert not {"fill", "stroke"} & one.attrib.keys()
        if one.tag in ("rect", "line", "circle", "polyline"):
            kinds = one.attrib["class"].split()
            assert any(re.search(rf"svg (\.\w+)*\.{kind}\b", sheet) for kind in kinds), kinds


def test_every_colour_that_differs_in_the_dark_is_there_twice_and_every_one_used_is_defined() -> None:
    sheet = str(figures.style())
    light, dark = (block for block in re.findall(r":root \{\n(.*?)\n *\}", sheet, re.DOTALL))
    names = [set(re.findall(r"(--[\w-]+):", block)) for block in (light, dark)]
    assert names[1] <= names[0]
    assert set(re.findall(r"var\((--[\w-]+)\)", sheet)) - {"--v"} <= names[0]
    assert {f"--{mode}" for mode in ERROR_MODES} <= names[0]


@given(st.floats(0, 1), st.floats(0, 1))
def test_a_logarithmic_axis_and_a_straight_one_keep_the_order(a: float, b: float) -> None:
    straight, log = Axis(0, 1, {}), Axis(1, 1000, {}, log=True)
    assert (straight.share(a) <= straight.share(b)) == (a <= b)
    assert log.share(10) == pytest.approx(1 / 3) and log.share(1000) == pytest.approx(1)
    assert Axis(3, 3, {}).share(3) == 0.5


@given(st.floats(-2, 2), st.floats(0.001, 3))
def test_ticks_are_few_round_and_inside(low: float, width: float) -> None:
    high = low + width
    found = figures.ticks(low, high)
    assert 1 <= len(found) <= 6
    assert all(low - 1e-6 <= value <= high + 1e-6 for value in found)


def test_names_at_the_ends_of_lines_do_not_lie_on_each_other() -> None:
    root = parsed(chart("name"))
    ends = [float(one.attrib["y"]) for one in root.iter("text") if "name" in one.get("class", "")]
    assert len(ends) == 3
    assert all(after - before >= figures.LINE for before, after in pairwise(ends))


def test_a_figure_of_its_own_brings_its_style() -> None:
    alone = parsed(figures.alone(chart("x")))
    assert alone.tag == "{http://www.w3.org/2000/svg}svg"
    style = alone.find("{http://www.w3.org/2000/svg}style")
    assert style is not None and "prefers-color-scheme: dark" in (style.text or "")


def test_what_is_significant_is_seen_without_colour() -> None:
    cells = {"a": Shift(0.2, True, ""), "b": Shift(0.2, False, ""), "c": Shift(-0.2, True, "")}
    root = parsed(figures.shifts([("m", cells)], {"": {one: one for one in cells}}, "x", 0.4))
    groups = [one for one in root.findall("g") if one.find("rect") is not None]
    assert [one.get("class") for one in groups] == ["sure", None, "sure"]
    colours = [rect.attrib["class"] for one in groups for rect in one.findall("rect")]
    assert colours == ["loss s10", "loss s10", "win s10"]
    assert [one.findall("text")[0].text for one in groups] == ["20", "20", "−20"]


@given(st.floats(-3, 3))
def test_a_place_is_to_scale_and_stays_inside(value: float) -> None:
    place = Axis(-1, 1, {}).place(value)
    assert place == pytest.approx(50 + 50 * min(max(value, -1.0), 1.0), abs=0.006)


def test_every_step_of_a_colour_is_in_the_sheet() -> None:
    sheet = str(figures.style())
    assert [step for step in range(21) if f"svg .s{step} {{ --v: {step / 20:g}; }}" not in sheet] == []


SPOTS = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), max_size=12)


@given(SPOTS, st.integers(1, 20))
def test_names_cover_no_other_name_and_stay_inside(spots: list[tuple[float, float]], length: int) -> None:
    dots = [Dot(x, y, "ours", name="x" * length) for x, y in spots]
    root = parsed(figures.chart(Axis(0, 1, {}), Axis(0, 1, {}), dots, [], "x", size=(300, 200)))
    names = [one for one in root.iter("text") if one.get("class") == "name beside"]
    boxes = [(float(one.attrib["x"]), float(one.attrib["y"])) for one in names]
    assert bool(boxes) == bool(spots)
    for number, (left, y) in enumerate(boxes):
        assert left >= 0 and left + 6.3 * length <= 300
        for other, level in boxes[:number]:
            assert abs(y - level) >= figures.LINE - 0.1 or abs(left - other) >= 6.3 * length - 0.1
