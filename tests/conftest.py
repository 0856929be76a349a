"""Shared fixtures: where the mirror, the recorded answers and the oracle vectors lie, if they do."""

import gc
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from .hub import Hub
    from .hub_client import Client

# Read at import by huggingface_hub and datasets: tests never reach for a network.
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
# Whoever runs the tests may have sources of their own: a test says itself which ones it means.
os.environ.pop("RBTC_SOURCES", None)


ROOT = Path(__file__).resolve().parents[1]

NIGHTLY = os.environ.get("RBTC_NIGHTLY") == "1"

nightly = pytest.mark.skipif(not NIGHTLY, reason="make nightly: by day other tests hold a part of it")
"""A test that a day's run leaves out."""

SLOW = (
    "test_readme.py",
    "proxy/mcp/test_door.py",
    "proxy/test_memory.py",
    "proxy/mcp/test_two_doors.py",
    "proxy/drill/test_drill.py",
    "proxy/mcp/test_servers.py",
    "test_folders.py",
    "eval/leaderboard/test_sweep.py",
    "eval/leaderboard/test_hostile.py",
    "eval/leaderboard/test_same_figures.py",
    "audits/live/test_gate.py",
    "cli/test_interrupt.py",
    "eval/test_degenerate_runs.py",
    "eval/test_agents.py",
    "audits/test_extensions.py",
    "test_parallel.py",
    "audits/test_own_tools.py",
    "audits/test_cli.py",
    "audits/test_earlier.py",
    "audits/test_contamination.py",
    "audits/test_training.py",
    "audits/test_shipped.py",
    "eval/leaderboard/test_check.py",
    "eval/leaderboard/test_checker.py",
    "audits/test_mutations.py",
    "builders/perturb/test_units.py",
    "audits/test_provenance.py",
    "test_extending.py",
    "audits/test_project.py",
    "builders/test_build.py",
    "audits/test_real_build.py",
    "cli/test_init.py",
    "proxy/mcp/test_hostile.py",
    "test_release_gate.py",
    "test_own_page.py",
    "builders/live/test_build_live.py",
    "test_api.py",
    "test_pytest_plugin.py",
    "eval/test_eval_command.py",
    "test_publish_round_trip.py",
    "sql/test_sql_marts.py",
    "eval/live/test_live_defences.py",
    "test_package.py",
    "test_amend.py",
    "eval/test_context.py",
    "audits/live/test_registry_types.py",
    "eval/live/test_forbidden.py",
    "audits/live/test_cascades.py",
    "eval/live/test_cascades.py",
    "builders/live/test_cascades.py",
    "test_publish.py",
    "eval/live/test_run_killed.py",
    "eval/live/test_run.py",
    "builders/test_generations.py",
    "test_verify_hub.py",
    "audits/test_planted.py",
    "cli/test_hostile_text.py",
    "eval/test_statistics_check.py",
    "eval/test_report.py",
    "eval/test_domains.py",
    "proxy/test_types.py",
    "eval/live/test_live_table.py",
    "eval/test_run_killed.py",
    "sql/test_sql_agrees.py",
    "eval/live/test_agents_play.py",
    "eval/test_overview.py",
    "own/test_hostile_files.py",
    "eval/test_growth.py",
    "eval/test_inputs.py",
    "eval/test_defend.py",
    "own/test_drafting.py",
    "test_llm_native.py",
    "own/test_mcp_tools.py",
    "eval/test_delivered.py",
    "eval/callables/test_reference.py",
    "eval/callables/test_agents_that_fail.py",
    "eval/test_request_settings.py",
    "proxy/mcp/test_life_cycle.py",
    "eval/test_blind.py",
    "test_yank.py",
    "proxy/mcp/test_running_faults.py",
    "test_llm_address.py",
    "eval/test_abstention.py",
    "sql/test_sql_cli.py",
    "proxy/test_scored.py",
    "eval/adapters/test_serve.py",
    "eval/test_first_replies.py",
    "test_clean.py",
    "proxy/test_command.py",
    "replies/test_wordings.py",
    "replies/test_replies.py",
    "train_recipes/test_gate.py",
    "train_recipes/test_retry_live_rollout.py",
    "builders/sources/test_answerable.py",
    "builders/test_mixed.py",
    "eval/leaderboard/test_leaderboard_cli.py",
    "eval/leaderboard/test_site.py",
    "builders/test_toolrl_dr.py",
    "eval/adapters/test_inspect_logs.py",
    "eval/leaderboard/test_hostile_pulls.py",
    "builders/own/test_as_cases.py",
    "eval/test_intervals.py",
)
"""Files that `make test` leaves out: mostly whole commands one after the other.

`make test-all` runs them first, the longest in front: one that is begun last keeps a single core busy.
"""

SLOW_FILES = {ROOT / "tests" / name: place for place, name in enumerate(SLOW)}
if gone := [path.name for path in SLOW_FILES if not path.is_file()]:
    raise pytest.UsageError(f"tests/conftest.py: SLOW names files that are not there: {gone}")


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("tiers")
    group.addoption("--all", action="store_true", help="the slow files too (tests/conftest.py: SLOW)")
    group.addoption("--slow", action="store_true", help="only the slow files")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Files of the other tier are not even imported; pytest asks only about files that nobody named."""
    if config.getoption("--all") or not collection_path.name.startswith("test_"):
        return None
    slow = collection_path in SLOW_FILES
    return True if slow != config.getoption("--slow") and collection_path.is_file() else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: SLOW_FILES.get(item.path, len(SLOW_FILES)))


def pytest_collection_finish() -> None:
    """Thousands of items and modules stay until the end: no collection of garbage looks at them again."""
    gc.collect()
    gc.freeze()


Made = Callable[[str, tuple[Path, ...], Callable[[Path], object]], Path]


class Done(NamedTuple):
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def refusal(self) -> str:
        """The one line that a command says, with code 1, instead of doing what is asked."""
        assert self.code == 1 and self.err.startswith("rbtc: ") and self.err.count("\n") == 1, self
        return self.err


Rbtc = Callable[..., Done]
"""Runs the command line with these words."""


# Timings are for `make bench`; CI must see the same examples every time.
# By day every run tries the same examples, so that a red test is red again; `make nightly` draws new ones,
# and twice as many.
settings.register_profile("day", deadline=None, derandomize=True, max_examples=50)
settings.register_profile("nightly", deadline=None)
settings.load_profile("nightly" if NIGHTLY else "day")


@pytest.fixture
def rbtc(capfd: pytest.CaptureFixture[str]) -> Rbtc:
    """Runs the command line in this process: `rbtc("build", "--help").code`."""

    def run(*arguments: object) -> Done:
        from robustbench_tc.cli import main

        before = sys.argv
        sys.argv = ["rbtc", *map(str, arguments)]
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        finally:
            sys.argv = before
        out, err = capfd.readouterr()
        return Done(code, out, err)

    return run


@pytest.fixture
def new_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The test works in a new folder, on a wide terminal, without a key."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with sources/, recorded/, vectors/ and spec/; the test is skipped where it is absent."""
    folder = Path(os.environ.get("RBTC_SHARED", ROOT.parent / "shared"))
    if not (folder / "sources" / "MANIFEST.json").is_file():
        pytest.skip(f"no shared folder at {folder} (set RBTC_SHARED)")
    return folder


@pytest.fixture(scope="session")
def inputs(shared: Path) -> Path:
    """The folder of inputs that failed elsewhere, each with the outcome that its README expects; it has to be
    there wherever the shared folder is."""
    folder = shared / "inputs"
    if not (folder / "README.md").is_file():
        pytest.fail(f"{folder} is absent, though {shared / 'sources'} is there")
    return folder


@pytest.fixture(scope="session")
def made(pytestconfig: pytest.Config) -> Iterator[Made]:
    """`made("live", BUILDERS, make)`: a folder, made once a machine (`made.py`); nobody changes it."""
    from . import made

    before: dict[Path, dict[str, str]] = {}

    def once(name: str, rooms: tuple[Path, ...], make: Callable[[Path], object]) -> Path:
        place = made.once(pytestconfig.cache.mkdir("made"), name, rooms, make)
        before[place] = made.contents(place)
        return place

    yield once
    changed = [place for place, files in before.items() if made.contents(place) != files]
    for place in changed:
        shutil.rmtree(place)
    assert changed == [], "a test changed what all tests share: it takes a copy"


@pytest.fixture(scope="session")
def bundled(made: Made) -> Path:
    """The benchmark of the starter samples."""
    from .made import BUILDERS, build_benchmark

    return made("bundled", BUILDERS, partial(build_benchmark, profile="bundled")) / "robustbench-tc"


@pytest.fixture(scope="session")
def paper(made: Made, shared: Path) -> Path:
    """The benchmark as it is published, from the mirrored sources."""
    from .made import BUILDERS, build_benchmark

    make = partial(build_benchmark, profile="paper", sources=shared / "sources")
    return made("paper", BUILDERS, make) / "robustbench-tc"


@pytest.fixture(scope="session")
def trial(made: Made, bundled: Path) -> Path:
    """A release of `bundled`, audited."""
    from .made import EVERYTHING, release_benchmark

    return made("trial", EVERYTHING, partial(release_benchmark, build=bundled)) / "robustbench-tc"


@pytest.fixture(scope="session")
def live_build(made: Made) -> Path:
    """The live dataset of the bundled worlds, with every kind of fault."""
    from .made import BUILDERS, build_live

    return made("live", BUILDERS, build_live) / "robustbench-tc-live"


@pytest.fixture(scope="session")
def cascades(made: Made) -> Path:
    """A live dataset with a task's faults alone and together: of named worlds, which have no pins."""
    from robustbench_tc.live_types import CASCADES

    from .made import BUILDERS, build_live

    make = partial(build_live, worlds=("orders", "calendar"), kinds=tuple(CASCADES))
    return made("cascades", BUILDERS, make) / "robustbench-tc-live"


@pytest.fixture(scope="session")
def bfcl_python() -> str:
    """The Python that has BFCL's classes; the test is skipped where `make env-live` was not run."""
    from robustbench_tc.worlds import find

    if not (ROOT / find.BFCL_PYTHON).is_file():
        pytest.skip("no .venv-live: `make env-live` makes it, `make test-live` runs this")
    return find.bfcl_python(str(ROOT / find.BFCL_PYTHON))


@pytest.fixture(scope="module")
def hub() -> "Iterator[Hub]":
    """A hub on loopback for the tests of one file."""
    from .hub import Hub  # not every environment of ours has what it needs

    with Hub() as found:
        yield found


@pytest.fixture
def repaired(hub: "Hub") -> "Iterator[None]":
    """The hub without faults, and its log empty; for files that plant faults."""
    hub.log()
    yield
    hub.repair()


@pytest.fixture(scope="module")
def client(hub: "Hub", tmp_path_factory: pytest.TempPathFactory) -> "Iterator[Client]":
    """A client of the hub without Xet: large files are classic LFS."""
    from .hub_client import Client

    with Client(hub.environment(None, tmp_path_factory.mktemp("hf"))) as found:
        yield found
