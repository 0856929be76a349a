"""Digests of the clean rows that ship with the package: what the rows are, for who has no sources.

`clean_digests.json`: dataset version → its sources, and profile → table → sha256 over the canonical cells of
the rows of these sources, in row order. A source that was added has no digest: the rebuild holds its rows.
`scripts/pin_clean_rows.py` writes it from builds out of the pinned sources.
"""

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from robustbench_tc.errors import UserError
from robustbench_tc.io import errata

from ..folder import Folder
from ..own_tools import NOTHING_THERE, is_own
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


class Pinned(msgspec.Struct, frozen=True):
    """The digests of one dataset version."""

    sources: tuple[str, ...]
    profiles: dict[str, dict[str, str]]
    """Profile → table → digest."""


@cache
def pinned() -> dict[str, Pinned]:
    """By dataset version, the newest one last."""
    return msgspec.json.decode(PINNED.read_bytes(), type=dict[str, Pinned])


def found_digests(folder: Folder, sources: Collection[str]) -> dict[str, str]:
    """The digests of a build's own rows of `sources`; golden answers that its errata correct as they were.

    A table without a row has no folder and no digest.
    """
    known = _errata(folder)
    issues = folder.rows("known_issues") if known and "known_issues" in folder.configs() else ()
    unstated = {str(row.get("clean_id")) for row in issues if row.get("status") == "flagged"}
    return {
        table: digest(
            next(iter(folder.columns(table, "test").values()), []),
            errata.reverted(
                (row for row in folder.rows(table) if row.get("source") in sources),
                known if table == "clean" else (),
                unstated,
            ),
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


def clean_rows_check(folder: Folder, *, origin: str) -> Check:
    """The digests against the shipped ones. May be left out only where the sources speak.

    The newest ones: this package builds no others.
    """
    profile = str(folder.report.get("profile"))
    newest = list(pinned().values())[-1]
    wanted = newest.profiles.get(profile)
    if is_own(folder):
        return not_run(*_WHAT, "own cases: nobody but their maker has them", NOTHING_THERE)
    if wanted is None:
        return not_run(
            *_WHAT,
            f"no digest ships for profile {profile}",
            may_be_left_out=f"the clean rows were read from {origin}" if origin else None,
        )
    found = found_digests(folder, newest.sources)
    failures = [
        Failure(
            table,
            f"its rows have the digest {found.get(table, 'none')[:12]}, not {wanted.get(table, 'none')[:12]}",
        )
        for table in TABLES
        if found.get(table) != wanted.get(table)
    ]
    if not origin:
        others = {str(row.get("source")) for table in found for row in folder.rows(table)}
        failures += [
            Failure(name, "rows of this source: no digest of them ships, and no sources are at hand")
            for name in sorted(others - set(newest.sources))
        ]
    corrected = len(_errata(folder))
    said = f"but for {corrected} golden answers that its errata correct" if corrected else ""
    return check(*_WHAT, len(TABLES), failures, reason=said)
