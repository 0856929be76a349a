"""Rows and live episodes as a taskset of verifiers, in its own environment (`make test-verifiers`)."""

import json
import shlex
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from robustbench_tc import api
from robustbench_tc.api.building import build_live
from robustbench_tc.eval import inputs
from robustbench_tc.eval.stats.runs import read_run
from tests import agent_server
from tests.conftest import ROOT, Rbtc, nightly

from . import played
from .bars import compared
from .episodes import Played, Reply, drawn
from .harnesses import NOBODY, commands, program, run


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program("verifiers", "vf-eval")
    folder = tmp_path_factory.mktemp("live") / "robustbench-tc-live"
    build_live(out=folder, worlds=("orders",), kinds=("timeout_after_effect",))
    return folder


def test_forty_random_episodes_earn_what_they_earn_in_our_loop(dataset: Path, tmp_path: Path) -> None:
    lines = list(compared(dataset, 40, tmp_path, "verifiers"))
    assert lines[1].startswith("verifiers: 40 of 40 rewards are ours, 40 with all of success, ")


@pytest.mark.parametrize("mode", ["prompt", pytest.param("fc", marks=nightly)])
def test_every_static_verdict_is_that_of_our_own_run(mode: str, release: Path, tmp_path: Path) -> None:
    agent = "retries-with-a-changed-argument"
    with agent_server.serving(agent, inputs.load_samples(str(release)).rows) as url:
        done = played.verifiers(
            *("vf-eval", "rbtc-rows", *played.EVAL, "--client.base-url", url, "-m", agent, "-o", "out"),
            *("--client.api-key-var", "OPENAI_API_KEY", "--env.taskset.dataset", release),
            *("--env.taskset.mode", mode),
            place=tmp_path,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    theirs = {name: (record["correct"], record["error_mode"]) for name, _, record in played.traces(tmp_path)}
    own = api.evaluate(str(release), agent=agent, mode=mode, out=tmp_path / "own").folder
    import pyarrow.parquet as pq

    rows = pq.read_table(own.scores_path, columns=["id", "correct", "error_mode"]).to_pylist()
    assert theirs == {row["id"]: (row["correct"], row["error_mode"]) for row in rows}
    assert len({right for right, _ in theirs.values()}) == 2


@contextmanager
def oracle(dataset: Path) -> Iterator[str]:
    """An address where gold's calls of the clean rows are made, in the rows' order."""
    rows = [row for row in inputs.load_live(str(dataset)).rows if row.clean]
    due = [
        Played(
            row.id,
            tuple(
                reply
                for turn in row.golden_calls
                for reply in (*(Reply(calls=(call,)) for call in turn), Reply("Done."))
            ),
        )
        for row in rows
    ]
    with played.serving(rows, due) as url:
        yield url


def test_the_commands_of_the_page(dataset: Path, tmp_path: Path, rbtc: Rbtc) -> None:
    install, validate, evaluate = commands("harnesses.md", "## verifiers")
    assert install.endswith('.venv-verifiers/bin/pip install "$(rbtc list verifiers)"')
    listed = Path(rbtc("list", "verifiers").out.strip())
    assert "verifiers==0.4.0" in (listed / "requirements.txt").read_text()
    (tmp_path / "robustbench-tc-live").symlink_to(dataset)
    given = shlex.split(validate.partition("bin/")[2])
    done = played.verifiers(*given, "--rich", "False", "-o", "validated", place=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    [path] = tmp_path.glob("validated/*/summary.json")
    found = json.loads(path.read_text())
    assert found["total"] == 40 == found["checks"]["gold"]["valid"] == found["checks"]["noop"]["valid"]
    given = shlex.split(evaluate.partition("bin/")[2])
    assert {"--no-push", "subprocess"} <= set(given)
    with oracle(dataset) as url:
        given[given.index("http://localhost:8000/v1")] = url
        done = played.verifiers(
            *given, "-n", 3, "-c", 1, "--env.taskset.types", "clean", "-o", "out", place=tmp_path
        )
    assert done.returncode == 0, done.stdout + done.stderr
    assert [reward for _, reward, _ in played.traces(tmp_path)] == [1.0, 1.0, 1.0]


def test_the_environment_is_one_that_a_hub_can_install(release: Path, tmp_path: Path) -> None:
    """Its requirements, of this package too, hold together in one Python, where `rbtc eval` works as well."""
    checked = run("verifiers", "python", "-m", "pip", "check", place=tmp_path)
    assert checked.stdout == "No broken requirements found.\n"
    project = tomllib.loads((played.VERIFIERS / "pyproject.toml").read_text())["project"]
    assert (played.VERIFIERS / project["readme"]).is_file() and len(project["tags"]) > 3
    found = run("verifiers", "python", "-c", LOADED, project["name"], place=tmp_path)
    assert found.stdout == "SingleAgentEnv RowTaskset RowHarness\n", found.stderr
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert f"robustbench-tc>={version.rpartition('.')[0]}," in " ".join(project["dependencies"])
    rows = inputs.load_samples(str(release)).rows
    words = ("eval", release, "--model", "m", "--limit", 8, "--no-probe", "--base-url")
    with agent_server.serving("oracle", rows) as url:
        done = run("verifiers", "rbtc", *words, url, "--out", "run", place=tmp_path)
    assert done.returncode == 0 and read_run(tmp_path / "run").rows["correct"].all(), done.stderr
    done = run("verifiers", "rbtc", *words, NOBODY, "--out", "lost", "--max-retries", 0, place=tmp_path)
    assert (done.returncode, done.stderr[:24]) == (1, "rbtc: nothing answers at"), done


LOADED = """
import sys, verifiers.v1 as vf
from verifiers.v1.utils.loaders import default_harness_id, harness_class, resolve_env_config
name = f"acme/{sys.argv[1]}@0.1.0"
env = vf.load_environment(resolve_env_config({"taskset": {"id": name}}))
print(type(env).__name__, type(env.taskset).__name__, harness_class(default_harness_id(name)).__name__)
"""
"""What the loader of verifiers makes of the package's name, as the Hub writes it."""


def test_what_is_wrong_is_one_line(tmp_path: Path) -> None:
    """Of a program of verifiers too; what can be wrong is in test_serve."""
    words = ("rbtc-rows", "--runtime.type", "subprocess", "--rich", "False", "--taskset.dataset", "nowhere")
    done = played.verifiers("vf-validate", *words, place=tmp_path)
    assert done.returncode != 0 and "nowhere" in done.stderr, done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def test_a_server_that_fails_gives_no_reward(dataset: Path, tmp_path: Path) -> None:
    rows = inputs.load_live(str(dataset)).rows
    with played.serving(rows, drawn(rows[1:2], 1)) as url:  # another row is due: the request is refused
        done = played.verifiers(
            *("vf-eval", "rbtc-rows", *played.EVAL, "--client.base-url", url, "-m", "m", "-n", 1),
            *("--client.api-key-var", "OPENAI_API_KEY", "--env.taskset.dataset", dataset, "-o", "out"),
            place=tmp_path,
        )
    [path] = tmp_path.glob("out/*/traces.jsonl")
    [trace] = json.loads(path.read_text().splitlines()[0])["traces"]
    assert not trace["ok"] and "robustbench_tc" not in trace["info"], done.stdout
