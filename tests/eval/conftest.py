"""What the tests of evaluation share."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ..browsing import chromium
from ..loopback import LoopbackServer, reply
from . import small


@pytest.fixture(scope="session")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small release with every rule type; nobody changes it."""
    return small.write(tmp_path_factory.mktemp("release") / "small", small.rows())


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    """A model that makes the same call, whatever it is asked."""
    with LoopbackServer(lambda body: reply("[ping(a=1)]")) as running:
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found
