"""Digests of the clean rows that ship with the package: what the rows are, for who has no sources.

`clean_digests.json`: dataset version → profile → table → sha256 over its canonical cells in row order.
`scripts/pin_clean_rows.py` writes it from builds out of the pinned sources.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from robustbench_tc.errors import UserError
from robustbench_tc.io import errata

from ..folder import Folder
from ..report import Check, Failure, check, not_run

PINNED = Path(__file__).parents[1] / "clean_digests.json"

TABLES = ("clean", "known_issues")
"""What a build takes from its sources; everything else it makes of these."""

_WHAT = (
    "provenance.clean_rows",
    "The clean rows and the known issues are those of the pinned sources, by the digest that ships.",
)


def digest(columns: Sequence[tuple[str, str]], rows: Iterable[Mapping[str, Any]]) -> str:
    """sha256 over (name, type) of the columns and every cell as JSON: 85 is not 85.0, true is not 1."""
    total = hashlib.sha256(msgspec.json.encode(columns))
    for row in rows:
        total.update(msgspec.json.encode([row.get(name) for name, _ in columns]) + b"\n")
    return total.hexdigest()


@cache
def pinned() -> dict[str, dict[str, dict[str, str]]]:
    return msgspec.json.decode(PINNED.read_bytes(), type=dict[str, dict[str, dict[str, str]]])


def found_digests(folder: Folder) -> dict[str, str]:
    """The digests of a build's own tables, golden answers that its errata correct as they were before.

    A table without a row has no folder and no digest.
    """
    known = _errata(folder)
    return {
        table: digest(
            next(iter(folder.columns(table, "test").values()), []),
            errata.reverted(folder.rows(table), known if table == "clean" else ()),
        )
        for table in TABLES
        if table in folder.configs()
    }


def _errata(folder: Folder) -> tuple[errata.Erratum, ...]:
    if folder.there.get(errata.NAME) != "file":
        return ()
    try:
        return errata.read(folder.path / errata.NAME)
    except UserError as error:
        folder.unreadable.append(Failure(errata.NAME, str(error).replace(f"{folder.path}/", "")))
        return ()


def clean_rows_check(folder: Folder, *, origin: str, released: bool) -> Check:
    """The digests against the shipped ones. May be left out only where the sources speak.

    A release has a version of its own: its rows are those of the newest dataset version.
    """
    profile = str(folder.report.get("profile"))
    version = list(pinned())[-1] if released else str(folder.report.get("dataset_version"))
    wanted = pinned().get(version, {}).get(profile)
    if wanted is None:
        return not_run(
            *_WHAT,
            f"no digest ships for dataset version {version}, profile {profile}",
            may_be_left_out=f"the clean rows were read from {origin}" if origin else None,
        )
    found = found_digests(folder)
    failures = [
        Failure(
            table,
            f"its rows have the digest {found.get(table, 'none')[:12]}, not {wanted.get(table, 'none')[:12]}",
        )
        for table in TABLES
        if found.get(table) != wanted.get(table)
    ]
    corrected = len(_errata(folder))
    said = f"but for {corrected} golden answers that its errata correct" if corrected else ""
    return check(*_WHAT, len(TABLES), failures, reason=said)
