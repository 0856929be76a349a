"""A small release with every type, and finished runs of the reference agents on it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from robustbench_tc.eval import inputs
from robustbench_tc.eval.leaderboard.checks import Asked
from robustbench_tc.eval.leaderboard.live_data import LiveAsked, load_live

from .. import small
from . import live_runs
from .made import run_folder

RunOf = Callable[..., Path]


@pytest.fixture(scope="session")
def release(bundled: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundled build, cut down to two clean samples per source."""
    rows = inputs.load(str(bundled)).rows
    kept: dict[str, list[str]] = {}
    for row in rows:
        ids = kept.setdefault(row.source, [])
        if row.type_code == "clean" and len(ids) < 2:
            ids.append(row.clean_id)
    return small.write(
        tmp_path_factory.mktemp("board") / "release",
        [row for row in rows if row.clean_id in kept[row.source]],
    )


@pytest.fixture(scope="session")
def asked(release: Path) -> Asked:
    return Asked.of(inputs.load(str(release)))


@pytest.fixture(scope="session")
def run_of(asked: Asked, tmp_path_factory: pytest.TempPathFactory) -> RunOf:
    """`run_of("oracle", model="Alpha-3B")`: a finished run folder, made once for equal arguments."""
    made: dict[tuple[object, ...], Path] = {}

    def run(agent: str, **options: object) -> Path:
        key = (agent, *sorted(options.items()))
        if key not in made:
            folder = tmp_path_factory.mktemp("runs") / agent
            made[key] = run_folder(folder, agent, asked, **options)  # type: ignore[arg-type]
        return made[key]

    return run


@pytest.fixture(scope="session")
def live_release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small live dataset of a bundled world."""
    return live_runs.dataset(tmp_path_factory.mktemp("live"))


@pytest.fixture(scope="session")
def live_asked(live_release: Path) -> LiveAsked:
    return load_live(live_release)


@pytest.fixture(scope="session")
def live_run(live_asked: LiveAsked, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished live run that is no scripted agent's."""
    return live_runs.mixed(tmp_path_factory.mktemp("live-runs"), live_asked)
