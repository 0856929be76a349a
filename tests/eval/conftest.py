"""What the tests of evaluation share."""

from pathlib import Path

import pytest

from . import small


@pytest.fixture(scope="session")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small release with every rule type; nobody changes it."""
    return small.write(tmp_path_factory.mktemp("release") / "small", small.rows())
