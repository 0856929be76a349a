"""Blind policies on registries that can be read here, and the lines that stand under every table."""

import json
from fractions import Fraction
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, strategies as st

from robustbench_tc import api, taxonomy
from robustbench_tc.eval import inputs, record, row_files
from robustbench_tc.eval.agents import POLICIES, blind as policies, try_blind
from robustbench_tc.eval.agents.blind import TypeFigures, see
from robustbench_tc.eval.report import page
from robustbench_tc.eval.stats import blind, runs, screen, values
from robustbench_tc.schema import Call, Sample, Tool

from ..conftest import ROOT, Done
from . import small
from .small import ASK, CLOCK, MAP, clean_row, tool
from .synthetic_runs import coin, write_run


def offer(name: str, note: str, **parameters: str) -> Tool:
    return tool(name, f"Books a table. {note}", **parameters)


CHEAP = (
    offer("reserve_Budget", "Price per call: $0.100.", place="string"),
    CLOCK,
    offer("reserve", "Price per call: $0.025.", place="string"),
)
QUICK = (
    offer("res_long", "Typical response time: 1 s.", place="string"),
    offer("reserve", "Typical response time: 800 ms.", place="string"),
)
NAMESAKES = (Tool("reserve", "", {}), MAP, tool("reserve", "Books a table.", place="string"))
PLAIN = (ASK, tool("note", "Adds a note."), tool("ring", "Rings.", day="string"), tool("a", ""))


def choices(tools: tuple[Tool, ...]) -> dict[str, list[int]]:
    return {name.removeprefix("picks-"): sorted(one.choose(see(tools))) for name, one in POLICIES.items()}


def test_the_policies_choose_among_lookalikes() -> None:
    assert see(CHEAP).groups == [[0, 2]]
    assert choices(CHEAP) == {
        "best-offer": [2],
        "shortest-twin": [2],
        "longest-definition": [0],  # equally long: the first
        "odd-schema": [0],
        "by-position": [0],
    }


def test_seconds_and_milliseconds_are_compared() -> None:
    assert see(QUICK).groups == [[0, 1]] and choices(QUICK)["best-offer"] == [1]
    tools = tuple(
        offer("reserve_" + text[0], f"Response time: {text}.") for text in ("2 s", "900 s", "1.5 s")
    )
    assert choices(tools)["best-offer"] == [2]


def test_the_odd_schema_is_the_one_that_is_written_otherwise() -> None:
    odd = Tool("menu", "Shows a menu.", {"type": "object", "properties": {"dish": {"type": "string"}}})
    assert choices((tool("a", "", x="string"), tool("b", "", y="string"), odd))["odd-schema"] == [2]


def test_the_policies_choose_among_namesakes_before_lookalikes() -> None:
    assert see((*NAMESAKES, *CHEAP)).groups == [[0, 2, 5]]
    assert choices(NAMESAKES) == {
        "best-offer": [0],
        "shortest-twin": [0],
        "longest-definition": [2],
        "odd-schema": [0],
        "by-position": [0],
    }


def test_without_any_confusable_tools_the_registry_is_the_group() -> None:
    assert see(PLAIN).groups == [[1, 2, 3]]
    assert choices(PLAIN) == {
        "best-offer": [1],
        "shortest-twin": [3],
        "longest-definition": [2],
        "odd-schema": [1],  # two are written like the one, two like the other
        "by-position": [1],
    }
    assert see((ASK,)).groups == [[0]]
    assert see(()).groups == [] and choices(()) == {name: [] for name in choices(PLAIN)}


def row(tools: tuple[Tool, ...], *answers: list[Call], gold: int | None = None) -> Sample:
    made = clean_row("bfcl_v3", 9, "Book a table.", tools, *answers)
    return made if gold is None else msgspec.structs.replace(made, gold_tool_index=gold)


def test_the_right_namesake_is_the_gold_tool_and_no_other() -> None:
    found = try_blind(row(NAMESAKES, [Call("reserve", {})], gold=2))
    assert found.gold == {2} and found.chance == Fraction(1, 2)
    assert found.right["picks-longest-definition"] and not found.right["picks-by-position"]


def test_a_tool_that_begins_another_accepted_answer_is_right_too() -> None:
    found = try_blind(row(PLAIN, [Call("ring", {})], [Call("a", {}), Call("note", {})]))
    assert found.gold == {2, 3} and found.chance == Fraction(2, 3)
    assert found.right == {
        "picks-best-offer": False,
        "picks-shortest-twin": True,
        "picks-longest-definition": True,
        "picks-odd-schema": False,
        "picks-by-position": False,
    }


def test_where_two_tools_are_called_one_of_every_pair_is_chosen() -> None:
    menu = (
        offer("menu", "Price per call: $0.500.", dish="string"),
        offer("menu_Budget", "Price per call: $0.700.", dish="string"),
    )
    found = try_blind(row((*CHEAP, *menu), [Call("reserve", {}), Call("menu", {})]))
    assert found.groups == [[0, 2], [3, 4]]
    assert found.gold == {2, 3} and found.chance == Fraction(1, 4)
    assert found.right["picks-best-offer"] and not found.right["picks-by-position"]
    one = try_blind(row((*CHEAP, *menu), [Call("reserve", {})]))
    assert not any(one.right.values()) and one.chance == 0


@pytest.mark.parametrize("index", [None, -1, 99])
def test_a_gold_index_that_means_nothing_leaves_the_names(index: int | None) -> None:
    odd = msgspec.structs.replace(row(PLAIN, [Call("ring", {})]), gold_tool_index=index)
    assert try_blind(odd).gold == {2}


def test_rows_without_a_gold_are_never_right() -> None:
    for answers in ((), ((),), ((Call("unlisted", {}),),)):
        bare = msgspec.structs.replace(row(PLAIN, [Call("ring", {})]), golden_answers=answers)
        found = try_blind(bare)
        assert not any(found.right.values()) and found.chance == 0


def test_a_registry_without_tools_and_one_of_a_thousand() -> None:
    empty = msgspec.structs.replace(row(PLAIN, [Call("ring", {})]), tools=())
    assert not any(try_blind(empty).right.values())
    many = tuple(offer(f"reserve_{n}", f"Price per call: ${n}.000.", place="string") for n in range(1, 2_000))
    assert choices(many)["best-offer"] == [0] and len(see(many).groups[0]) == 1_999


def test_a_description_of_a_million_digits_is_read_once() -> None:
    long = offer("a", "9" * 1_000_000 + " ms"), offer("b", "9.9" * 300_000 + " ms")
    assert all(len(one.choose(see(long))) == 1 for one in POLICIES.values())


TEXTS = st.text(max_size=12) | st.sampled_from(
    ["\ud800", "$1.50", "9" * 400 + " ms", "٣ s", "\x00", "ask_to_user"]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
SCHEMAS = st.dictionaries(st.sampled_from(["type", "properties", "required", "items"]), JSON, max_size=3)


REGISTRIES = st.lists(st.builds(Tool, TEXTS, TEXTS, SCHEMAS), max_size=6)
"""Odd ones too: of any texts and JSON."""


@given(REGISTRIES)
def test_any_registry_can_be_chosen_from(tools: list[Tool]) -> None:
    registry = tuple(tools)
    groups = see(registry).groups
    for policy in POLICIES.values():
        chosen = policy.choose(see(registry))
        assert len(chosen) == len(groups)
        assert all(len(chosen.intersection(group)) == 1 for group in groups)


# --- figures ------------------------------------------------------------------------------------------------

FIGURES = (
    TypeFigures("clean", 4, 0.5, {"picks-by-position": 1}, 2),
    TypeFigures("CD", 10, 0.5, {"picks-by-position": 5}, 10),
    TypeFigures("TD", 30, 0.25, {"picks-by-position": 28}, 12),
)


def test_the_lines_pool_the_rows_of_their_types() -> None:
    first, trained, chance = blind.lines(FIGURES)
    assert [first.name, trained.name, chance.name] == ["picks-by-position", blind.CLASSIFIER, blind.CHANCE]
    assert first.heads == dict.fromkeys(values.HEADS) | {
        "clean": 0.25,
        "perturbed": 33 / 40,
        "reward": 33 / 40,
    }
    assert trained.types == {"CD": 1.0, "TD": 0.4}
    assert chance.heads["reward"] == (5 + 7.5) / 40
    assert blind.solved((first, trained, chance)) == {
        "CD": (blind.CLASSIFIER, 1.0),
        "TD": ("picks-by-position", 28 / 30),
    }
    assert blind.lines(()) == ()


@pytest.mark.parametrize(
    "found",
    [
        None,
        7,
        [7],
        [{"type_code": "CD"}],
        [{"type_code": "CD", "rows": 0, "chance": 0.5, "right": {}}],
        [{"type_code": "CD", "rows": 1, "chance": 0.5, "right": {"x": 2}}],
        [{"type_code": "CD", "rows": 1, "chance": 9, "right": {}}],
        [{"type_code": "CD", "rows": 1, "chance": 0.5, "right": {}}] * 2,
    ],
)
def test_figures_that_cannot_be_are_none(tmp_path: Path, found: object) -> None:
    audit_of(tmp_path, found)
    assert policies.audited(tmp_path, {"CD": 1}) == ()


def audit_of(folder: Path, figures: object) -> None:
    (folder / "audit_report.json").write_text(json.dumps({"shortcuts": figures}))


def test_a_dataset_without_an_audit_is_counted_in_its_rows(release: Path) -> None:
    data = inputs.load_samples(str(release))
    found = data.needs_no_reading()
    assert {one.type_code for one in found} == {one.type_code for one in data.rows}
    assert sum(one.rows for one in found) == len(data.rows)
    assert all(list(one.right) == list(POLICIES) and one.classifier is None for one in found)
    assert row_files.RowFiles(release).needs_no_reading() == found
    of_cd = next(one for one in found if one.type_code == "CD")
    assert of_cd.right["picks-best-offer"] == of_cd.rows > 0


def test_the_audits_figures_are_taken_if_they_are_about_these_rows(
    release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = small.write(tmp_path / "release", small.rows())
    counted = inputs.load_samples(str(folder)).needs_no_reading()
    told = [msgspec.structs.replace(one, classifier=0) for one in counted]
    audit_of(folder, msgspec.to_builtins(told))
    for data in (inputs.load_samples(str(folder)), row_files.RowFiles(folder)):
        assert {one.type_code: one for one in data.needs_no_reading()} == {o.type_code: o for o in told}
    others: list[object] = [msgspec.to_builtins(told[1:]), [], {"a": 1}, "x"]
    for stale in others:
        audit_of(folder, stale)
        assert inputs.load_samples(str(folder)).needs_no_reading() == counted
    (folder / "audit_report.json").write_text("[" * 5_000)
    assert inputs.load_samples(str(folder)).needs_no_reading() == counted
    monkeypatch.setattr(policies, "COUNTED", 3)
    assert (
        inputs.load_samples(str(folder)).needs_no_reading()
        == row_files.RowFiles(folder).needs_no_reading()
        == ()
    )


# --- under every table --------------------------------------------------------------------------------------


def test_a_scored_run_keeps_the_figures_and_every_table_shows_them(
    release: Path, tmp_path: Path, rbtc: object
) -> None:
    out = tmp_path / "run"
    assert api.evaluate(str(release), agent="picks-best-offer", out=out).unexpected == []
    kept = record.open_run(out).record.needs_no_reading
    assert kept == inputs.load_samples(str(release)).needs_no_reading()

    found = screen.overview(runs.read_run(out), len(kept), {}, allow_missing=True)
    assert [line.name for line in found.needs_no_reading] == [*POLICIES, blind.CHANCE]
    assert callable(rbtc)
    assert "picks-best-offer" not in rbtc("summary", out).out.partition("prompt")[2]
    said: Done = rbtc("summary", out, "--full")
    assert "request-blind baselines: how often the right tool is chosen" in said.out
    assert "CD 100.0 by picks-best-offer" in said.out

    report = api.report([str(out)], allow_missing=True)
    assert report.needs_no_reading == found.needs_no_reading
    html, text = page.html(report), page.markdown(report)
    assert 'id="blind"' in html and "Request-blind baselines, perturbed: picks-best-offer" in html
    assert "## Request-blind baselines" in text
    assert "| CD cheap decoy |" in text and text.count("picks-best-offer |\n") >= 4
    assert json.loads(page.as_json(report))["needs_no_reading"][0]["name"] == "picks-best-offer"


def test_a_run_without_figures_says_so(tmp_path: Path) -> None:
    report = api.report([str(write_run(tmp_path / "run", coin(1)))])
    assert report.needs_no_reading == ()
    assert 'id="blind"' not in page.html(report) and "Request-blind baselines" not in page.markdown(report)


def test_every_policy_is_a_reference_agent_that_the_docs_name() -> None:
    text = (ROOT / "docs" / "statistics.md").read_text("utf-8")
    assert all(f"| `{name}` |" in text for name in POLICIES)
    assert taxonomy.get("CD").solved_without_reading
