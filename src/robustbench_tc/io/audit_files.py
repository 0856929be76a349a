"""What an audit leaves in a folder: `audit_report.json`, its page, the files under `audit/` that it names.

They lie in a build, which names none of them, or in a folder of their own. An earlier audit's are replaced
only if nobody has changed them since.
"""

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath

from ..errors import UserError
from . import folders, manifest, marker
from .files import atomic_file, check_file
from .marker import Marker, NotOurs
from .unfinished import claim

FOLDER = "audit/"
"""Holds what an audit writes beside its report and names there; see docs/audits.md."""

JUDGMENTS = FOLDER + "judgments.jsonl"
"""What an audit rests on, to be replayed: it may lie there before there is a report to name it."""


def check(folder: Path) -> Marker | None:
    """What an earlier audit left in `folder`, where another may write; None where there is nothing.

    UserError for a file under a name that an audit takes which no audit wrote, and for one that was changed
    since.
    """
    if not os.path.lexists(folder):
        return None
    if folder.is_symlink() or not folder.is_dir():
        raise UserError(f"{folder} is not a folder of its own: name one with --out")
    if (folder / manifest.NAME).exists():
        raise UserError(f"{folder} is a release and is never written to: name a folder with --out")
    _check_plain(folder, FOLDER)
    for path in (folder / FOLDER).rglob("*"):
        if path.is_symlink():
            raise UserError(f"{path} is a link, which no audit wrote: move it away")
    try:
        found = marker.read(folder / marker.AUDIT)
    except FileNotFoundError:
        found = None
    except NotOurs as error:
        raise UserError(f"{folder / marker.AUDIT} is not replaced: {error}. Move it away") from None
    for name in (marker.PAGE, JUDGMENTS, *(found.files if found is not None else ())):
        if not _is_as_written(folder, name, found):
            raise UserError(f"{folder / name} was not written by rbtc or changed since: move it away")
    return found


def check_own(folder: Path) -> None:
    """`check` for a folder other than the audited build: new, empty, or with an audit's files only."""
    found = check(folder)
    ours = (marker.AUDIT, marker.PAGE, *(found.files if found is not None else ()))
    if folder.is_dir() and folders.is_more_than(folder, *ours):
        raise UserError(f"{folder} holds other files: name a new folder with --out")


def replace(folder: Path, report: bytes, page: bytes, files: Mapping[str, bytes]) -> tuple[Path, Path]:
    """Writes an audit's report, its page and the `files` that the report names, in place of an earlier one's.

    The earlier files go first and the new ones come last: a killed run leaves none that a report misnames.
    """
    earlier = check(folder)
    gone = earlier.files if earlier is not None else {}
    for name in files:
        _check_plain(folder, *(parent.as_posix() for parent in PurePosixPath(name).parents))
        if name not in gone:
            check_file(folder / name)
    claim(folder, marker.AUDIT, marker.PAGE, *files)
    for name in gone:
        (folder / name).unlink(missing_ok=True)
    _remove_empty(folder, gone)
    for name, data in {marker.AUDIT: report, marker.PAGE: page}.items():
        with atomic_file(folder / name, replace=True) as beside:
            beside.write_bytes(data)
    for name, data in files.items():
        with atomic_file(folder / name) as beside:
            beside.write_bytes(data)
    return folder / marker.AUDIT, folder / marker.PAGE


def _check_plain(folder: Path, *names: str) -> None:
    """UserError where something other than a folder of its own has the name of one that an audit makes."""
    for name in names:
        path = folder / name
        if path.is_symlink() or (path.exists() and not path.is_dir()):
            raise UserError(f"{path} is not a folder of an audit: move it away or name another --out")


def _remove_empty(folder: Path, names: Iterable[str]) -> None:
    """Removes the folders below `folder` that held the files `names` and hold nothing more."""
    parents = {parent for name in names for parent in PurePosixPath(name).parents if parent.name}
    for parent in sorted(parents, key=lambda one: len(one.parts), reverse=True):
        with suppress(OSError):  # it holds other files, or was never there
            (folder / parent).rmdir()


def _is_as_written(folder: Path, name: str, found: Marker | None) -> bool:
    path = folder / name
    if not os.path.lexists(path):
        return True
    if any(part.is_symlink() for part in (path, *path.parents) if part != folder and folder in part.parents):
        return False
    if not path.is_file():
        return False
    if name == marker.PAGE:
        return marker.is_whole_page(path)
    return found is not None and found.accepts(name, marker.sha256(path))
