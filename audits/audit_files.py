"""What an audit leaves in a folder: `audit_report.json`, its page, the files under `audit/` that it names.

They lie in a build, which names none of them, or in a folder of their own. An earlier audit's are replaced
only if nobody has changed them since.
"""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from robustbench_tc.errors import UserError
from robustbench_tc.io import files, folders, manifest, marker

FOLDER = "audit/"
"""Holds what an audit writes beside its report and names there; see docs/audits.md."""

JUDGMENTS = FOLDER + "judgments.jsonl"
"""What an audit rests on, to be replayed: it may lie there before there is a report to name it."""


def check(folder: Path, *, alone: bool = False) -> None:
    """UserError where an audit may not write: over files that no audit wrote or that were changed since, in a
    release, and, with `alone`, in a folder that holds anything else."""
    if not os.path.lexists(folder):
        return
    if folder.is_symlink() or not folder.is_dir():
        raise UserError(f"{folder} is not a folder of its own: name one with --out")
    if (folder / manifest.NAME).exists():
        raise UserError(f"{folder} is a release, which is never changed: name a folder with --out")
    earlier = folders.audited(folder)
    others = folders.strangers(folder, earlier)
    ours = tuple(f"{name}/" for name in (marker.PAGE, FOLDER.rstrip("/")))
    taken = [name for name in others if alone or (f"{name}/".startswith(ours) and name != FOLDER)]
    taken += [name for name, sha256 in earlier.items() if not folders.is_as_written(folder / name, sha256)]
    if taken:
        raise UserError(
            f"{folder / taken[0]} was not written by rbtc or changed since: move it away, or name an --out"
        )


def check_place(audited: Path, out: Path | None) -> Path:
    """The folder that an audit of the build writes to: `out`, checked, or the build itself."""
    if out is None or (out.exists() and audited.exists() and out.samefile(audited)):
        check(audited)
        return audited
    check(out, alone=True)
    return out


def replace(folder: Path, report: bytes, page: bytes, written: Mapping[str, bytes]) -> tuple[Path, Path]:
    """Writes an audit's report, its page and the files that the report names, in place of an earlier one's.

    The earlier files go first and the new ones come last: a killed run leaves none that a report misnames.
    """
    check(folder)
    shutil.rmtree(folder / FOLDER, ignore_errors=True)
    for name, data in {marker.AUDIT: report, marker.PAGE: page, **written}.items():
        with files.atomic_file(folder / name, replace=True) as beside:
            beside.write_bytes(data)
    return folder / marker.AUDIT, folder / marker.PAGE
