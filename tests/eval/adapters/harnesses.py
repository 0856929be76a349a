"""inspect_ai and lm-eval as programs, each in its own environment, against a reference agent on loopback."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from robustbench_tc.eval import inputs
from robustbench_tc.eval.adapters import inspect_log, logs
from robustbench_tc.eval.stats.runs import Run
from tests import agent_server
from tests.conftest import ROOT

NOBODY = "http://127.0.0.1:9/v1"


def program(environment: str, name: str) -> Path:
    """A program of an environment. Each of its starts takes ten seconds and more, so tests of it are skipped
    in the ordinary run, which has those of the logs."""
    if os.environ.get("RBTC_HARNESSES") != "1":
        pytest.skip(f"starts programs of .venv-{environment}: make test-{environment}")
    found = ROOT / f".venv-{environment}" / "bin" / name
    if not found.exists():
        pytest.skip(f"no environment of {environment}: make env-{environment}")
    return found


def run(
    environment: str, name: str, *words: object, place: Path, drop: str = "PYTEST", **env: str
) -> subprocess.CompletedProcess[str]:
    """Runs a program of an environment in `place`, without variables that begin with `drop`."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST", drop))}
    return subprocess.run(
        [program(environment, name), *map(str, words)],
        cwd=place, env=kept | env, capture_output=True, text=True, timeout=3600,
    )  # fmt: skip


def inspect(*words: object, place: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Runs inspect_ai's command line; logs go to `place`/logs."""
    env = {
        "PYTHONPATH": str(ROOT / "src"),
        "INSPECT_LOG_DIR": str(place / "logs"),
        "RBTC_BASE_URL": NOBODY,
        "RBTC_API_KEY": "none",
        "NO_COLOR": "1",
        "COLUMNS": "200",
    }
    plain = (*words, "--display", "plain")
    return run("inspect", "inspect", *plain, place=place, drop="INSPECT_", **env | more)


def samples(place: Path) -> tuple[Path, dict[str, Any], list[dict[str, Any]]]:
    """The only log of inspect_ai there, its header and its samples."""
    [found] = every(place)
    return found


def every(place: Path) -> Iterator[tuple[Path, dict[str, Any], list[dict[str, Any]]]]:
    """The logs there."""
    for found in (place / "logs").glob("*.eval"):
        with inspect_log.Zip(found) as log:
            members = {name: json.loads(log.member(name) or b"") for name in log.NameToInfo}
        whole = [one for name, one in members.items() if name.startswith("samples/")]
        yield found, members["header.json"], whole


def printed(header: dict[str, Any]) -> dict[str, float]:
    """The table that inspect_ai prints."""
    [scores] = header["results"]["scores"]
    return {name.rpartition("/")[2]: one["value"] for name, one in scores["metrics"].items()}


def asked_by_inspect(release: Path, agent: str, place: Path, *words: object) -> Path:
    """The log of one evaluation of a reference agent."""
    with agent_server.serving(agent, inputs.load_samples(str(release)).rows) as url:
        model = ("--model", f"openai-api/rbtc/{agent}", "-T", f"dataset={release}")
        done = inspect("eval", "robustbench_tc/benchmark", *model, *words, place=place, RBTC_BASE_URL=url)
    assert done.returncode == 0, done.stdout + done.stderr
    return samples(place)[0]


def tasks() -> str:
    """The folder that `--include_path` takes, as the documented command prints it."""
    words = [sys.executable, "-m", "robustbench_tc", "list", "lm-eval"]
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    return subprocess.run(words, env=env, capture_output=True, text=True, check=True).stdout.strip()


def lm_eval(*words: object, place: Path) -> subprocess.CompletedProcess[str]:
    """Runs lm-eval's command line in `place`."""
    env = {"PYTHONPATH": str(ROOT / "src"), "OPENAI_API_KEY": "none", "HF_HUB_OFFLINE": "1"}
    return run("lm-eval", "lm-eval", *words, place=place, drop="LM", **env)


def asked_by_lm_eval(release: Path, agent: str, place: Path, *words: object, tasks_: str = "rbtc") -> Path:
    """The results file of one evaluation of a reference agent, its samples beside it."""
    with agent_server.serving(agent, inputs.load_samples(str(release)).rows) as url:
        done = lm_eval(
            *("run", "--model", "local-chat-completions", "--tasks", tasks_, "--include_path", tasks()),
            *("--model_args", f"model={agent},base_url={url}/chat/completions,num_concurrent=16"),
            *("--metadata", json.dumps({"dataset": str(release)})),
            *("--apply_chat_template", "--output_path", "out", "--log_samples", *words),
            place=place,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    [found] = (place / "out").glob("*/results_*.json")
    return found


def commands(page: str, after: str = "") -> list[str]:
    """The commands of a docs page's first block, behind some words of it."""
    text = (ROOT / "docs" / page).read_text()
    return (
        text[text.index(after) :]
        .partition("```sh\n")[2]
        .partition("```")[0]
        .replace("\\\n", "")
        .strip()
        .splitlines()
    )


def verdicts(name: Path, *more: str) -> tuple[Run, dict[str, tuple[object, ...]]]:
    """A run, or a log as one, and by row what was said of it; `more`: columns beside these."""
    with logs.opened([str(name)]) as found:
        run = found[0].read_run()
    columns = ("id", "correct", "error_mode", "stage", "stage_detail", *more)
    rows = zip(*(run.rows[column].tolist() for column in columns), strict=True)
    return run, {one[0]: one[1:] for one in rows}
