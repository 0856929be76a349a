"""One bundled build and its audit for the session; tests plant their defects in copies."""

from pathlib import Path

import pytest

from robustbench_tc.audits.report import AuditReport

from ..once import shared_work
from . import builds


@pytest.fixture(scope="session")
def audited(bundled: Path) -> AuditReport:
    with shared_work():
        return builds.audit(bundled)


@pytest.fixture(scope="session")
def training(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return builds.build_training(tmp_path_factory.mktemp("training") / "toolrl-dr")
