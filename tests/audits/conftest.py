"""One audit of the bundled build; tests plant their defects in copies."""

from pathlib import Path

import msgspec
import pytest

from robustbench_tc.audits.report import AuditReport
from robustbench_tc.io import marker

from ..conftest import Made
from ..made import EVERYTHING
from . import builds


@pytest.fixture(scope="session")
def audited(made: Made, bundled: Path) -> AuditReport:
    """What the gate says of the bundled build."""

    def make(folder: Path) -> None:
        folder.mkdir()
        (folder / marker.AUDIT).write_bytes(builds.audit(bundled).json())

    return msgspec.json.decode(
        (made("audited", EVERYTHING, make) / marker.AUDIT).read_bytes(), type=AuditReport
    )


@pytest.fixture(scope="session")
def training(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return builds.build_training(tmp_path_factory.mktemp("training") / "toolrl-dr")
