"""`pytest --rbtc …` in a process of its own: off unless asked, a test per component where it is."""

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
import yaml

from robustbench_tc.schema import Sample

from .conftest import ROOT
from .eval import small
from .loopback import Fault, LoopbackServer, error_body, reply


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-m", "pytest", "-p", "robustbench_tc.pytest_plugin", "-p", "no:cacheprovider"]
    return subprocess.run(
        [*command, *words], cwd=folder, env=environment, capture_output=True, text=True, timeout=300
    )


def again(row: Sample, number: int) -> Sample:
    """The same row under another id: a few cases are too few for any gate to fail."""
    clean_id = f"{row.clean_id}_{number}"
    return msgspec.structs.replace(row, id=f"{clean_id}::{row.type_code}", clean_id=clean_id)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    small.write(folder / "bench", [again(row, number) for number in range(8) for row in small.rows()])
    (folder / "agent.py").write_text("def answer(task):\n    return ''\n")
    (folder / "breaks.py").write_text(
        "import itertools\nnumbers = itertools.count()\n\n\ndef answer(task):\n"
        "    return '' if (next(numbers) + 1) % 3 else {}['city']\n"
    )
    (folder / "test_mine.py").write_text("def test_mine():\n    assert True\n")
    return folder


def test_it_adds_nothing_unless_it_is_asked_for(place: Path) -> None:
    done = run(place, "-q")
    assert done.returncode == 0 and "1 passed" in done.stdout
    loaded = run(place, "-q", "--co", "-p", "robustbench_tc.pytest_plugin")
    assert "rbtc gate" not in loaded.stdout


def test_a_gate_is_a_test_per_component(place: Path) -> None:
    done = run(place, "--rbtc", "bench", "--rbtc-agent", "oracle", "--rbtc-out", "oracle")
    assert done.returncode == 0, done.stdout
    assert "5 passed" in done.stdout or "4 passed, 1 skipped" in done.stdout, done.stdout
    unsure = "--rbtc", "bench", "--rbtc-callable", "agent:answer", "--rbtc-out", "mine", "-rs"
    done = run(place, *unsure)  # always wrong: it drops nowhere, and that says nothing
    assert done.returncode == 1 and "reward inconclusive: 0.0 % → 0.0 %" in done.stdout, done.stdout
    done = run(place, *unsure, "--rbtc-allow-inconclusive")
    assert done.returncode == 0 and "4 skipped" in done.stdout, done.stdout
    rambler = (
        "--rbtc",
        "bench",
        "--rbtc-agent",
        "rambler",
        "--rbtc-out",
        "rambler",
        "--rbtc-against",
        "oracle",
    )
    failing = run(place, *rambler)
    assert failing.returncode == 1
    assert "clean fail: 100.0 % → 0.0 %, a drop of +100.0 points" in failing.stdout
    assert "Traceback" not in failing.stdout


def test_an_agent_that_raises_fails_with_its_message(place: Path) -> None:
    done = run(
        place, "--rbtc", "bench", "--rbtc-callable", "breaks:answer", "--rbtc-out", "broken", "-k", "reward"
    )
    assert done.returncode == 1 and "Traceback" not in done.stdout, done.stdout
    assert "the agent failed on " in done.stdout and "KeyError: 'city'" in done.stdout, done.stdout


def test_what_a_user_can_put_right_is_one_line(place: Path) -> None:
    done = run(place, "--rbtc", "nowhere", "--rbtc-agent", "oracle", "-k", "reward")
    assert done.returncode == 1
    assert "Traceback" not in done.stdout and "nowhere" in done.stdout


def test_rows_without_an_answer_pass_no_test(place: Path) -> None:
    filtered = small.clean_rows()[0].messages[0].content
    refusal = Fault(400, error_body("filtered", "content_filter"))
    called = reply(None, [("no_such_tool", "{}")])
    with LoopbackServer(
        lambda body: refusal if body["messages"][-1]["content"] == filtered else called
    ) as server:
        asked = "--rbtc-model", "m", "--rbtc-base-url", server.url, "--rbtc-out", "unanswered"
        done = run(place, "--rbtc", "bench", *asked)
    assert done.returncode == 1 and "Traceback" not in done.stdout, done.stdout
    assert "rows have no verdict" in done.stdout, done.stdout


def test_without_an_agent_the_plugin_names_its_own_options(place: Path) -> None:
    done = run(place, "--rbtc", "bench", "-k", "reward")
    assert done.returncode == 1 and "--rbtc-agent or --rbtc-model" in done.stdout, done.stdout
    assert " --model" not in done.stdout


def test_the_plugin_is_registered() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    assert '[project.entry-points.pytest11]\nrbtc = "robustbench_tc.pytest_plugin"\n' in text


@pytest.mark.parametrize(
    ("package", "installed"), [("", "/clone of/it"), ("robustbench-tc==2", "robustbench-tc==2")]
)
def test_the_action_installs_its_own_clone_or_the_named_package(package: str, installed: str) -> None:
    install, *_ = yaml.safe_load((ROOT / "action.yml").read_text())["runs"]["steps"]
    around = {"PYTHON": "echo", "PACKAGE": package, "GITHUB_ACTION_PATH": "/clone of/it"}
    said = subprocess.run(
        ["bash", "-c", install["run"]], env=os.environ | around, capture_output=True, text=True
    )
    assert said.stdout == f"-m pip install --quiet {installed}\n"


def test_the_action_uses_every_input_and_commands_that_there_are() -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    steps = action["runs"]["steps"]
    used = "".join(value for step in steps for value in step.get("env", {}).values())
    for name in action["inputs"]:
        assert f"inputs.{name} " in used, f"input {name} is not used"
    for step in steps:
        assert "${{" not in step.get("run", ""), "an input in a script could be anything: hand it in as env"
    words = [line.split() for step in steps for line in step.get("run", "").splitlines()]
    assert {line[1] for line in words if line[:1] == ["rbtc"]} == {"build", "eval", "gate"}
