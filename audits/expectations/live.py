"""The suites of a live build: columns, configs, rows by themselves and in pairs, and what a replay gave."""

from pathlib import Path
from typing import Any

import msgspec

from robustbench_tc.live_types import (
    FAULT_TYPES,
    by_name,
    config_of,
    registry_types,
    type_code,
    type_codes,
)
from robustbench_tc.schema import TASKS, LiveRow

from ..checks import native, rules
from ..folder import Folder
from ..live.faults import faulty
from ..live.replay import of_some
from ..live.rows import beside_clean, more_tools, of_a_fault, with_policy
from ..live.scan import SUITES, LiveScan
from ..report import Check, without
from .gx import run, run_over
from .layout import Config, contract, of_shards, skips_of

CONFIGS = (TASKS, *type_codes())

PINS = Path(__file__).parents[1] / "live" / "pins.json"
"""Profile → config → rows that a build of it has."""

native(
    "live_rows",
    "rows.id_is_unique",
    "An id that stands twice is answered once and counted twice.",
    "ExpectColumnValuesToBeUnique",
    column="id",
)
native(
    "live_rows",
    "rows.no_task_stands_twice",
    "Two clean rows that ask the same are one sample that weighs twice.",
    "ExpectColumnValuesToBeUnique",
    column="task",
)


def suites(folder: Folder, scan: LiveScan) -> list[Check]:
    """Every suite over one pass."""
    of_rows = [found for one in SUITES for found in run(one, scan.columns)]
    # A check of some kinds only may be left out where a build has no row of them.
    some = (beside_clean, of_a_fault, more_tools, with_policy, faulty, of_some)
    of_some_rows = {rule.id for one in SUITES for rule in rules(one) if rule.for_ in some}
    allowed = "the build has no row of a kind that it is about"
    return [
        *run_over("live_columns", of_shards(folder, folder.configs(), contract(LiveRow))),
        *_configs_suite(folder, scan),
        *(
            msgspec.structs.replace(one, may_be_left_out=allowed)
            if one.status == "not_run" and one.id in of_some_rows and TASKS in scan.present
            else one
            for one in of_rows
        ),
    ]


def pinned(profile: str, seed: object = 0) -> dict[str, int]:
    """Config → rows that a build of the profile has; {} where that is not known beforehand.

    Which fault a task of BFCL's meets is drawn, so the counts of `lite` and `full` are those of seed 0.
    """
    pins = msgspec.json.decode(PINS.read_bytes(), type=dict[str, dict[str, int]])
    return pins.get(profile, {}) if profile == "bundled" or seed == 0 else {}


def _configs_suite(folder: Folder, scan: LiveScan) -> list[Check]:
    there, profile = folder.configs(), str(folder.report.get("profile"))
    pins = pinned(profile, folder.report.get("seed"))
    said = {config_of(code): _of(dict, counts) for code, counts in folder.report_field("rows").items()}
    skips, tasks = skips_of(folder), scan.present.get(TASKS, set())
    found = []
    built = [type_code(kind) for kind in _of(list, folder.report.get("kinds")) if kind in FAULT_TYPES]
    built += [type_code(name) for name in _of(list, folder.report.get("types")) if name in registry_types()]
    for config in dict.fromkeys((TASKS, *pins, *said, *there, *built)):
        is_pinned = pins and config not in by_name()  # no profile has those
        found.append(
            Config(
                folder,
                config,
                "" if config in CONFIGS else "no config of the live dataset",
                None if config in built and not pins.get(config) else config not in there,
                rows=scan.counts[config],
                reported=sum(n for n in said.get(config, {}).values() if isinstance(n, int)),
                built=scan.counts[config] if is_pinned else None,
                stated=pins.get(config, 0) if is_pinned else None,
                what="tasks",
                clean=tasks if config in built else None,
                present=scan.present.get(config, set()),
                skips=skips.get(config, {}),
            )
        )
    checks = run_over("live_configs", found)
    reason = f"no counts are known beforehand for profile {profile!r}, seed {folder.report.get('seed')}"
    allowed = "worlds of one's own, and parts of the dataset, have no counts beforehand"
    return checks if pins else without(checks, "configs.rows_as_pinned", reason, allowed)


def _of(kind: Any, value: Any) -> Any:
    """A value of that kind, whatever a report holds: an empty one for others."""
    return value if isinstance(value, kind) else kind()
