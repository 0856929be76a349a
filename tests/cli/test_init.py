"""`rbtc init`, and bar 1: from it to a red gate in a minute."""

import os
from collections import Counter
from pathlib import Path

import pytest
import yaml

from robustbench_tc import api, taxonomy
from robustbench_tc.eval.stats.runs import read_run
from robustbench_tc.own.desk import desk

from ..commands import shell
from ..conftest import ROOT, Rbtc
from ..refusals import refuses


def test_it_writes_the_desk_and_says_what_comes_next(
    rbtc: Rbtc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = rbtc("init", "my agent")
    assert (done.code, done.err) == (0, "")
    found = {
        path.relative_to("my agent").as_posix(): path.read_bytes()
        for path in Path("my agent").rglob("*")
        if path.is_file()
    }
    assert found == desk()
    lines = [line.strip() for line in done.out.splitlines()]
    assert lines[1:3] == ["next:", "cd 'my agent'"]
    readme = found["README.md"].decode()
    for line in lines[3:]:
        assert line in readme, "the README of the example goes on in another way"
    monkeypatch.chdir("my agent")
    assert rbtc("init", ".").refusal == (
        f"rbtc: {tmp_path / 'my agent'} is not empty: name a new " + ("folder, or an empty one\n")
    )


@pytest.mark.parametrize("place", ["file/demo", "/proc/demo"])
def test_a_place_that_cannot_be_written_is_one_line(rbtc: Rbtc, tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("mine")
    done = rbtc("init", tmp_path / place)
    assert done.code == 1 and done.out == ""
    assert done.err.startswith("rbtc: ") and done.err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder where the README of the example was followed, to the end of its commands."""
    folder = tmp_path_factory.mktemp("desk")
    shell(folder, "rbtc init demo")
    text = desk()["README.md"].decode()
    (block,) = (part.partition("```")[0] for part in text.split("```sh\n")[1:])
    for line in block.splitlines():
        command = line.partition(" #")[0]
        code = 3 if "--against" in command else int(command.startswith(("rbtc gate", "rbtc lint")))
        shell(folder / "demo", command.strip(), code)
    return folder / "demo"


def right(run: Path) -> dict[str, tuple[int, int]]:
    """Of the clean rows and of each component how many are right, of how many."""
    components = {one.code: one.component for one in taxonomy.types()}
    rows = read_run(run).rows
    names = [components.get(code, code) for code in rows["type_code"]]
    hits = Counter(name for name, correct in zip(names, rows["correct"], strict=True) if correct == 1)
    return {name: (hits[name], count) for name, count in Counter(names).items()}


def test_the_biased_agent_fails_the_gate_by_the_reward_component(demo: Path) -> None:
    found = api.gate(demo / "run")
    assert found.exit_code == 1
    assert {line.name: line.outcome for line in found.lines} == {
        "observation": "pass",
        "action": "pass",
        "reward": "fail",
        "transition": "pass",
    }
    assert right(demo / "run") == {
        "clean": (37, 37),
        "observation": (37, 37),
        "action": (160, 160),
        "reward": (64, 184),
        "transition": (192, 192),
    }


def test_the_agent_of_the_example_breaks_on_no_row(demo: Path) -> None:
    assert set(read_run(demo / "runs" / "mine").rows["status"]) == {"ok"}
    counts = right(demo / "runs" / "mine")
    assert counts["clean"] == (13, 37) and counts["reward"] == (24, 184)
    assert "agent:answer" in (demo / "report" / "report.html").read_text("utf-8")


def test_every_golden_answer_is_right_however_it_is_perturbed(demo: Path) -> None:
    run = api.evaluate(demo / "bench", agent="oracle", out=demo / "runs" / "oracle").folder.path
    assert all(hits == rows for hits, rows in right(run).values())
    assert api.gate(run).exit_code == 0


def test_the_actions_steps_do_what_the_workflow_of_the_example_asks(demo: Path) -> None:
    (job,) = yaml.safe_load((demo / ".github" / "workflows" / "rbtc.yml").read_text())["jobs"].values()
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    steps = {step["name"]: step for step in action["runs"]["steps"]}
    gates = [step for step in job["steps"] if "robustbench-tc" in step["uses"]]
    assert [("against" in one["with"], one["with"].get("allow-inconclusive")) for one in gates] == [
        (True, None),
        (False, "true"),
    ]
    written = {"GITHUB_STEP_SUMMARY": str(demo / "summary.md"), "GITHUB_OUTPUT": str(demo / "outputs")}
    for gate, exits, outcome in zip(gates, (3, 1), ("inconclusive", "failed"), strict=True):
        given = {name: str(one["default"]) for name, one in action["inputs"].items()} | gate["with"]
        for name, code in (("Evaluate", 0), ("Gate", exits)):
            asked = steps[name]["env"].items()
            more = {key: given[value.removeprefix("${{ inputs.").removesuffix(" }}")] for key, value in asked}
            around = os.environ | more | written
            shell(demo, steps[name]["run"], code, around)
        assert (demo / "outputs").read_text().splitlines()[-1] == f"outcome={outcome}"
    shell(demo, "mv rbtc-run kept && mkdir rbtc-run")
    shell(demo, steps["Gate"]["run"], 1, around)  # there is no run to judge
    assert (demo / "outputs").read_text().splitlines()[-1] == "outcome=error"
    shell(demo, "rmdir rbtc-run && mv kept rbtc-run")
    summary = (demo / "summary.md").read_text("utf-8")
    assert summary.index("inconclusive") < summary.index("failed") and "reward" in summary
    assert right(demo / "rbtc-run") == right(demo / "runs" / "mine")
    both = {"DATASET": "bench", "CASES": "cases.yaml"} | dict.fromkeys(
        ("CALLABLE", "COMMAND", "MODEL", "BASE_URL", "LIMIT"), ""
    )
    shell(demo, steps["Evaluate"]["run"], 2, os.environ | both)


def test_an_agent_of_a_framework_comes_beside_the_plain_one(rbtc: Rbtc, tmp_path: Path) -> None:
    done = rbtc("init", str(tmp_path / "desk"), "--framework", "openai-agents")
    assert (done.code, done.err) == (0, "")
    there = {path.name for path in (tmp_path / "desk").iterdir()}
    assert {"agent.py", "openai_agents_agent.py", "openai_agents_requirements.txt"} <= there
    assert 'rbtc eval bench --command "openai-agents/bin/python openai_agents_agent.py"' in done.out
    done = rbtc("init", str(tmp_path / "other"), "--framework", "langraph")
    assert done.code != 0 and "langgraph" in done.err and not (tmp_path / "other").exists()
    refuses("unknown framework 'x'", api.init, tmp_path / "other", framework="x")  # type: ignore[arg-type]
