"""What an audit leaves in a folder: `audit_report.json`, its page, the files under `audit/` that it names.

They lie in a build, which names none of them, or in a folder of their own. An earlier audit's are replaced
only if nobody has changed them since.
"""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from ..errors import UserError
from . import files, folders, manifest, marker
from .marker import NotOurs

FOLDER = "audit/"
"""Holds what an audit writes beside its report and names there; see docs/audits.md."""

JUDGMENTS = FOLDER + "judgments.jsonl"
"""What an audit rests on, to be replayed: it may lie there before there is a report to name it."""


def check(folder: Path) -> dict[str, str]:
    """The files of an earlier audit in `folder`, where another may write, with their sha256.

    UserError for a file under a name that an audit takes which no audit wrote, and for one that was changed
    since.
    """
    if not os.path.lexists(folder):
        return {}
    if folder.is_symlink() or not folder.is_dir():
        raise UserError(f"{folder} is not a folder of its own: name one with --out")
    if (folder / manifest.NAME).exists():
        raise UserError(f"{folder} is a release and is never written to: name a folder with --out")
    inside = folder / FOLDER
    for path in (inside, *inside.rglob("*")):
        if path.is_symlink() or (path == inside and path.exists() and not path.is_dir()):
            raise UserError(
                f"{path} is a link or a file, which no audit wrote: move it away or name another --out"
            )
    try:
        named = marker.read(folder / marker.AUDIT).files
    except FileNotFoundError:
        named = {}
    except NotOurs as error:
        raise UserError(f"{folder / marker.AUDIT} is not replaced: {error}. Move it away") from None
    for name in (marker.PAGE, JUDGMENTS, *named):
        path = folder / name
        if os.path.lexists(path) and (path.is_symlink() or not folders.is_as_written(path, named.get(name))):
            raise UserError(f"{path} was not written by rbtc or changed since: move it away")
    return named


def check_own(folder: Path) -> None:
    """`check` for a folder other than the audited build: new, empty, or with an audit's files only."""
    named = check(folder)
    if folder.is_dir() and folders.is_more_than(folder, marker.AUDIT, marker.PAGE, *named):
        raise UserError(f"{folder} holds other files: name a new folder with --out")


def check_place(audited: Path, out: Path | None) -> Path:
    """The folder that an audit of the build writes to: `out`, checked, or the build itself."""
    if out is None or (out.exists() and audited.exists() and out.samefile(audited)):
        check(audited)
        return audited
    check_own(out)
    return out


def replace(folder: Path, report: bytes, page: bytes, written: Mapping[str, bytes]) -> tuple[Path, Path]:
    """Writes an audit's report, its page and the files that the report names, in place of an earlier one's.

    The earlier files go first and the new ones come last: a killed run leaves none that a report misnames.
    """
    earlier = check(folder)
    for name in written:
        if name not in earlier:
            files.check_file(folder / name)
        for parent in (folder / name).parents:
            if parent.exists() and not parent.is_dir():
                raise UserError(f"{parent} is not a folder of an audit: move it away or name another --out")
    inside = folder / FOLDER
    for path in (*sorted(inside.rglob("*"), reverse=True), inside):
        if path.relative_to(folder).as_posix() in earlier:
            path.unlink()
        elif path.is_dir():
            with suppress(OSError):  # it holds other files
                path.rmdir()
    for name, data in {marker.AUDIT: report, marker.PAGE: page}.items():
        with files.atomic_file(folder / name, replace=True) as beside:
            beside.write_bytes(data)
    for name, data in written.items():
        with files.atomic_file(folder / name) as beside:
            beside.write_bytes(data)
    return folder / marker.AUDIT, folder / marker.PAGE
