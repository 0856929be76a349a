"""A pytest plugin: under `coverage run`, every line is recorded with the tests that run it."""

from collections.abc import Iterator

import pytest
from coverage import Coverage


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """What a test and the fixtures made for it run is recorded under the test's node id."""
    measuring = Coverage.current()
    if measuring is not None:
        measuring.switch_context(item.nodeid)
    return (yield)
