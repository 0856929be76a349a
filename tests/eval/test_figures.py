"""The figures: well-formed, to scale, inert, and coloured by the style sheet alone, in light and dark."""

import re
from collections.abc import Callable
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import given, strategies as st
from markupsafe import Markup

from robustbench_tc.eval.report import figures
from robustbench_tc.eval.report.figures import Axis, Dot, Path, Shift
from robustbench_tc.eval.stats.intervals import Interval
from robustbench_tc.schema import ERROR_MODES

HOSTILE = """<script>alert("1")</script> & 'x'"""
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
    paths = [Path([(1, 0.0), (100, 1.0)], kind, name) for kind in ("first", "second", "third")]
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
    hostile, harmless = parsed(make(HOSTILE)), parsed(make("x"))
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
