"""A small release with every type, what a repository's status says, and runs of the reference agents."""

import functools
import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from robustbench_tc.eval import inputs
from robustbench_tc.eval.leaderboard import check, checker, flags, submit
from robustbench_tc.eval.leaderboard.datasets import Datasets
from robustbench_tc.eval.leaderboard.entry import Status
from robustbench_tc.eval.stats import packs
from tests.hub import Hub

from .. import small
from . import made
from .hubs import Results, asked_here

RunOf = Callable[..., Path]


@pytest.fixture(scope="session", autouse=True)
def known_once() -> Iterator[None]:
    """What runs are held against is worked out once a dataset, and not again by each check and submission;
    children that score a run have what they import from this process."""
    packs.makers()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flags, "known", _remembered(flags.known, lambda data: data.fingerprint()))
        yield


@pytest.fixture
def scored_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests of the way of a run: what its files get is worked out the first time alone."""
    for module in (check, submit):
        monkeypatch.setattr(module, "checked", SCORED)


def _remembered(work: Callable[..., Any], key: Callable[..., object]) -> Callable[..., Any]:
    """The same function, which works out nothing twice that has the same key."""
    known: dict[object, Any] = {}

    @functools.wraps(work)
    def remembered(*given: Any, **how: Any) -> Any:
        name = key(*given, **how)
        if name not in known:
            known[name] = work(*given, **how)
        return known[name]

    return remembered


def _what_is_scored(folder: Path, run: str, data: Datasets) -> object:
    files = tuple((path.name, path.read_bytes()) for path in sorted(folder.iterdir()))
    return files, run, frozenset(data.fingerprints)


SCORED = _remembered(checker.checked, _what_is_scored)


@pytest.fixture(scope="session")
def release(bundled: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundled build, cut down to two clean samples per source."""
    rows = inputs.load_samples(str(bundled)).rows
    kept: dict[str, list[str]] = {}
    for row in rows:
        ids = kept.setdefault(row.source, [])
        if row.type_code == "clean" and len(ids) < 2:
            ids.append(row.clean_id)
    folder = tmp_path_factory.mktemp("board") / "release"
    return small.write(folder, [row for row in rows if row.clean_id in kept[row.source]])


@pytest.fixture(scope="session")
def live_release(live_build: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small live dataset of a bundled world."""
    return made.live_dataset(live_build, tmp_path_factory.mktemp("live"))


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

    def run(agent: str, **how: Any) -> Path:
        return made.local_run(tmp_path_factory.mktemp("runs") / agent, agent, data.core, **how)

    return _remembered(run, _same_arguments)


@pytest.fixture(scope="session")
def run_of(local_run_of: RunOf, tmp_path_factory: pytest.TempPathFactory) -> RunOf:
    """`run_of("oracle", mode="fc")`: the three files that are handed in of such a run; its name is
    `made.name_of(folder)`. To change it, take `made.changed(folder, to)`."""

    def run(agent: str, **how: Any) -> Path:
        return made.as_handed_in(local_run_of(agent, **how), tmp_path_factory.mktemp("handed-in") / agent)

    return _remembered(run, _same_arguments)


def _same_arguments(agent: str, **how: object) -> object:
    return agent, *sorted(how.items())


@pytest.fixture(scope="session")
def _hub() -> Iterator[Hub]:
    with Hub() as hub:
        yield hub


@pytest.fixture
def hub(_hub: Hub) -> Iterator[Hub]:
    """The tests' Hub, which this process's client asks as well."""
    with asked_here(_hub):
        yield _hub


@pytest.fixture
def results(hub: Hub, data: Datasets, scored_once: None, request: pytest.FixtureRequest) -> Results:
    """A results repository of the test's own."""
    return Results(hub, _own_name(request), data).begin()


@pytest.fixture(scope="session")
def _listed(_hub: Hub, data: Datasets, local_run_of: RunOf) -> Results:
    with asked_here(_hub):
        made = Results(_hub, "acme/listed", data).begin()
        made.submit(local_run_of("gives-up-on-error"))
        made.check()
        made.merge(1)
        made.check()
    return made


@pytest.fixture
def listed(hub: Hub, _listed: Results, scored_once: None, request: pytest.FixtureRequest) -> Results:
    """One with the entry of a run of ada's, which came as pull request 1."""
    return _listed.copy(_own_name(request))


def _own_name(request: pytest.FixtureRequest) -> str:
    return f"acme/{hashlib.sha1(request.node.nodeid.encode()).hexdigest()[:12]}"
