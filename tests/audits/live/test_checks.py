"""Every check of a live row catches the defect that is planted for it, and nothing is found in the build."""

import asyncio
import shutil
from pathlib import Path

import pytest

from robustbench_tc.audits.checks import rules
from robustbench_tc.audits.folder import Folder
from robustbench_tc.audits.live.rows import more_tools
from robustbench_tc.audits.live.scan import SUITES, LiveScan, scan
from robustbench_tc.worlds import find

from . import planting

CHECKS = {
    rule.name for one in SUITES for rule in rules(one) if not (rule.is_native or rule.for_ is more_tools)
} - {"gold_is_not_taken"}
"""Those of rows with more tools have a build of their own (test_registry_types)."""


def scanned(folder: Path) -> LiveScan:
    types = {name: find.find(name) for name in find.BUNDLED}
    return asyncio.run(scan(Folder(folder), types))


@pytest.fixture(scope="module")
def sound(live_build: Path) -> LiveScan:
    return scanned(live_build)


@pytest.fixture(scope="module")
def planted(live_build: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, str], LiveScan]:
    folder = tmp_path_factory.mktemp("planted") / "robustbench-tc-live"
    shutil.copytree(live_build, folder)
    return planting.plant(folder), scanned(folder)


def test_nothing_is_found_in_the_bundled_build(sound: LiveScan) -> None:
    found = {
        (name, where): verdict
        for name in CHECKS
        for where, verdict in zip(sound.columns["id"], sound.columns[name], strict=True)
        if verdict
    }
    assert found == {}


def test_every_check_is_held_against_something(sound: LiveScan) -> None:
    applied = {name: sum(verdict is not None for verdict in sound.columns[name]) for name in CHECKS}
    few = {name: number for name, number in applied.items() if number < 20}
    # Two bundled tasks read back what they wrote; nine turns ask, each in a task of its own.
    assert few == {"stale_read_matters": 2, "answers_are_read": 9}


def test_there_is_a_defect_for_every_check() -> None:
    assert {one.check for one in planting.DEFECTS} == CHECKS


def test_a_planted_defect_is_caught_by_name(
    planted: tuple[dict[str, str], LiveScan], subtests: pytest.Subtests
) -> None:
    where, found = planted
    for one in planting.DEFECTS:
        with subtests.test(one.name):
            verdicts = zip(found.columns["id"], found.columns[one.check], strict=True)
            said = [verdict for id_, verdict in verdicts if id_ == where[one.name]]
            assert said and all(said), f"{one.check} says {said} of {where[one.name]}"
