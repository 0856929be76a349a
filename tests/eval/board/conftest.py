"""A small release with every type, what a repository's status says, and runs of the reference agents."""

from collections.abc import Callable
from pathlib import Path

import pytest

from robustbench_tc.eval import inputs
from robustbench_tc.eval.board.datasets import Datasets
from robustbench_tc.eval.board.status import Status

from .. import small
from . import live_runs, made

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
    folder = tmp_path_factory.mktemp("board") / "release"
    return small.write(folder, [row for row in rows if row.clean_id in kept[row.source]])


@pytest.fixture(scope="session")
def live_release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small live dataset of a bundled world."""
    return live_runs.dataset(tmp_path_factory.mktemp("live"))


@pytest.fixture(scope="session")
def status(release: Path) -> Status:
    """Of a repository that takes runs of the release alone."""
    return Status(dataset=str(release))


@pytest.fixture(scope="session")
def data(status: Status) -> Datasets:
    return Datasets.of_status(status)


@pytest.fixture(scope="session")
def local_run_of(data: Datasets, tmp_path_factory: pytest.TempPathFactory) -> RunOf:
    """`local_run_of("oracle", mode="fc")`: a finished run of this machine, made once for equal arguments."""
    return _once(
        lambda folder, agent, **how: made.local_run(folder, agent, data.core, **how), tmp_path_factory
    )


@pytest.fixture(scope="session")
def run_of(local_run_of: RunOf, tmp_path_factory: pytest.TempPathFactory) -> RunOf:
    """`run_of("oracle", mode="fc")`: the three files that are handed in of such a run; its name is
    `made.name_of(folder)`. To change it, take `made.changed(folder, to)`."""
    return _once(
        lambda folder, agent, **how: made.as_handed_in(local_run_of(agent, **how), folder), tmp_path_factory
    )


def _once(make: Callable[..., Path], places: pytest.TempPathFactory) -> RunOf:
    known: dict[tuple[object, ...], Path] = {}

    def run(agent: str, **how: object) -> Path:
        key = (agent, *sorted(how.items()))
        if key not in known:
            known[key] = make(places.mktemp("runs") / agent, agent, **how)
        return known[key]

    return run
