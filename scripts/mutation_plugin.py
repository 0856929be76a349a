"""A pytest plugin of the mutation run: which tests run which lines, for how long, and which ones to run.

Under `coverage run` every line is recorded with the tests that run it, and `mutation.times` keeps the
seconds of each test. Without it `mutation.only` and `mutation.not` say what is run: files with one node id
per line, the first ones first; where it says what is not run, the rest runs in the order of the files given.
The first test that fails is written to `mutation.failed`.
"""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from coverage import Coverage

TIMES, ONLY, NOT, FAILED = (Path(f"mutation.{name}") for name in ("times", "only", "not", "failed"))

_seconds: dict[str, float] = {}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """What a test and the fixtures made for it run is recorded under the test's node id."""
    measuring = Coverage.current()
    if measuring is None:
        return (yield)
    measuring.switch_context(item.nodeid)
    start = time.monotonic()
    try:
        return (yield)
    finally:
        _seconds[item.nodeid] = round(time.monotonic() - start, 3)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The tests asked for, in that order: after the order that tests/conftest.py gives them."""
    if ONLY.is_file():
        place = {name: number for number, name in enumerate(ONLY.read_text("utf-8").split("\n"))}
        chosen = sorted((i for i in items if i.nodeid in place), key=lambda i: place[i.nodeid])
    elif NOT.is_file():
        left_out = set(NOT.read_text("utf-8").split("\n"))
        file = {name: number for number, name in enumerate(config.args)}
        chosen = [i for i in items if i.nodeid not in left_out]
        chosen.sort(key=lambda i: file.get(i.nodeid.split("::")[0], len(file)))
    else:
        return
    kept = set(chosen)
    config.hook.pytest_deselected(items=[i for i in items if i not in kept])
    items[:] = chosen


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.failed and not FAILED.exists():
        FAILED.write_text(report.nodeid, "utf-8")


def pytest_sessionfinish() -> None:
    if _seconds:
        TIMES.write_text(json.dumps(_seconds), "utf-8")
