"""The suites of a live build: columns, configs, rows by themselves and in pairs, and what a replay gave."""

from pathlib import Path
from typing import Any

import msgspec

from robustbench_tc.live_types import config_of, registry_codes, registry_types, type_code, type_codes
from robustbench_tc.schema import KINDS, TASKS, LiveRow, arrow_schema

from ..folder import Folder, type_name
from ..live import faults, registry, texts
from ..live.scan import OF_A_ROW, OF_THE_REPLAY, LiveScan
from ..report import Check
from .configs import _splits
from .gx import Expectation, Suites, frame, run

SUITES = Suites("live")

CONFIGS = (TASKS, *type_codes())

PINS = Path(__file__).parents[1] / "live" / "pins.json"
"""Profile → config → rows that a build of it has."""


def suites(folder: Folder, scan: LiveScan) -> list[Check]:
    """Every suite over one pass."""
    return [
        *_columns_suite(folder),
        *_configs_suite(folder, scan),
        *_rows_suite(scan),
        *_replay_suite(scan),
    ]


def pinned(profile: str, seed: object = 0) -> dict[str, int]:
    """Config → rows that a build of the profile has; {} where that is not known beforehand.

    Which fault a task of BFCL's meets is drawn, so the counts of `lite` and `full` are those of seed 0.
    """
    pins = msgspec.json.decode(PINS.read_bytes(), type=dict[str, dict[str, int]])
    return pins.get(profile, {}) if profile == "bundled" or seed == 0 else {}


def _columns_suite(folder: Folder) -> list[Check]:
    wanted = [f"{field.name} {type_name(field.type)}" for field in arrow_schema(LiveRow)]
    columns: dict[str, list[Any]] = {name: [] for name in ("id", "expected", "found")}
    for config in folder.configs():
        for shard, found in folder.columns(config, "test").items():
            for place in range(max(len(wanted), len(found))):
                columns["id"].append(f"{config}/{shard}.{place}")
                columns["expected"].append(wanted[place] if place < len(wanted) else "(none)")
                columns["found"].append(" ".join(found[place]) if place < len(found) else "(none)")
    return run("live_columns", frame(columns), _COLUMNS_EXPECTATIONS)


def _configs_suite(folder: Folder, scan: LiveScan) -> list[Check]:
    there, profile = folder.configs(), str(folder.report.get("profile"))
    pins = pinned(profile, folder.report.get("seed"))
    said = {config_of(code): _dict(counts) for code, counts in _dict(folder.report.get("rows")).items()}
    labels = {config_of(code): _dict(one) for code, one in _dict(folder.report.get("labels")).items()}
    skips = _skips(folder.report.get("skipped"))
    names = "id known splits rows reported worlds labels accounted built stated"
    data: dict[str, list[Any]] = {name: [] for name in names.split()}
    built = [type_code(kind) for kind in _list(folder.report.get("kinds")) if kind in KINDS]
    built += [type_code(name) for name in _list(folder.report.get("types")) if name in registry_types()]
    for config in dict.fromkeys((TASKS, *pins, *said, *there, *built)):
        found = scan.labels.get(config, {})
        by_world = {world: sum(counts.values()) for world, counts in found.items()}
        skipped = config not in there and config in built and not pins.get(config)
        data["id"].append(config)
        data["known"].append("" if config in CONFIGS else "no config of the live dataset")
        data["splits"].append(
            _splits(folder, config) if config in there else None if skipped else "the config is missing"
        )
        data["rows"].append(scan.counts[config])
        data["reported"].append(sum(n for n in said.get(config, {}).values() if isinstance(n, int)))
        data["worlds"].append(_other(by_world, said.get(config, {})))
        has_labels = config != TASKS and config not in registry_codes()
        data["labels"].append(_labels(found, labels.get(config, {})) if has_labels else None)
        data["accounted"].append(_accounted(scan, config, skips) if config in built else None)
        # Registry types are built only when they are named: no profile has them.
        is_pinned = pins and config not in registry_codes()
        data["built"].append(scan.counts[config] if is_pinned else None)
        data["stated"].append(pins.get(config, 0) if is_pinned else None)
    checks = run("live_configs", frame(data), _CONFIGS_EXPECTATIONS)
    if pins:
        return checks
    at = next(place for place, one in enumerate(checks) if one.id == "configs.rows_as_pinned")
    checks[at] = msgspec.structs.replace(
        checks[at],
        status="not_run",
        reason=f"no counts are known beforehand for profile {profile!r}, seed {folder.report.get('seed')}",
        may_be_left_out="worlds of one's own, and parts of the dataset, have no counts beforehand",
    )
    return checks


def _other(found: dict[str, int], reported: dict[str, Any]) -> str:
    """What the report counts otherwise."""
    said = {name: number for name, number in reported.items() if number}
    other = sorted(name for name in {*found, *said} if found.get(name) != said.get(name))
    return f"{other[0]}: {found.get(other[0], 0)} rows, reported {said.get(other[0], 0)}" if other else ""


def _labels(found: dict[str, dict[str, int]], reported: dict[str, Any]) -> str:
    """What the report counts otherwise, by label and world."""
    counted = {f"{label}, {world}": n for world, labels in found.items() for label, n in labels.items()}
    said = {f"{label}, {world}": n for label, one in reported.items() for world, n in _dict(one).items()}
    return _other(counted, said)


def _skips(skipped: Any) -> dict[str, dict[str, str]]:
    """Config → clean id → reason."""
    found: dict[str, dict[str, str]] = {}
    for skip in skipped if isinstance(skipped, list) else ():
        if isinstance(skip, dict):
            by_task = found.setdefault(str(skip.get("type_code")), {})
            by_task[str(skip.get("clean_id"))] = str(skip.get("reason") or "")
    return found


def _accounted(scan: LiveScan, config: str, skips: dict[str, dict[str, str]]) -> str:
    """Whether every task is a row of the config, or a skip with a reason."""
    rows = scan.present.get(config, set())
    skipped = {clean_id for clean_id, reason in skips.get(config, {}).items() if reason.strip()}
    if both := rows & skipped:
        return f"{len(both)} tasks are both rows and skips"
    missing = set(scan.tasks) - rows - skipped
    return f"{len(missing)} tasks are neither rows nor skips with a reason" if missing else ""


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _rows_suite(scan: LiveScan) -> list[Check]:
    return _of_no_row(run("live_rows", frame(scan.columns), _ROWS_EXPECTATIONS), scan)


def _replay_suite(scan: LiveScan) -> list[Check]:
    columns = {name: scan.columns[name] for name in ("id", *OF_THE_REPLAY)}
    return _of_no_row(run("live_replay", frame(columns), _REPLAY_EXPECTATIONS), scan)


def _of_no_row(checks: list[Check], scan: LiveScan) -> list[Check]:
    """A check of some kinds only may be left out where a build has no row of them."""
    allowed = "the build has no row of a kind that it is about"
    return [
        msgspec.structs.replace(one, may_be_left_out=allowed)
        if one.status == "not_run" and one.id in _OF_SOME and scan.tasks
        else one
        for one in checks
    ]


_OF_SOME = {
    *(f"rows.{name}" for name in (*faults.PROTECTS, *registry.PROTECTS)),
    *(f"rows.{name}" for name in ("anchored", "equals_its_clean_row", "says_its_fault")),
    *(f"replay.{name}" for name in ("label_holds", "fault_is_met", "leaf_is_false", "position_is_decisive")),
    *(f"replay.{name}" for name in ("stale_read_matters", "prerequisite_makes_sense", "answers_are_read")),
    *(f"replay.{name}" for name in ("reads_change_nothing", "idempotence_is_true", "gold_is_not_taken")),
}
"""Checks of rows with faults or with more tools, or of tasks that read or write."""


_COLUMNS_EXPECTATIONS: tuple[Expectation, ...] = (
    SUITES.compares(
        "columns",
        "are_the_contracts",
        "Every config has the same columns in the same order with the same types: one reader reads them.",
        ("expected", "found"),
        lambda f: f["expected"] == f["found"],
    ),
)


_CONFIGS_EXPECTATIONS: tuple[Expectation, ...] = (
    SUITES.holds("configs", "known", "No folder pretends to be a config: `load_dataset` would offer it."),
    SUITES.holds("configs", "splits", "Every config has the one split test, in a complete set of shards."),
    SUITES.compares(
        "configs",
        "rows_as_reported",
        "The build report is what the card prints: its counts are those of the files.",
        ("rows", "reported"),
        lambda f: f["rows"] == f["reported"],
    ),
    SUITES.holds("configs", "worlds", "The report counts the rows of every world as the files do."),
    SUITES.holds("configs", "labels", "The report counts the rows of every label as the files do."),
    SUITES.holds(
        "configs",
        "accounted",
        "Nothing is silently skipped: every pair of task and kind is a row, or a skip with its reason.",
    ),
    SUITES.compares(
        "configs",
        "rows_as_pinned",
        "The number of rows of every kind is the one that is known beforehand: none went missing.",
        ("built", "stated"),
        lambda f: (f["built"] == f["stated"]) | f["built"].isna(),
    ),
)


_ROWS_EXPECTATIONS: tuple[Expectation, ...] = (
    *(SUITES.holds("rows", name, protects) for name, protects in OF_A_ROW.items()),
    *(SUITES.holds("hygiene", name, protects) for name, protects in texts.PROTECTS.items()),
    SUITES.native(
        "rows",
        "id_is_unique",
        "An id that stands twice is answered once and counted twice.",
        "ExpectColumnValuesToBeUnique",
        column="id",
    ),
    SUITES.native(
        "rows",
        "no_task_stands_twice",
        "Two clean rows that ask the same are one sample that weighs twice.",
        "ExpectColumnValuesToBeUnique",
        column="task",
    ),
)


_REPLAY_EXPECTATIONS = tuple(
    SUITES.holds("replay", name, protects) for name, protects in OF_THE_REPLAY.items()
)
