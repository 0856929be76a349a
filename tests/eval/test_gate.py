"""`rbtc gate`: when it fails, what it says, and what it never does silently."""

import json
import math
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from hypothesis import given, strategies as st

from robustbench_tc import api
from robustbench_tc.eval import gate as forms
from robustbench_tc.eval.stats import gate

from ..refusals import refuses
from . import small

PAIRS = st.lists(
    st.integers(1, 4).flatmap(lambda n: st.tuples(st.integers(0, n), st.integers(0, n), st.just(n))),
    min_size=1,
    max_size=7,
)


def sides(cases: list[tuple[int, int, int]]) -> gate.Sides:
    before, after, pairs = map(list, zip(*cases, strict=True))
    return gate.Sides(np.array(before, float), np.array(after, float), np.array(pairs, np.int64), 0.0)


@given(PAIRS)
def test_p_counts_every_way_to_swap_the_sides_of_the_cases(cases: list[tuple[int, int, int]]) -> None:
    drops = [Fraction(before - after, pairs) for before, after, pairs in cases]
    observed = sum(drops)
    swapped = [
        sum(sign * drop for sign, drop in zip(signs, drops, strict=True))
        for signs in product((1, -1), repeat=len(drops))
    ]
    expected = sum(one >= observed for one in swapped) / len(swapped) if observed > 0 else 1.0
    assert math.isclose(gate.drop_p(sides(cases)), expected, abs_tol=1e-9)


def test_drawn_sign_patterns_agree_with_the_exact_test(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    pairs = rng.integers(1, 6, 60)
    before = rng.integers(0, pairs + 1)
    after = np.minimum(before, rng.integers(0, pairs + 1))
    found = gate.Sides(before.astype(float), after.astype(float) + 0.0, pairs, 0.0)
    found = gate.Sides(found.before[:8], found.after[:8], found.pairs[:8], 0.0)
    exact = gate.drop_p(found)
    monkeypatch.setattr(gate, "EXACT", 0)
    assert found.differences is None
    assert abs(gate.drop_p(found) - exact) < 0.01


def test_a_drop_fails_only_where_it_is_large_and_more_than_chance() -> None:
    allowed = {"a": 0.05}
    small_drop = sides([(1, 0, 1)] * 4 + [(1, 1, 1)] * 96)  # 4 points: allowed
    few = sides([(1, 0, 1)] * 3 + [(1, 1, 1)] * 7)  # 30 points of 10 cases: p = 1/8
    clear = sides([(1, 0, 1)] * 10 + [(1, 1, 1)] * 90)
    assert gate.decide({"a": small_drop}, allowed)[0].outcome == "pass"
    assert gate.decide({"a": few}, allowed)[0].outcome == "pass"
    assert gate.decide({"a": clear}, allowed)[0].outcome == "fail"
    assert gate.decide({"a": few}, allowed, strict=True)[0].outcome == "not shown"
    whole = sides([(1, 1, 1)] * 200)
    assert gate.decide({"a": whole}, allowed, strict=True)[0].outcome == "pass"


def test_holm_counts_the_components_that_were_asked_for() -> None:
    five = sides([(1, 0, 1)] * 5 + [(1, 1, 1)] * 5)  # p = 1/32
    alone = gate.decide({"a": five}, {"a": 0.05})
    among = gate.decide({"a": five, "b": sides([(1, 1, 1)] * 9)}, {"a": 0.05, "b": 0.05})
    assert (alone[0].outcome, among[0].outcome) == ("fail", "pass")
    assert math.isclose(among[0].p_holm, 2 / 32)


def test_every_case_weighs_the_same_however_many_rows_it_has() -> None:
    (line,) = gate.decide({"a": sides([(10, 0, 10), (1, 1, 1)])}, {"a": 0.05})
    assert math.isclose(line.drop.value, 0.5)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of the oracle and of an agent that is drawn by offers, over the small release."""
    folder = tmp_path_factory.mktemp("runs")
    release = small.write(folder / "small", small.rows())
    for agent in ("oracle", "name-biased", "rambler"):
        api.evaluate(release, agent=agent, out=folder / agent)
    api.evaluate(release, agent="oracle", out=folder / "part", limit=9)
    return folder


def test_a_run_is_held_against_its_own_clean_rows(runs: Path) -> None:
    found = api.gate(runs / "name-biased")
    reward = next(line for line in found.lines if line.name == "reward")
    assert reward.before == 1.0 and reward.after < 1.0
    assert {line.name for line in found.lines} <= {"observation", "action", "reward", "transition"}
    assert api.gate(runs / "oracle").outcome == "pass"


def test_a_run_is_held_against_another(runs: Path) -> None:
    found = api.gate(runs / "name-biased", runs / "oracle")
    by_name = {line.name: line for line in found.lines}
    assert by_name["clean"].drop.value == 0.0
    assert by_name["reward"].drop.value > 0.05
    back = {line.name: line for line in api.gate(runs / "oracle", runs / "name-biased").lines}
    assert math.isclose(back["reward"].drop.value, -by_name["reward"].drop.value)
    assert back["reward"].outcome == "pass"


def test_where_nothing_was_right_before_the_gate_says_so(runs: Path) -> None:
    found = api.gate(runs / "rambler")
    assert found.outcome == "pass"
    assert any(note.startswith("nothing could be lost in ") for note in found.notes)
    assert not any("nothing could be lost" in note for note in api.gate(runs / "oracle").notes)


def test_rows_without_a_verdict_are_never_passed(runs: Path, tmp_path: Path) -> None:
    record = json.loads((runs / "oracle" / "run.json").read_text())
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "scores.parquet").write_bytes((runs / "oracle" / "scores.parquet").read_bytes())
    (copy / "run.json").write_text(json.dumps({**record, "expected": record["expected"] + 3}))
    found = api.gate(copy)
    assert (found.outcome, found.exit_code) == ("not shown", 2)
    assert any("3 rows have no verdict" in note for note in found.notes)
    assert {line.outcome for line in found.lines} == {"not shown"}
    suite = ET.fromstring(forms.junit(found)).find("testsuite")
    assert suite is not None and suite.get("skipped") == suite.get("tests") == str(len(found.lines))
    assert api.gate(copy, allow_missing=True).outcome == "pass"


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"components": {"rewards": None}}, "unknown component 'rewards': did you mean reward"),
        ({"components": {"clean": None}}, "the run has no pair of rows for clean: it has"),
        ({"max_drop": 1.5}, "max-drop 1.5: a drop is a share of the cases"),
        ({"components": {"reward": float("nan")}}, "reward nan: a drop is a share"),
        ({"components": {"reward": -0.1}}, "reward -0.1: a drop is a share"),
    ],
)
def test_what_cannot_be_asked_is_refused(runs: Path, options: dict[str, Any], line: str) -> None:
    refuses(line, api.gate, runs / "oracle", **options)


def test_runs_of_other_datasets_are_refused(runs: Path, tmp_path: Path) -> None:
    other = small.write(tmp_path / "other", small.rows()[:-9])
    api.evaluate(other, agent="oracle", out=tmp_path / "run")
    refuses("runs of different datasets", api.gate, runs / "oracle", tmp_path / "run")


def test_the_command_has_three_states_and_writes_what_is_asked_for(
    runs: Path, tmp_path: Path, rbtc: Callable[..., Any]
) -> None:
    xml, page = tmp_path / "gate.xml", tmp_path / "gate.md"
    done = rbtc("gate", runs / "oracle", "--junit", xml, "--markdown", page)
    assert (done.code, done.err) == (0, "")
    assert "passed: a drop of up to" in done.out
    suite = ET.parse(xml).getroot().find("testsuite")
    assert suite is not None and suite.get("failures") == "0"
    assert page.read_text().splitlines()[1] == "### Robustness gate: passed"
    again = rbtc("gate", runs / "name-biased", "--component", "reward:0", "--json", "--junit", xml)
    said = json.loads(again.out)
    assert [line["name"] for line in said["verdict"]["lines"]] == ["reward"]
    assert again.code == said["exit_code"]
    strict = rbtc("gate", runs / "oracle", "--strict")
    assert strict.code == 2 and "not shown for" in strict.out.replace("\n", " ")


def test_a_file_of_somebody_elses_is_not_replaced(
    runs: Path, tmp_path: Path, rbtc: Callable[..., Any]
) -> None:
    mine = tmp_path / "notes.md"
    mine.write_text("mine")
    done = rbtc("gate", runs / "oracle", "--markdown", mine)
    assert done.code == 1 and done.out == ""
    assert (
        done.err == f"rbtc: {mine} is not a file of `rbtc gate`, so it is not replaced: choose another name\n"
    )
    assert mine.read_text() == "mine"
    done = rbtc("gate", runs / "oracle", "--component", "reward:much")
    assert "--component reward:much: write it as NAME or NAME:DROP" in done.err


def test_names_that_are_hostile_to_xml_and_to_markdown_do_no_harm(runs: Path) -> None:
    found = api.gate(runs / "oracle")
    hostile = type(found)(
        **{name: getattr(found, name) for name in found.__struct_fields__ if name not in ("model", "run")},
        model="a\x00]]><b> `|` \x1b[31m",
        run="![x](http://e) \n# head",
    )
    ET.fromstring(forms.junit(hostile))
    page = forms.markdown(hostile)
    assert "<b>" not in page and "\x1b" not in page and "\n# head" not in page
