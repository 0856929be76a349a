"""The gate over rows with several faults: green as built, and every planted defect is named."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from robustbench_tc.audits import gate

from .planting import Defect, Row
from .test_checks import each_is_caught

SINGLE, RETRY, TWO, THREE = (f"live_cascade_{letters}" for letters in ("c", "ab", "ac", "abc"))


def _last(row: Row, **changes: Any) -> None:
    row["fault"]["then"][-1].update(changes)


def _at_tool_of_a(row: Row) -> None:
    _last(row, at=row["fault"]["at"])


def _too_late(row: Row) -> None:
    _last(row, at={**row["fault"]["at"], "nth": row["fault"]["at"].get("nth", 1) + 2})


TYPES, MEETS, NEEDS = "fault_is_its_types", "fault_meets_gold", "fault_says_what_its_kind_needs"

DEFECTS = [
    Defect(name, config, check, plant)
    for name, config, check, plant in (
        ("a fault less", THREE, TYPES, lambda r: r["fault"]["then"].pop()),
        ("faults of one that has one", SINGLE, TYPES, lambda r: r["fault"].update(then=[r["fault"].copy()])),
        ("a fault in a further one", TWO, TYPES, lambda r: _last(r, then=[{**r["fault"], "then": []}])),
        ("another text on the retry", RETRY, TYPES, lambda r: r["fault"].update(kind="transient_auth_error")),
        ("a retry that fails before", RETRY, TYPES, lambda r: _last(r, kind=r["fault"]["kind"])),
        ("the retry after the next", RETRY, TYPES, _too_late),
        ("both at once", TWO, TYPES, _at_tool_of_a),
        ("a third that gold never meets", THREE, MEETS, lambda r: _last(r, at={"tool": "*", "nth": 99})),
        ("a third that says too much", THREE, NEEDS, lambda r: _last(r, text="hello")),
        ("a third at a read that needs a write", TWO, "fault_fits_the_call",
         lambda r: _last(r, kind="silent_no_op", at={"read": 1})),
        ("a third that never ends", THREE, "repeat_fits_the_label", lambda r: _last(r, repeat="always")),
        ("a third that is met twice", TWO, "cascade_is_repaired", lambda r: _last(r, repeat=2)),
    )
]  # fmt: skip


def test_a_planted_defect_is_caught_by_its_check(
    cascades: Path, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    each_is_caught(shutil.copytree(cascades, tmp_path / "robustbench-tc-live"), DEFECTS, subtests)


def test_the_gate_is_green_and_runs_every_check_of_them(cascades: Path) -> None:
    pytest.importorskip("great_expectations", reason="needs the extra audit (make env)")
    report = gate.audit(cascades)
    assert [check.id for check in report.blocking] == []
    ran = {check.id: check for check in report.checks}
    repaired = ran["replay.cascade_is_repaired"]
    assert (repaired.status, repaired.applied) == ("passed", 118)
    for id in ("rows.fault_is_its_types", "replay.position_is_decisive", "replay.fault_is_met"):
        assert (ran[id].status, ran[id].applied) == ("passed", 237)
