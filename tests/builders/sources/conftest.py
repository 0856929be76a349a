"""The pools of the mirror, read once."""

from pathlib import Path

import pytest

from robustbench_tc.builders import sources


@pytest.fixture(scope="session")
def root(shared: Path) -> Path:
    return shared / "sources"


@pytest.fixture(scope="session")
def paper(root: Path) -> sources.Pool:
    return sources.read_pool(root, "paper")


@pytest.fixture(scope="session")
def full(root: Path) -> sources.Pool:
    return sources.read_pool(root, "full")
