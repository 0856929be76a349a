"""The gate over a whole live build: the suites, counts, the rebuild; and a release of it from end to end."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from robustbench_tc import api
from robustbench_tc.audits import gate
from robustbench_tc.audits.expectations import live as suites
from robustbench_tc.audits.expectations.live import pinned
from robustbench_tc.audits.folder import Folder
from robustbench_tc.audits.live.scan import LiveScan, scan
from robustbench_tc.audits.report import Check
from robustbench_tc.io import manifest, marker
from robustbench_tc.live_types import type_code
from robustbench_tc.release.diff import diff
from robustbench_tc.release.verify import verify
from robustbench_tc.schema import BUILT_KINDS, loads

from ...released import MOMENT
from . import planting
from .test_checks import CHECKS, scanned

if find_spec("great_expectations") is None:  # only looked for: importing it takes seconds
    pytest.skip("needs the extra audit (make env)", allow_module_level=True)

BY_NAME = {
    "rows.only_tools_come_in",
    "rows.what_comes_in_is_its_types",
    "replay.gold_is_not_taken",
    "replay.cascade_is_repaired",
    "replay.policy_is_the_worlds",
    "rows.policy_is_in_front",
}
"""Checks of rows that are built by name: the bundled build has none."""

PURSE = Path(__file__).parents[2] / "worlds" / "purse.py"


@pytest.fixture(scope="module")
def release(live_build: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundled build behind the real gate."""
    out = tmp_path_factory.mktemp("release") / "robustbench-tc-live"
    api.release(live_build, out, version="1.0.0", created_at=MOMENT)
    return out


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A build of a world of one's own, with two tasks."""
    out = tmp_path_factory.mktemp("own") / "robustbench-tc-live"
    api.build_live(out, worlds=(str(PURSE),))
    return out


def test_a_release_is_audited_and_loads_by_its_name(release: Path) -> None:
    report = json.loads((release / marker.AUDIT).read_bytes())
    assert report["kind"] == "live" and report["passed"]
    ran = {check["id"]: check for check in report["checks"]}
    assert {id for id, check in ran.items() if check["status"] != "passed"} == BY_NAME
    assert {ran[id]["status"] for id in BY_NAME} == {"not_run"}
    assert {f"replay.{name}" for name in ("gold_state", "label_holds", "fault_is_met")} <= set(ran)
    assert "provenance.generations" not in ran and ran["provenance.rows"]["applied"] == 594
    applied = {id.rpartition(".")[2]: check["applied"] for id, check in ran.items()}
    few = {name: applied[name] for name in CHECKS if applied[name] < 20}
    # Two bundled tasks read back what they wrote; nine turns ask, each in a task of its own.
    assert few == {"stale_read_matters": 2, "answers_are_read": 9}
    assert verify(release).intact
    assert not (release / "eval.yaml").exists()  # inspect_ai's reader plays no episodes
    code = (
        "from datasets import load_dataset; "
        "rows = load_dataset('robustbench-tc-live', 'live_silent_no_op', split='test'); "
        "print(len(rows), rows[0]['id']); "
        "print(load_dataset('robustbench-tc-live', split='test')[0]['id'])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=release.parent, capture_output=True, text=True)
    assert done.stdout.split() == ["40", "orders_1::live_silent_no_op", "orders_1::clean"], done.stderr


def test_the_manifest_and_the_card_say_what_the_files_hold(release: Path) -> None:
    frozen = manifest.read_manifest(release)
    assert frozen.kind == "robustbench-tc-live" and frozen.rows == pinned("bundled")
    card = (release / "README.md").read_text()
    assert "| tasks | orders | 20 | | |" in card
    labels = [
        row["label"] for row in planting.rows(release, "live_duplicate_effect") if row["world"] == "orders"
    ]
    counts = f"{labels.count('repair')} | {labels.count('report')} |"
    assert f"| live_duplicate_effect | orders | {len(labels)} | {counts}" in card
    assert "Berkeley" not in card  # only where its rows are in
    for kind in BUILT_KINDS:
        assert f"| {kind} |" in card
    croissant = json.loads((release / "croissant.json").read_text())
    assert croissant["name"] == "robustbench-tc-live"
    assert croissant["recordSet"][0]["name"] == "tasks"


def test_the_pins_are_the_bundled_builds_counts(live_build: Path) -> None:
    assert pinned("bundled") == {
        config: len(planting.rows(live_build, config)) for config in ("tasks", *map(type_code, BUILT_KINDS))
    }
    assert pinned("own") == {}
    assert sum(pinned("lite").values()) == 396
    assert pinned("lite", 1) == {}


def test_a_diff_of_two_seeds_is_a_minor_step(live_build: Path, tmp_path: Path) -> None:
    api.build_live(tmp_path / "robustbench-tc-live", seed=1, kinds=("silent_no_op",))
    kept = shutil.copytree(live_build, tmp_path / "first")
    for folder in [path for path in kept.iterdir() if path.is_dir()]:
        if folder.name not in ("tasks", "live_silent_no_op"):
            shutil.rmtree(folder)
    found = diff(kept, tmp_path / "robustbench-tc-live")
    tasks, faults = found.configs
    assert tasks.config == "tasks" and not tasks.moves_scores and tasks.changed[0].fields == ("seed",)
    assert faults.moves_scores and found.step == "minor"


# --- the folder ---------------------------------------------------------------------------------------


def reported(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    def do(folder: Path) -> None:
        report = json.loads((folder / marker.BUILD).read_text())
        change(report)
        (folder / marker.BUILD).write_text(json.dumps(report))

    return do


def dropped(folder: Path) -> None:
    planting.write(folder, "live_stale_read", planting.rows(folder, "live_stale_read")[:-1])


def twice(folder: Path) -> None:
    found = planting.rows(folder, "live_stale_read")
    planting.write(folder, "live_stale_read", [*found[:-1], found[0]])


def asked_twice(folder: Path) -> None:
    found = planting.rows(folder, "tasks")
    found[1] = {**found[0], "id": found[1]["id"], "clean_id": found[1]["clean_id"]}
    planting.write(folder, "tasks", found)


def another_column(folder: Path) -> None:
    import pyarrow.parquet as pq

    (path,) = (folder / "live_stale_read").glob("*.parquet")
    table = pq.read_table(path)
    pq.write_table(table.rename_columns([*table.column_names[:-1], "notes"]), path)


FOLDERS: dict[str, tuple[str, Callable[[Path], Any]]] = {
    "a row dropped": ("configs.rows_as_pinned", dropped),
    "a row dropped, by the report": ("configs.rows_as_reported", dropped),
    "a row dropped, by the tasks": ("configs.accounted", dropped),
    "a config dropped": ("configs.splits", lambda f: shutil.rmtree(f / "live_stale_read")),
    "a strange config": ("configs.known", lambda f: shutil.copytree(f / "tasks", f / "live_gremlin")),
    "a skip without a reason": ("configs.accounted", reported(lambda r: r["skipped"][0].update(reason=""))),
    "a row twice": ("rows.id_is_unique", twice),
    "a task twice": ("rows.no_task_stands_twice", asked_twice),
    "another column": ("columns.are_the_contracts", another_column),
}


@pytest.fixture(scope="module")
def light() -> Callable[[Path], LiveScan]:
    """A pass that knows no world and replays nothing: the suites of the folder do not look at it."""
    import asyncio

    return lambda folder: asyncio.run(scan(Folder(folder), {}))


@pytest.mark.parametrize("name", FOLDERS)
def test_a_defect_of_the_folder_is_caught_by_name(
    live: Path, name: str, light: Callable[[Path], LiveScan]
) -> None:
    check, plant = FOLDERS[name]
    plant(live)
    build = Folder(live)
    assert by_id(suites.suites(build, light(live)), check).status == "failed"


def by_id(checks: list[Check], id: str) -> Check:
    return next(check for check in checks if check.id == id)


def test_a_row_that_fails_is_named_by_its_check(live: Path) -> None:
    for path in live.glob("live_*"):
        if path.name != "live_silent_no_op":
            shutil.rmtree(path)
    found = planting.rows(live, "live_silent_no_op")
    row = next(row for row in found if row["label"] == "report")
    row["label"] = "repair"
    planting.write(live, "live_silent_no_op", found)
    failed = by_id(suites.suites(Folder(live), scanned(live)), "rows.repeat_fits_the_label")
    assert failed.status == "failed" and failed.failures[0].where == row["id"]


def test_without_its_world_no_row_counts_as_replayed(
    live_build: Path, light: Callable[[Path], LiveScan]
) -> None:
    checks = suites.suites(Folder(live_build), light(live_build))
    assert by_id(checks, "replay.world_is_known").status == "failed"
    replayed = [check for check in checks if check.id.startswith("replay.")]
    assert len(replayed) > 5
    assert all(check.status == "not_run" for check in replayed if check.id != "replay.world_is_known")


# --- worlds of one's own ------------------------------------------------------------------------------


def test_ones_own_world_is_audited_with_its_file_and_not_without(own: Path, tmp_path: Path) -> None:
    report = gate.audit(own, worlds=(str(PURSE),))
    assert [check.id for check in report.blocking] == []
    assert by_id(list(report.checks), "configs.rows_as_pinned").status == "not_run"
    without = gate.audit(own)
    assert "replay.world_is_known" in [check.id for check in without.blocking]
    other = tmp_path / "purse.py"
    other.write_text(PURSE.read_text() + "\n# another file\n")
    changed = gate.audit(own, worlds=(str(other),))
    assert "is not the file" in by_id(list(changed.checks), "replay.world_is_known").failures[0].what


def test_an_edit_that_fits_every_check_is_not_what_the_rebuild_has(own: Path, tmp_path: Path) -> None:
    """Another repeat is as good a fault: only building again shows that it was not drawn."""
    folder = shutil.copytree(own, tmp_path / "robustbench-tc-live")
    config = "live_transient_timeout"
    found = planting.rows(folder, config)
    found[0]["fault"]["repeat"] = 3
    planting.write(folder, config, found)
    report = loads((folder / marker.BUILD).read_text())
    report["checksums"][config] = marker.sha256(next((folder / config).glob("*.parquet")))
    report |= {"files": marker.hashes(folder, but=marker.BUILD), "own_sha256": ""}
    (folder / marker.BUILD).write_bytes(marker.sealed(report))
    blocking = {check.id: check for check in gate.audit(folder, worlds=(str(PURSE),)).blocking}
    assert found[0]["id"] in [failure.where for failure in blocking["provenance.rows"].failures]
