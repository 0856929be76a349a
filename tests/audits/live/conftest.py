"""One bundled build for the tests of this folder."""

from pathlib import Path

import pytest

from robustbench_tc import api


@pytest.fixture(scope="session")
def live(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundled live dataset."""
    out = tmp_path_factory.mktemp("live") / "robustbench-tc-live"
    api.build_live(out)
    return out
