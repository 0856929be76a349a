"""Every check of a live row catches the defect planted for it; `test_gate.py` audits a sound build."""

import asyncio
import shutil
from pathlib import Path

import pytest

from robustbench_tc.audits.checks import rules
from robustbench_tc.audits.folder import Folder
from robustbench_tc.audits.live.rows import more_tools, with_policy
from robustbench_tc.audits.live.scan import SUITES, LiveScan, scan
from robustbench_tc.io import marker
from robustbench_tc.worlds import find

from . import planting

CHECKS = {
    rule.name
    for one in SUITES
    for rule in rules(one)
    if not (rule.is_native or rule.for_ in (more_tools, with_policy))
} - {"gold_is_not_taken", "policy_is_the_worlds", "cascade_is_repaired"}
"""Those of rows with more tools, a policy or several faults have builds of their own (test_registry_types,
test_cascades)."""

ROWS = 20
"""Of a config with faults: every defect finds one among them."""


def scanned(folder: Path) -> LiveScan:
    types = {name: find.find(name) for name in find.BUNDLED}
    return asyncio.run(scan(Folder(folder), types))


def each_is_caught(folder: Path, defects: list[planting.Defect], subtests: pytest.Subtests) -> None:
    """Plants the defects in a build: the check of each has to name its row."""
    where, found = planting.plant(folder, defects), scanned(folder).columns
    for one in defects:
        with subtests.test(one.name):
            verdicts = zip(found["id"], found[one.check], strict=True)
            said = [verdict for id_, verdict in verdicts if id_ == where[one.name]]
            assert said and all(said), f"{one.check} says {said} of {where[one.name]}"


def test_there_is_a_defect_for_every_check() -> None:
    assert {one.check for one in planting.DEFECTS} == CHECKS


def test_a_planted_defect_is_caught_by_name(
    live_build: Path, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    """In the first rows of each config that a defect is planted in: each row is played."""
    folder = tmp_path / "robustbench-tc-live"
    folder.mkdir()
    shutil.copy(live_build / marker.BUILD, folder)
    for config in {one.config for one in planting.DEFECTS}:
        shutil.copytree(live_build / config, folder / config)
        if config != "tasks":
            planting.write(folder, config, planting.rows(folder, config)[:ROWS])
    each_is_caught(folder, planting.DEFECTS, subtests)
