"""`rbtc gate`: when it fails, what it says, and what it never does silently."""

import json
import math
import zlib
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import msgspec
import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st
from msgspec.structs import replace

from robustbench_tc import api, schema, taxonomy
from robustbench_tc.eval.stats import evidence, gate, gate_forms as forms, runs as runs_of, values

from ..refusals import refuses
from . import small
from .synthetic_runs import write_run

PAIRS = st.lists(
    st.integers(1, 4).flatmap(lambda n: st.tuples(st.integers(0, n), st.integers(0, n), st.just(n))),
    min_size=1,
    max_size=7,
)


def sides(cases: list[tuple[int, int, int]]) -> evidence.Sides:
    before, after, pairs = np.array(cases, np.int64).T
    return evidence.Sides(before, after, pairs, int((2 * before > pairs).sum()))


@given(PAIRS)
def test_p_counts_every_way_to_swap_the_sides_of_the_cases(cases: list[tuple[int, int, int]]) -> None:
    drops = [before - after for before, after, _ in cases]
    observed = sum(drops)
    swapped = [
        sum(sign * drop for sign, drop in zip(signs, drops, strict=True))
        for signs in product((1, -1), repeat=len(drops))
    ]
    expected = sum(one >= observed for one in swapped) / len(swapped) if observed > 0 else 1.0
    assert math.isclose(sides(cases).p_above, expected, abs_tol=1e-9)


def outcome(one: evidence.Sides, max_drop: float = 0.05) -> gate.Outcome:
    return gate.decide({"a": one}, {}, {"a": max_drop})[0].outcome


def test_a_drop_fails_only_where_it_is_large_and_more_than_chance() -> None:
    allowed = sides([(1, 0, 1)] * 4 + [(1, 1, 1)] * 96)
    assert outcome(allowed) == "pass" and outcome(allowed, 0.03) == "inconclusive"  # p = 1/16
    few = sides([(1, 0, 1)] * 3 + [(1, 1, 1)] * 7)  # 30 points of 10 cases: p = 1/8
    clear = sides([(1, 0, 1)] * 10 + [(1, 1, 1)] * 90)
    assert (outcome(few), outcome(clear)) == ("inconclusive", "fail")
    assert outcome(sides([(0, 0, 1)] * 100 + [(1, 1, 1)] * 9)) == "inconclusive", "nine right cases"


@pytest.mark.parametrize("types", [len(values.codes_of(name)) for name in taxonomy.COMPONENTS])
def test_a_perfect_agent_passes_as_soon_as_there_are_enough_cases(types: int) -> None:
    enough, fewer = (sides([(types, types, types)] * n) for n in (gate.ENOUGH, gate.ENOUGH - 1))
    assert (outcome(enough), outcome(fewer)) == ("pass", "inconclusive")


def test_a_type_that_is_lost_fails_its_component() -> None:
    """One of six types wrong in 20 of 100 cases: 3 points of the component."""
    types = {
        f"type {at}": sides([(1, 1 - (at == 0 and case < 30), 1) for case in range(100)]) for at in range(6)
    }
    whole = sides([(6, 6 - (case < 30), 6) for case in range(100)])
    assert gate.decide({"a": whole}, {}, {"a": 0.05})[0].outcome == "pass"
    line = gate.decide({"a": whole}, {"a": types}, {"a": 0.05})[0]
    assert (line.outcome, line.types) == ("fail", ("type 0",))


def test_holm_counts_the_components_that_were_asked_for() -> None:
    six = sides([(1, 0, 1)] * 6 + [(1, 1, 1)] * 5)  # p = 1/64
    alone = gate.decide({"a": six}, {}, {"a": 0.05})
    among = gate.decide({"a": six, "b": sides([(1, 1, 1)] * 9)}, {}, {"a": 0.05, "b": 0.05})
    assert (alone[0].outcome, among[0].outcome) == ("fail", "inconclusive")
    assert math.isclose(among[0].p_holm, 2 / 64)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of reference agents and of agents that break, over the small release eight times."""
    folder = tmp_path_factory.mktemp("runs")
    release = small.write(folder / "small", [copy(row, at) for at in range(8) for row in small.rows()])
    for agent in ("oracle", "name-biased", "rambler"):
        api.evaluate(release, agent=agent, out=folder / agent)
    return folder


def copy(row: schema.Sample, number: int) -> schema.Sample:
    """The row under another id."""
    clean_id = f"{row.clean_id}_{number}"
    return msgspec.structs.replace(row, id=f"{clean_id}::{row.type_code}", clean_id=clean_id)


def test_a_run_is_held_against_its_own_clean_rows(runs: Path) -> None:
    found = api.gate(runs / "name-biased")
    reward = next(line for line in found.lines if line.name == "reward")
    assert reward.before == 1.0 and reward.after < 1.0
    assert {line.name for line in found.lines} <= {"observation", "action", "reward", "transition"}
    assert (found.exit_code, api.gate(runs / "oracle").exit_code) == (1, 0)


def test_a_run_is_held_against_another(runs: Path) -> None:
    by_name = {line.name: line for line in api.gate(runs / "name-biased", runs / "oracle").lines}
    assert by_name["clean"].drop.value == 0.0
    assert by_name["reward"].drop.value > 0.05
    back = {line.name: line for line in api.gate(runs / "oracle", runs / "name-biased").lines}
    assert math.isclose(back["reward"].drop.value, -by_name["reward"].drop.value)
    assert back["reward"].outcome == "pass"


def test_a_baseline_holds_the_verdicts_alone_and_is_replaced(runs: Path, tmp_path: Path) -> None:
    base = tmp_path / "baseline"
    for agent in ("name-biased", "oracle"):
        api.gate(runs / agent, save_baseline=base)
    assert "raw_output" not in pq.read_schema(base / "scores.parquet").names
    against = [api.gate(runs / "name-biased", one) for one in (base, runs / "oracle")]
    assert against[0].lines == against[1].lines


def test_where_nothing_was_right_before_nothing_is_passed(runs: Path) -> None:
    found = api.gate(runs / "rambler")
    assert (found.outcome, found.exit_code) == ("inconclusive", 3)
    assert all("0 of " in line.why for line in found.lines)
    allowed = api.gate(runs / "rambler", allow_inconclusive=True)
    assert (allowed.outcome, allowed.exit_code) == ("inconclusive", 0)


def test_rows_without_a_verdict_are_never_passed(runs: Path, tmp_path: Path) -> None:
    record = json.loads((runs / "oracle" / "run.json").read_text())
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "scores.parquet").write_bytes((runs / "oracle" / "scores.parquet").read_bytes())
    (copy / "run.json").write_text(json.dumps({**record, "expected": record["expected"] + 3}))
    found = api.gate(copy)
    assert (found.outcome, found.exit_code) == ("inconclusive", 3)
    assert all("3 rows have no verdict" in line.why for line in found.lines)
    suite = ET.fromstring(forms.junit(found)).find("testsuite")
    assert suite is not None and suite.get("failures") == suite.get("tests") == str(len(found.lines))
    suite = ET.fromstring(forms.junit(replace(found, allow_inconclusive=True))).find("testsuite")
    assert suite is not None and suite.get("skipped") == suite.get("tests")
    assert api.gate(copy, allow_missing=True).outcome == "pass"


def failing(every: int, status: str, code: str = "") -> Callable[[str, str], str]:
    """The status of rows of which one in `every` is not answered well; of type `code` if one is named."""
    return lambda clean_id, of: (
        status if of.startswith(code) and zlib.crc32(f"{clean_id}{of}".encode()) % every == 0 else "ok"
    )


def run_with(folder: Path, status: Callable[[str, str], str]) -> runs_of.Run:
    """A run that is right wherever its rows are answered well."""

    def error(*row: str) -> str | None:
        return None if status(*row) == "ok" else "KeyError: 'city'"

    return runs_of.read_run(write_run(folder, lambda *row: not error(*row), status=status, error=error))


def test_an_agent_that_fails_on_rows_fails_with_its_message(tmp_path: Path) -> None:
    run = run_with(tmp_path / "a", failing(3, "agent_error"))
    found = gate.judge(run)
    assert found.exit_code == 1 and "KeyError: 'city'" in found.sentence
    count = int((run.rows["status"] == "agent_error").sum())
    assert f"failed on {count} of {len(run.rows['id'])} rows" in found.faults[0]
    assert not gate.judge(run, allow_agent_errors=count).faults


def test_types_that_a_server_cannot_take_are_left_out_by_name(tmp_path: Path) -> None:
    namesakes, few, many = (
        gate.judge(run_with(tmp_path / code / str(every), failing(every, "rejected", code)))
        for every, code in ((1, "same_name"), (20, "CD"), (2, "CD"))
    )
    assert namesakes.outcome == "pass"
    assert any("same_name_A, same_name_B" in note for note in namesakes.notes)
    assert few.outcome == "pass", "below one in a hundred"
    assert "the server rejected" in many.faults[0]


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


def test_a_run_beyond_the_core_alone_is_told_so(tmp_path: Path) -> None:
    rows = [(f"apibank__{n}", code) for n in range(12) for code in ("clean", "flood_10")]
    extended = write_run(tmp_path / "run", lambda clean_id, code: True, rows)
    refuses("nothing to gate: flood_10 are beyond the core types", api.gate, extended)


def test_the_command_has_three_states_and_writes_what_is_asked_for(
    runs: Path, tmp_path: Path, rbtc: Callable[..., Any]
) -> None:
    xml, page = tmp_path / "gate.xml", tmp_path / "gate.md"
    done = rbtc("gate", runs / "oracle", "--junit", xml, "--markdown", page)
    assert (done.code, done.err) == (0, "")
    assert "passed: at least" in done.out
    suite = ET.parse(xml).getroot().find("testsuite")
    assert suite is not None and suite.get("failures") == "0"
    assert page.read_text().splitlines()[1] == "### Robustness gate: passed"
    again = rbtc("gate", runs / "name-biased", "--component", "reward:0", "--json", "--junit", xml)
    said = json.loads(again.out)
    assert [line["name"] for line in said["verdict"]["lines"]] == ["reward"]
    assert again.code == said["exit_code"] == 1
    unsure = rbtc("gate", runs / "rambler")
    assert unsure.code == 3 and unsure.out.startswith("inconclusive: ")
    assert rbtc("gate", runs / "rambler", "--allow-inconclusive").code == 0


def test_a_component_with_a_drop_that_is_no_number_is_one_line(runs: Path, rbtc: Callable[..., Any]) -> None:
    done = rbtc("gate", runs / "oracle", "--component", "reward:much")
    assert "--component: reward:much: write NAME or NAME:DROP" in done.err


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


# --- planted agents on the desk of `rbtc init` --------------------------------------------------------


AGENTS = """
import itertools, threading
from agent import answer as good

numbers, known, lock = itertools.count(1), set(), threading.Lock()


def raises(task):
    if next(numbers) % 3 == 0:
        raise KeyError("city of row")
    return good(task)


def never_calls(task):
    return "I would rather not."


def three_right(task):
    request = str(task.messages[-1])
    with lock:
        if len(known) < 3:
            known.add(request)
    return good(task) if request in known else ""
"""

EXPECTED = {
    "--agent oracle": (0, "passed: at least "),
    "--agent name-biased": (1, "failed: reward: lost "),
    "--callable planted:raises": (1, "raised KeyError: 'city of row'"),
    "--callable planted:never_calls": (3, "inconclusive: "),
    "--callable planted:three_right --samples 20": (3, "cases were right before, 10 are needed"),
}


@pytest.mark.usefixtures("new_folder")
def test_planted_agents_pass_fail_and_are_inconclusive(
    rbtc: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert rbtc("init", "desk").code == 0
    monkeypatch.chdir("desk")
    assert (
        rbtc("build", "--cases", "cases.yaml", "--types", "CD,transient_timeout", "--out", "bench").code == 0
    )
    Path("planted.py").write_text(AGENTS)
    for at, (words, (code, said)) in enumerate(EXPECTED.items()):
        assert rbtc("eval", "bench", *words.split(), "--out", f"run{at}").code == 0
        done = rbtc("gate", f"run{at}")
        assert done.code == code and said in done.out, (words, done.out)
