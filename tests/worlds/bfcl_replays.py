"""Many replays in BFCL's world at once, for tests: one process of the other Python, a fork a replay."""

import json
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from robustbench_tc.schema import Call, LiveRow
from robustbench_tc.worlds import find

DRIVER = Path(__file__).with_name("bfcl_driver.py")
WORLD = Path(find.__file__).with_name("bfcl_classes.py")


def bfcl_data(python: str) -> Path:
    """Where that Python's bfcl-eval has its data files: the same bytes as those of the sources."""
    asked = [python, "-I", "-c", "import bfcl_eval; print(bfcl_eval.__path__[0])"]
    return Path(subprocess.check_output(asked, text=True).strip()) / "data"


class Job(NamedTuple):
    """A world's start and the calls of each turn."""

    state: Mapping[str, Any]
    turns: Sequence[Sequence[Call]]


class Answer(NamedTuple):
    """What came of a job."""

    results: list[list[str]]
    states: list[Any]
    """Public attributes after each turn: the form of the oracle vectors."""
    cwd: str | None
    private: dict[str, Any]
    generated: list[str]


def replays(python: str, jobs: Iterable[Job]) -> list[Answer]:
    """The answers, in the order of the jobs."""
    lines = [
        json.dumps(
            {"state": job.state, "turns": [[[c.name, c.parameters] for c in turn] for turn in job.turns]}
        )
        for job in jobs
    ]
    command = [python, "-I", str(DRIVER), str(WORLD)]
    done = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True, check=True)
    return [Answer(**json.loads(line)) for line in done.stdout.splitlines()]


def gold(row: LiveRow) -> Job:
    """A row's gold."""
    return Job(row.initial_state["state"], row.golden_calls)
