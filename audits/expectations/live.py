"""The suites of a live build: columns, configs, rows by themselves and in pairs, and what a replay gave."""

from pathlib import Path
from typing import Any

import msgspec

from robustbench_tc.live_types import config_of, registry_codes, registry_types, type_code, type_codes
from robustbench_tc.schema import KINDS, TASKS, LiveRow, arrow_schema

from ..folder import Folder, type_name
from ..live import faults, registry, texts
from ..live.scan import OF_A_ROW, OF_THE_REPLAY, LiveScan
from ..report import Check, without
from .configs import accounted, skips_of, splits
from .gx import Expectation, all_hold, compares, frame, frame_of, holds, native, run, same_columns

CONFIGS = (TASKS, *type_codes())

PINS = Path(__file__).parents[1] / "live" / "pins.json"
"""Profile → config → rows that a build of it has."""


def suites(folder: Folder, scan: LiveScan) -> list[Check]:
    """Every suite over one pass."""
    replayed = {name: scan.columns[name] for name in ("id", *OF_THE_REPLAY)}
    return [
        *_columns_suite(folder),
        *_configs_suite(folder, scan),
        *_of_no_row(run("live_rows", frame(scan.columns), _ROWS_EXPECTATIONS), scan),
        *_of_no_row(run("live_replay", frame(replayed), _REPLAY_EXPECTATIONS), scan),
    ]


def pinned(profile: str, seed: object = 0) -> dict[str, int]:
    """Config → rows that a build of the profile has; {} where that is not known beforehand.

    Which fault a task of BFCL's meets is drawn, so the counts of `lite` and `full` are those of seed 0.
    """
    pins = msgspec.json.decode(PINS.read_bytes(), type=dict[str, dict[str, int]])
    return pins.get(profile, {}) if profile == "bundled" or seed == 0 else {}


def _columns_suite(folder: Folder) -> list[Check]:
    wanted = [f"{field.name} {type_name(field.type)}" for field in arrow_schema(LiveRow)]
    places = (
        (f"{config}/{shard}", wanted, [*map(" ".join, found)])
        for config in folder.configs()
        for shard, found in folder.columns(config, "test").items()
    )
    protects = (
        "Every config has the same columns in the same order with the same types: one reader reads them."
    )
    return same_columns("live_columns", protects, places)


def _configs_suite(folder: Folder, scan: LiveScan) -> list[Check]:
    there, profile = folder.configs(), str(folder.report.get("profile"))
    pins = pinned(profile, folder.report.get("seed"))
    said = {config_of(code): _dict(counts) for code, counts in folder.said("rows").items()}
    labels = {config_of(code): _dict(one) for code, one in folder.said("labels").items()}
    skips, tasks = skips_of(folder), scan.present.get(TASKS, set())
    rows = []
    built = [type_code(kind) for kind in _list(folder.report.get("kinds")) if kind in KINDS]
    built += [type_code(name) for name in _list(folder.report.get("types")) if name in registry_types()]
    for config in dict.fromkeys((TASKS, *pins, *said, *there, *built)):
        found = scan.labels.get(config, {})
        by_world = {world: sum(counts.values()) for world, counts in found.items()}
        missing = None if config in built and not pins.get(config) else "the config is missing"
        has_labels = config != TASKS and config not in registry_codes()
        # Registry types are built only when they are named: no profile has them.
        is_pinned = pins and config not in registry_codes()
        present, left_out = scan.present.get(config, set()), skips.get(config, {})
        rows.append(
            {
                "id": config,
                "known": "" if config in CONFIGS else "no config of the live dataset",
                "splits": splits(folder, config) if config in there else missing,
                "rows": scan.counts[config],
                "reported": sum(n for n in said.get(config, {}).values() if isinstance(n, int)),
                "worlds": _other(by_world, said.get(config, {})),
                "labels": _labels(found, labels.get(config, {})) if has_labels else None,
                "accounted": accounted("tasks", tasks, present, left_out) if config in built else None,
                "built": scan.counts[config] if is_pinned else None,
                "stated": pins.get(config, 0) if is_pinned else None,
            }
        )
    names = "id known splits rows reported worlds labels accounted built stated".split()
    checks = run("live_configs", frame_of(names, rows), _CONFIGS_EXPECTATIONS)
    reason = f"no counts are known beforehand for profile {profile!r}, seed {folder.report.get('seed')}"
    allowed = "worlds of one's own, and parts of the dataset, have no counts beforehand"
    return checks if pins else without(checks, "configs.rows_as_pinned", reason, allowed)


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


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _of_no_row(checks: list[Check], scan: LiveScan) -> list[Check]:
    """A check of some kinds only may be left out where a build has no row of them."""
    allowed = "the build has no row of a kind that it is about"
    return [
        msgspec.structs.replace(one, may_be_left_out=allowed)
        if one.status == "not_run" and one.id in _OF_SOME and TASKS in scan.present
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


_CONFIGS_EXPECTATIONS: tuple[Expectation, ...] = (
    holds("configs", "known", "No folder pretends to be a config: `load_dataset` would offer it."),
    holds("configs", "splits", "Every config has the one split test, in a complete set of shards."),
    compares(
        "configs",
        "rows_as_reported",
        "The build report is what the card prints: its counts are those of the files.",
        ("rows", "reported"),
        lambda f: f["rows"] == f["reported"],
    ),
    holds("configs", "worlds", "The report counts the rows of every world as the files do."),
    holds("configs", "labels", "The report counts the rows of every label as the files do."),
    holds(
        "configs",
        "accounted",
        "Nothing is silently skipped: every pair of task and kind is a row, or a skip with its reason.",
    ),
    compares(
        "configs",
        "rows_as_pinned",
        "The number of rows of every kind is the one that is known beforehand: none went missing.",
        ("built", "stated"),
        lambda f: (f["built"] == f["stated"]) | f["built"].isna(),
    ),
)


_ROWS_EXPECTATIONS: tuple[Expectation, ...] = (
    *all_hold("rows", OF_A_ROW),
    *all_hold("hygiene", texts.PROTECTS),
    native(
        "rows",
        "id_is_unique",
        "An id that stands twice is answered once and counted twice.",
        "ExpectColumnValuesToBeUnique",
        column="id",
    ),
    native(
        "rows",
        "no_task_stands_twice",
        "Two clean rows that ask the same are one sample that weighs twice.",
        "ExpectColumnValuesToBeUnique",
        column="task",
    ),
)


_REPLAY_EXPECTATIONS = tuple(all_hold("replay", OF_THE_REPLAY))
