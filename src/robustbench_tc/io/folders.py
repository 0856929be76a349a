"""The guard: a folder is replaced or removed only if it carries our marker (`marker`) and holds nothing else.

A new folder is built beside its place, as `.NAME.rbtc-partial`, and renamed into it; what was there is
`.NAME.rbtc-old` meanwhile. Killed at any moment, the folder is wholly there or not at all, and the next
command tidies up. A folder that lives on, such as a run's, is claimed with the names of the files that rbtc
writes in it again and again.
"""

import os
import shutil
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from ..errors import UserError
from . import files, marker
from .marker import LIVING, OwnKind

SHOWN = 5
"""Names in a message."""


class Marker(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The fields that make a JSON file a marker. A build's has many more, which are not looked at here."""

    kind: str
    report_version: int = 0
    """Of `build_report.json` and `audit_report.json`."""
    marker_version: int = 0
    """Of `rbtc.json`."""
    files: dict[str, str] = {}
    """Relative path → sha256, or LIVING."""
    own_sha256: str = ""


@contextmanager
def atomic_dir(
    path: Path,
    *,
    kind: str = "",
    force: bool = False,
    discard_changes: bool = False,
    hint: str = "--force replaces it if rbtc made it and nothing else is in it",
) -> Iterator[Path]:
    """Yields a new folder beside `path`; renamed into place if the block succeeds, removed if not.

    With a `kind` it gets its marker, unless the block wrote a build's. An existing `path` is refused with a
    UserError; with `force` it is replaced if it is a folder of ours of this `kind` that holds nothing else,
    and no file in it was changed (unless `discard_changes`).
    """
    how: dict[str, Any] = {"kind": kind, "force": force, "discard_changes": discard_changes, "exists": hint}
    with _alone(path) as (path, made):
        check_dir(path, **how)
        made.mkdir()
        yield made
        if kind and not (made / marker.BUILD).exists():
            _mark(made, kind, marker.hashes(made, but=marker.OWN))
        old = _set_aside(path, how)
        made.rename(path)
        shutil.rmtree(old, ignore_errors=True)


def remove_dir(path: Path, *, kind: str, discard_changes: bool = False) -> None:
    """Removes a folder of ours of this `kind` that holds nothing else. UserError as for `atomic_dir`."""
    with _alone(path) as (path, made):
        _set_aside(path, {"kind": kind, "force": True, "discard_changes": discard_changes}).rename(made)


@contextmanager
def _alone(path: Path) -> Iterator[tuple[Path, Path]]:
    """The real path, locked, and the name of what is made beside it, which is gone afterwards. What a killed
    process began there is undone."""
    path = real(path)
    _refuse_place(path)
    made, old = files.beside(path, files.PARTIAL), files.beside(path, files.OLD)
    with files.named(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with files.locked(path):
            if old.exists() and not os.path.lexists(path):
                old.rename(path)
            for left in (made, old):
                shutil.rmtree(left, ignore_errors=True)
            try:
                yield path, made
            finally:
                shutil.rmtree(made, ignore_errors=True)


def _set_aside(path: Path, how: dict[str, Any]) -> Path:
    """Gives a folder that may go another name, which is returned. What came into it meanwhile keeps it."""
    old = files.beside(path, files.OLD)
    if os.path.lexists(path):
        path.rename(old)
        try:
            check_dir(old, **how, shown=path)
        except BaseException:  # an interrupt too: it comes back to its place
            old.rename(path)
            raise
    return old


def check_dir(
    path: Path,
    *,
    kind: str,
    force: bool,
    discard_changes: bool = False,
    exists: str = "choose another name",
    shown: Path | None = None,
) -> None:
    """UserError where `atomic_dir` would not replace `path`, which a message calls `shown`."""
    path = real(path)
    place = shown or path
    _refuse_place(path)
    if not os.path.lexists(path):
        return
    if not force:
        raise UserError(f"{place} exists: {exists}")
    if not path.is_dir():
        raise UserError(f"{place} is not a folder: choose another name")
    if not any(path.iterdir()):  # an empty folder is anybody's
        return
    sha256 = _named(path, place, kind)
    if others := strangers(path, sha256):
        raise UserError(
            f"{place} contains files that rbtc did not write: {_some(others)}. Nothing was changed: "
            "move it away, or choose another name"
        )
    changed = [name for name, said in sha256.items() if not is_as_written(path / name, said)]
    if changed and not discard_changes:
        raise UserError(
            f"{place} was changed since rbtc wrote it: {_some(changed)}. Nothing was changed; "
            "--discard-changes replaces it anyway"
        )


def _named(path: Path, place: Path, kind: str) -> dict[str, str]:
    """Every file that the folder's markers name, and these themselves, with its sha256 or LIVING."""
    for name in (marker.BUILD, marker.OWN):
        if (found := read_marker(path / name)) is not None:
            if found.kind != kind:
                raise UserError(f"{place} holds {found.kind}, not {kind}: choose another name")
            return {**found.files, name: LIVING, **audited(path)}
    raise UserError(
        f"not a folder that rbtc wrote: {place}: it has neither {marker.BUILD} nor {marker.OWN}. Nothing was "
        "changed: choose another name"
    )


def read_marker(path: Path) -> Marker | None:
    """A marker file, held against its seal; None where there is none. UserError for one that is not ours."""
    if not os.path.lexists(path):
        return None
    try:
        if path.is_symlink() or not path.is_file():
            raise ValueError("it is not a regular file")
        data = path.read_bytes()
        found = msgspec.json.decode(data, type=Marker)
        version = found.marker_version if path.name == marker.OWN else found.report_version
        if version != {marker.BUILD: marker.BUILD_VERSION, marker.OWN: marker.OWN_VERSION}.get(
            path.name, version
        ):
            raise ValueError(f"it is of version {version}, which this rbtc does not write")
        if not marker.is_sealed(data, found.own_sha256):
            raise ValueError("it was changed since rbtc wrote it")
    except (ValueError, RecursionError) as error:
        raise UserError(
            f"{path} is not a marker of rbtc: {error}. Nothing was changed: choose another name"
        ) from None
    return found


def audited(folder: Path) -> dict[str, str]:
    """What an audit wrote into a folder, with its sha256 or LIVING. UserError for somebody else's report."""
    found = read_marker(folder / marker.AUDIT)
    return {} if found is None else {**found.files, marker.AUDIT: LIVING, marker.PAGE: LIVING}


def strangers(path: Path, named: Collection[str]) -> list[str]:
    """What lies below `path` and is neither a file `named`, nor its folder, nor an unfinished file of ours.

    UserError while a process is at work there.
    """
    folders = {parent.as_posix() for name in named for parent in PurePosixPath(name).parents}
    found = []
    for one in sorted(path.rglob("*")):
        name = one.relative_to(path).as_posix()
        if one.is_dir() and not one.is_symlink():
            found += [] if name in folders else [f"{name}/"]
        elif one.is_symlink() or not one.is_file():
            found.append(name)
        elif files.is_ours(one.name):
            if files.is_held(one):
                raise UserError(f"{one.parent} is being written by another process: wait for it to finish")
        elif name not in named:
            found.append(name)
    return found


def is_as_written(path: Path, sha256: str | None) -> bool:
    """Whether a file is gone or has the sha256 that a marker names, or LIVING; a page holds its own."""
    if not path.is_file():
        return True
    if path.name == marker.PAGE:
        return marker.is_whole_page(path)
    return sha256 in (LIVING, marker.sha256(path))


def _refuse_place(path: Path) -> None:
    if path.is_symlink():
        raise UserError(f"{path} is a link: name the folder itself")
    if Path.cwd().resolve().is_relative_to(path):
        raise UserError(
            f"{path} is the working folder or a parent of it and is never replaced: name a folder of its own"
        )


def _some(names: list[str]) -> str:
    """A few of many names for a message, control characters made visible."""
    shown = ", ".join(name if name.isprintable() else ascii(name) for name in names[:SHOWN])
    return shown + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")


def real(path: Path) -> Path:
    """`path` as an absolute path whose parents are resolved; its own last name is kept, link or not."""
    path = Path.cwd() / path
    return path.resolve() if path.name in ("", "..") else path.parent.resolve() / path.name


# --- folders that live on, and those of a user ------------------------------------------------------------


def check_begin(path: Path, kind: OwnKind) -> None:
    """UserError where a folder that lives on cannot be begun: it holds more than a start that was killed."""
    if path.is_symlink() or not _is_of(path, kind):
        check_new(path)


def claim(folder: Path, kind: OwnKind, names: Collection[str], *new: Path) -> None:
    """Makes `folder` one of ours, in which rbtc writes the files `names` again and again.

    UserError for one of another kind, and, where it is not ours yet, for a file that stands in the place of
    one of the `new`.
    """
    if not _is_of(folder, kind):
        for path in new:
            files.check_file(path)
        _mark(folder, kind, dict.fromkeys(names, LIVING))


def _is_of(folder: Path, kind: OwnKind) -> bool:
    """Whether the folder is one of ours. UserError for one of another kind."""
    found = read_marker(folder / marker.OWN)
    if found is not None and found.kind != kind:
        raise UserError(f"{folder} holds {found.kind}, not {kind}: choose another folder")
    return found is not None


def _mark(folder: Path, kind: str, named: Mapping[str, str]) -> None:
    made = Marker(kind=kind, marker_version=marker.OWN_VERSION, files=dict(sorted(named.items())))
    with files.atomic_file(folder / marker.OWN, replace=True) as beside:
        beside.write_bytes(marker.sealed(made))


def check_new(path: Path) -> None:
    """UserError unless nothing is at `path`, or an empty folder that is not a link."""
    path = real(path)
    if path.is_symlink():
        raise UserError(f"{path} is a link: name the folder itself")
    for place in (*reversed(path.parents), path):
        if place.exists() and not place.is_dir():
            raise UserError(f"{place} is not a folder: choose another name")
    if path.exists() and any(path.iterdir()):
        raise UserError(f"{path} is not empty: name a new folder, or an empty one")


def write_new(path: Path, contents: Mapping[str, bytes]) -> None:
    """Makes the folder `path` of these files, by their paths below it; an empty one is filled.

    What is there already is never replaced; where a file cannot be written, nothing stays.
    """
    path = real(path)
    check_new(path)
    was_there = path.exists()
    try:
        with files.named(path):
            for name, data in contents.items():
                (path / name).parent.mkdir(parents=True, exist_ok=True)
                (path / name).write_bytes(data)
    except BaseException:  # an interrupt too: half a folder is none
        shutil.rmtree(path, ignore_errors=True)
        if was_there:
            path.mkdir()
        raise
