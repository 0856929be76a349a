"""Digests of rows that ship with the package: what a build holds, for who has none of its sources.

`digests.json`, of the versions that this package builds: of a benchmark the clean rows and the known issues
per profile, of the live dataset the tasks per profile and world, of training data every row, the report and
the kept answers. `make digests` writes it again (docs/releases.md).
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from robustbench_tc.builders import errata_files
from robustbench_tc.errors import UserError
from robustbench_tc.io import marker
from robustbench_tc.schema import TASKS

from ..folder import Folder
from ..report import NOTHING_THERE, Check, Failure, check, not_run
from .files import GENERATIONS

PINNED = Path(__file__).parents[1] / "digests.json"

TABLES = ("clean", "known_issues")
"""What a benchmark takes from its sources; everything else it makes of these."""

OF_A_TRAINING_BUILD = (
    *("form", "sources", "types", "not_generated", "seed", "ratio", "alpha", "copies", "counterbalance"),
    *("retry_probability", "retry_position", "leak_check"),
)
"""Fields of a training build's report that its rows are a function of, beside its configs."""

OF_THE_WRITER = ("pyarrow", "files", "own_sha256")
"""Fields of a build's report that say how it was written and not what it holds."""

Column = tuple[str, str]
"""Name and type."""

_WHAT = (
    "provenance.clean_rows",
    "Clean rows, known issues, live tasks and training rows have the digests that ship with the package.",
)


class Pinned(msgspec.Struct, frozen=True):
    """The digests of one kind of build."""

    version: str
    """Of the rows."""
    builds: dict[str, dict[str, str]]
    """`build_of` → table, world, split or file → digest."""
    sources: tuple[str, ...] = ()
    """Of a benchmark: a source that was added has no digest, the rebuild holds its rows."""


@cache
def pinned() -> dict[str, Pinned]:
    """By kind of build."""
    return msgspec.json.decode(PINNED.read_bytes(), type=dict[str, Pinned])


def build_of(folder: Folder) -> str:
    """Which digests count for a build: those of its profile, of training data those of its settings."""
    if folder.kind != "training":
        return str(folder.report.get("profile"))
    rows = folder.report.get("rows")
    settings = [folder.report.get(name) for name in OF_A_TRAINING_BUILD]
    settings += [folder.report.get("prompt_length"), list(rows) if isinstance(rows, dict) else rows]
    return f"{folder.report.get('form')}-{hashlib.sha256(msgspec.json.encode(settings)).hexdigest()[:16]}"


def digest(columns: Sequence[Column], rows: Iterable[Mapping[str, Any]]) -> str:
    """sha256 over (name, type) of the columns and every cell as JSON: 85 is not 85.0, true is not 1."""
    total = hashlib.sha256(msgspec.json.encode(columns))
    for row in rows:
        total.update(msgspec.json.encode([row.get(name) for name, _ in columns]) + b"\n")
    return total.hexdigest()


def found_digests(folder: Folder) -> dict[str, str]:
    """The digests of a build's own rows. What has no row has no digest."""
    if folder.kind == "live":
        return task_digests(_columns(folder, TASKS), folder.rows(TASKS))
    if folder.kind == "benchmark":
        return _of_benchmark(folder)
    report = {name: value for name, value in folder.report.items() if name not in OF_THE_WRITER}
    return {
        **{
            f"{config}/{split}": digest(_columns(folder, config, split), folder.rows(config, split))
            for config in folder.configs()
            for split in folder.splits(config)
        },
        marker.BUILD: hashlib.sha256(msgspec.json.encode(report)).hexdigest(),
        GENERATIONS: folder.sha256(GENERATIONS) or "",
    }


def task_digests(columns: Sequence[Column], rows: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """By world, of the rows of `tasks`; their seed is the build's and no part of a task."""
    of_a_task = [column for column in columns if column[0] != "seed"]
    by_world: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        by_world.setdefault(str(row.get("world")), []).append(row)
    return {world: digest(of_a_task, tasks) for world, tasks in sorted(by_world.items())}


def _of_benchmark(folder: Folder) -> dict[str, str]:
    """Of the rows of sources with a digest; golden answers that the build's errata correct as they were."""
    sources = pinned()["benchmark"].sources
    known = _errata(folder)
    issues = folder.rows("known_issues") if known and "known_issues" in folder.configs() else ()
    unstated = {str(row.get("clean_id")) for row in issues if row.get("status") == "flagged"}
    return {
        table: digest(
            _columns(folder, table),
            errata_files.reverted(
                (row for row in folder.rows(table) if row.get("source") in sources),
                known if table == "clean" else (),
                unstated,
            ),
        )
        for table in TABLES
        if table in folder.configs()
    }


def _columns(folder: Folder, config: str, split: str = "test") -> Sequence[Column]:
    return next(iter(folder.columns(config, split).values()), [])


def _errata(folder: Folder) -> tuple[errata_files.Erratum, ...]:
    if folder.there.get(errata_files.NAME) != "file":
        return ()
    try:
        return errata_files.read_errata(folder.path / errata_files.NAME)
    except UserError as error:
        folder.unreadable.append(Failure(errata_files.NAME, str(error).replace(f"{folder.path}/", "")))
        return ()


def shipped_check(folder: Folder, *, origin: str) -> Check:
    """The digests of a build against the shipped ones. May be left out only where its `origin` speaks."""
    if folder.is_own and folder.kind == "benchmark":
        return not_run(*_WHAT, "own cases: nobody but their maker has them", NOTHING_THERE)
    shipped = pinned()[folder.kind]
    which = build_of(folder)
    wanted = shipped.builds.get(which)
    if wanted is None:
        return not_run(
            *_WHAT,
            f"no digest ships for {'these settings' if folder.kind == 'training' else f'profile {which}'}",
            may_be_left_out=f"the clean rows were read from {origin}" if origin else None,
        )
    found = found_digests(folder)
    failures = [
        Failure(
            name,
            f"its rows have the digest {found.get(name, 'none')[:12]}, not {wanted.get(name, 'none')[:12]}",
        )
        for name in dict.fromkeys((*wanted, *found))
        if found.get(name) != wanted.get(name)
    ]
    if folder.kind == "benchmark" and not origin:
        others = {str(row.get("source")) for table in found for row in folder.rows(table)}
        failures += [
            Failure(name, "rows of this source: no digest of them ships, and no sources are at hand")
            for name in sorted(others - set(shipped.sources))
        ]
    corrected = len(_errata(folder))
    said = f"but for {corrected} golden answers that its errata correct" if corrected else ""
    return check(*_WHAT, len(wanted), failures, reason=said)
