"""The bundled support desk: whole, readable, and of every kind of case that there is."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from robustbench_tc.eval.score import matchers
from robustbench_tc.own.cases import CaseFile
from robustbench_tc.own.cases_file import read_cases
from robustbench_tc.own.desk import desk
from robustbench_tc.own.lint import lint
from robustbench_tc.own.tools import entries
from robustbench_tc.schema import Json

from ..conftest import ROOT
from ..trees import write


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> CaseFile:
    return read_cases(write(tmp_path_factory.mktemp("desk"), {**desk()}) / "cases.yaml")


def parts(value: Json) -> Iterator[Json]:
    yield value
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from parts(one)


def test_it_has_every_file_that_its_readme_names() -> None:
    files = desk()
    named = set(re.findall(r"^\| `([\w./-]+)`", files["README.md"].decode(), re.MULTILINE))
    assert named == files.keys() - {"README.md", ".gitignore"}
    assert all(data.decode().endswith("\n") for data in files.values())


def test_it_has_a_case_of_every_kind(cases: CaseFile) -> None:
    turns = [turn for case in cases.cases for turn in case.turns]
    assert {answer.kind for turn in turns for answer in turn.answers} == {"calls", "no_call", "ask"}
    assert {len(case.turns) for case in cases.cases} == {1, 2, 3}
    for seen in (
        any(turn.ordered for turn in turns),
        any(turn.extra for turn in turns),
        any(len(turn.answers) > 1 for turn in turns),
        any(len(turn.answers[0].calls) > 1 and not turn.ordered for turn in turns),
        any(len(results) > 1 for turn in turns for results in turn.results.values()),
        any("tool_calls" in message for turn in turns for message in turn.messages),
    ):
        assert seen
    expected = [
        part
        for turn in turns
        for answer in turn.answers
        for call in answer.calls
        for value in call.parameters.values()
        for part in parts(value)
    ]
    assert {matchers.kind(one) for one in expected} - {None} == matchers.MATCHERS
    assert any(isinstance(one, dict) and one.get("optional") is True for one in expected)
    assert any(isinstance(one, dict) and "tolerance" in one for one in expected)


def test_every_tool_is_called_and_has_nothing_to_find_fault_with(cases: CaseFile) -> None:
    called = {
        place for case in cases.cases for turn in case.turns for one in turn.answers for place in one.places
    }
    assert called == set(range(len(cases.tools)))
    files = desk()
    found = {name: entries(files[f"{name}.json"], name, name) for name in ("orders", "crm")}
    for listed in found.values():
        assert {one.code for one in lint(listed, ["openai", "anthropic", "mcp"])} <= {
            "retry-no-key",
            "retry-unseen",
        }
    # On purpose: what two servers do, and what docs/own.md shows.
    (both,) = (one for one in lint([*found["orders"], *found["crm"]]) if one.level == "error")
    assert (both.code, both.tools) == ("same-name", ("orders:find", "crm:find"))


def test_what_the_readme_counts_is_there(cases: CaseFile) -> None:
    text = desk()["README.md"].decode()
    assert f"{len(cases.cases)} cases" in text
    assert [sum(tool.prefix == name for tool in cases.tools) for name in ("orders", "crm")] == [7, 7]
    assert text.count("seven tools") == 2


def test_its_ci_file_gives_the_action_inputs_that_it_has() -> None:
    (job,) = yaml.safe_load(desk()[".github/workflows/rbtc.yml"])["jobs"].values()
    gates = [step for step in job["steps"] if step["uses"].startswith("OWNER/robustbench-tc@")]
    action = yaml.safe_load(Path(ROOT / "action.yml").read_text())
    assert len(gates) == 2
    assert all(one["with"].keys() <= action["inputs"].keys() for one in gates)
    assert gates[0]["with"]["cases"] in desk()
