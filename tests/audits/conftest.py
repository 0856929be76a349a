"""One audit of the bundled build; tests plant their defects in copies."""

from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from robustbench_tc.audits import gate
from robustbench_tc.audits.report import AuditReport

from ..conftest import Made
from ..made import EVERYTHING
from . import builds


class Written(NamedTuple):
    """An audited build: its folder, what the gate says, and what lies under `audit/`."""

    folder: Path
    report: AuditReport
    files: dict[str, bytes]

    @property
    def audit(self) -> Path:
        return self.folder / "audit"


def written(folder: Path) -> Written:
    """Audits a build and writes down what is found."""
    files: dict[str, bytes] = {}
    report = builds.audit(folder, files=files)
    gate.write(report, folder, files)
    return Written(folder, report, files)


@pytest.fixture(scope="session")
def sound(made: Made, bundled: Path) -> Written:
    """The bundled build with its audit; nobody changes it."""

    def make(folder: Path) -> None:
        folder.mkdir()
        written(builds.copy(bundled, folder / "another-name"))

    folder = made("audited", EVERYTHING, make) / "another-name"
    under = folder / "audit"
    files = {
        path.relative_to(under).as_posix(): path.read_bytes() for path in under.rglob("*") if path.is_file()
    }
    report = msgspec.json.decode((folder / "audit_report.json").read_bytes(), type=AuditReport)
    return Written(folder, report, files)


@pytest.fixture(scope="session")
def audited(sound: Written) -> AuditReport:
    """What the gate says of the bundled build, where nobody keeps its files."""
    return msgspec.structs.replace(sound.report, name="robustbench-tc", files={})


@pytest.fixture(scope="session")
def training(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return builds.build_training(tmp_path_factory.mktemp("training") / "toolrl-dr")


# Copies, to be changed by one test.


@pytest.fixture
def folder(bundled: Path, tmp_path: Path) -> Path:
    """Of the bundled build."""
    return builds.copy(bundled, tmp_path / "robustbench-tc")


@pytest.fixture
def toolrl(training: Path, tmp_path: Path) -> Path:
    """Of a build of training data."""
    return builds.copy(training, tmp_path / "toolrl-dr")


@pytest.fixture
def live(live_build: Path, tmp_path: Path) -> Path:
    """Of the live build."""
    return builds.copy(live_build, tmp_path / "robustbench-tc-live")
