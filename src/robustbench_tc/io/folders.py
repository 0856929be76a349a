"""The guard: a folder is replaced or removed only if it carries our marker (`marker`) and holds nothing else.

A new folder is built beside its place, as `.NAME.ID.rbtc-partial`, and renamed into it; what was there
is `.NAME.ID.rbtc-old` meanwhile, of which exactly the files that were looked at are deleted. Killed at any
moment, the folder is wholly there or not at all, and the next command tidies up.

A folder that lives on, such as a run's, is begun with the names that are written again and again (`begin`),
and names each other file when it is written (`own_file`): a file of somebody else is never replaced.
"""

import os
import shutil
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath

import msgspec

from ..errors import UserError
from . import files, marker
from .marker import LIVING, Marker, NotOurs, OwnKind

SHOWN = 5
"""Names in a message."""


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
    path = real(path)

    def replaced() -> list[str]:
        return check_dir(path, kind=kind, force=force, discard_changes=discard_changes, exists=hint)

    with files.named(path):
        _refuse_place(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        with files.locked(path):
            _recover(path, kind)
            replaced()
            made = files.beside(path, files.PARTIAL)
            made.mkdir()
            try:
                yield made
                if kind and not (made / marker.BUILD).exists():
                    _write(made, Marker(kind=kind, files=marker.hashes(made, but=marker.OWN), own_sha256=""))
                ours = replaced()  # again: the work may have taken hours
                old = _set_aside(path)
                made.rename(path)
            finally:
                shutil.rmtree(made, ignore_errors=True)
            _delete(old, ours)
    if old.exists():
        raise UserError(
            f"{path} is written, but files came into the folder that it replaced: they are in {old}"
        )


def remove_dir(path: Path, *, kind: str, discard_changes: bool = False) -> None:
    """Removes a folder of ours of this `kind` that holds nothing else. UserError as for `atomic_dir`."""
    path = real(path)
    _refuse_place(path)
    with files.locked(path):
        _recover(path, kind)
        ours = check_dir(path, kind=kind, force=True, discard_changes=discard_changes)
        old = _set_aside(path)
        _delete(old, ours)
    if old.exists():
        raise UserError(f"files came into {path} while it was removed: they are in {old}")


def check_dir(
    path: Path,
    *,
    kind: str,
    force: bool,
    discard_changes: bool = False,
    exists: str = "choose another name",
) -> list[str]:
    """The files that go when `atomic_dir` replaces `path`. UserError where it would refuse."""
    path = real(path)
    _refuse_place(path)
    if not os.path.lexists(path):
        return []
    if not force:
        raise UserError(f"{path} exists: {exists}")
    if not path.is_dir():
        raise UserError(f"{path} is not a folder: choose another name")
    if not any(path.iterdir()):  # an empty folder is anybody's
        return []
    sha256 = _named(path, kind)
    ours, strangers = _sorted_out(path, sha256)
    if strangers:
        raise UserError(
            f"{path} holds what rbtc did not write there: {_some(strangers)}. Nothing was changed: "
            "move it away, or choose another name"
        )
    changed = [name for name in ours if not is_as_written(path / name, sha256.get(name, LIVING))]
    if changed and not discard_changes:
        raise UserError(
            f"{path} was changed since rbtc wrote it: {_some(changed)}. It is left as it is; "
            "--discard-changes replaces it all the same"
        )
    return ours


def new_or_empty(path: Path) -> bool:
    """Whether a folder may be begun at `path`: nothing is there, or an empty folder that is not a link."""
    if not os.path.lexists(path):
        return True
    return path.is_dir() and not path.is_symlink() and not any(path.iterdir())


def is_more_than(path: Path, *names: str) -> bool:
    """Whether `path` holds anything beside the files `names`, locks and unfinished files of ours."""
    return bool(_sorted_out(path, names)[1])


def real(path: Path) -> Path:
    """`path` as an absolute path whose parents are resolved; its own last name is kept, link or not."""
    path = Path.cwd() / path
    return path.resolve() if path.name in ("", "..") else path.parent.resolve() / path.name


def write_new(path: Path, contents: Mapping[str, bytes]) -> None:
    """Makes the folder `path` of these files, by their paths below it; an empty one is filled.

    What is there already is never replaced; where a file cannot be written, nothing stays.
    """
    path = real(path)
    check_new(path)
    was_there = path.exists()
    written: list[str] = []
    try:
        with files.named(path):
            for name, data in contents.items():
                (path / name).parent.mkdir(parents=True, exist_ok=True)
                with (path / name).open("xb") as file:
                    written.append(name)
                    file.write(data)
    except BaseException:
        _delete(path, written, itself=not was_there)
        raise


def check_new(path: Path) -> None:
    """UserError unless nothing is at `path`, or an empty folder that is not a link."""
    path = real(path)
    for parent in path.parents:
        if parent.exists() and not parent.is_dir():
            raise UserError(f"{parent} is not a folder: choose another name")
    if not new_or_empty(path):
        _refuse_link(path)
        if path.is_dir():
            raise UserError(f"{path} is not empty: name a new folder, or an empty one")
        raise UserError(f"{path} is not a folder: choose another name")


# --- folders that live on ---------------------------------------------------------------------------------


def begin(folder: Path, kind: OwnKind, *living: str) -> None:
    """Makes `folder` one of ours. `living`: names of files in it that are written again and again."""
    _write(folder, Marker(kind=kind, files=dict.fromkeys(living, LIVING), own_sha256=""))


def owner(folder: Path) -> Marker | None:
    """The `rbtc.json` of a folder; None where it has none. UserError for one that is not ours."""
    try:
        return marker.read(folder / marker.OWN)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except NotOurs as error:
        raise UserError(f"not a folder of rbtc: {folder}: {marker.OWN}: {error}") from None


def is_begun(path: Path, kind: str) -> bool:
    """Whether a start that was killed at once left the folder: it holds the marker of this kind only."""
    own = owner(path) if path.is_dir() else None
    return own is not None and own.kind == kind and not is_more_than(path, marker.OWN)


def refuse_foreign(path: Path) -> None:
    """UserError for a file of a folder that lives on which is not as we wrote it."""
    if not os.path.lexists(path):
        return
    found = owner(path.parent)
    if path.is_symlink() or not path.is_file():
        raise UserError(f"{path} is not a file of rbtc: move it away")
    if found is None or path.name not in found.files:
        raise UserError(f"{path} was not written by rbtc and is not replaced: move it away")
    if not is_as_written(path, found.files[path.name]):
        raise UserError(f"{path} was changed since rbtc wrote it and is not replaced: move it away")


def is_as_written(path: Path, sha256: str | None) -> bool:
    """Whether a file has the sha256 that a marker names, which may be LIVING; a page holds its own."""
    if path.name == marker.PAGE:
        return path.is_file() and marker.is_whole_page(path)
    return path.is_file() and sha256 in (LIVING, marker.sha256(path))


@contextmanager
def own_file(path: Path) -> Iterator[Path]:
    """As `files.atomic_file`, for a file of a folder that lives on: what is there as we wrote it is replaced.

    In a folder without a marker nothing is.
    """
    if owner(path.parent) is None:
        with files.atomic_file(path) as made:
            yield made
        return
    refuse_foreign(path)
    files.sweep(path)
    with files.atomic_file(path, replace=True) as made:
        yield made
        refuse_foreign(path)
        _name(path, LIVING)  # killed between the two, ours whichever it is
    _name(path, marker.sha256(path))


def _name(path: Path, sha256: str) -> None:
    with files.locked(path.parent / marker.OWN, wait=True):
        found = marker.read(path.parent / marker.OWN)
        named = {**found.files, path.name: sha256}
        _write(path.parent, msgspec.structs.replace(found, files=named, own_sha256=""))


def _write(folder: Path, made: Marker) -> None:
    made = msgspec.structs.replace(
        made, marker_version=marker.OWN_VERSION, files=dict(sorted(made.files.items()))
    )
    with files.atomic_file(folder / marker.OWN, replace=True) as beside:
        beside.write_bytes(marker.sealed(made))


# --- the guard itself -------------------------------------------------------------------------------------


def _refuse_link(path: Path) -> None:
    if path.is_symlink():
        raise UserError(f"{path} is a link: name the folder itself")


def _refuse_place(path: Path) -> None:
    _refuse_link(path)
    if Path.cwd().resolve().is_relative_to(path):
        raise UserError(
            f"{path} is the working folder or a parent of it and is never replaced: name a folder of its own"
        )


def _named(path: Path, kind: str) -> dict[str, str]:
    """Every file that the folder's markers name, and these themselves, with its sha256 or LIVING."""
    for name in (marker.BUILD, marker.OWN):
        try:
            found = marker.read(path / name)
        except FileNotFoundError:
            continue
        except NotOurs as error:
            raise UserError(
                f"not a folder that rbtc may replace: {path}: {name}: {error}. Choose another name, or "
                "remove the folder yourself"
            ) from None
        if found.kind != kind:
            raise UserError(f"{path} holds {found.kind}, not {kind}: choose another name")
        named = {**found.files, name: LIVING}
        with suppress(FileNotFoundError, NotOurs):  # a stranger's file is then not named by anything
            named |= {**marker.read(path / marker.AUDIT).files, marker.AUDIT: LIVING, marker.PAGE: LIVING}
        return named
    raise UserError(
        f"not a folder that rbtc wrote: {path}: it has neither {marker.BUILD} nor {marker.OWN}. Nothing was "
        "changed: choose another name"
    )


def _sorted_out(path: Path, named: Collection[str]) -> tuple[list[str], list[str]]:
    """The files below `path` that are `named` or unfinished ones of ours, and all else, links included."""
    folders = {parent.as_posix() for name in named for parent in PurePosixPath(name).parents} | {"."}
    ours, strangers = [], []
    for found in (path, *sorted(path.rglob("*"))):
        name = found.relative_to(path).as_posix()
        if found.is_dir() and not found.is_symlink():
            if not os.access(found, os.R_OK | os.W_OK | os.X_OK, effective_ids=True):
                raise UserError(
                    f"{found} may not be written to, so nothing in it can be replaced. Nothing was changed: "
                    "choose another name, or change its rights"
                )
            if name not in folders:
                strangers.append(f"{name}/")
        elif found.is_file() and not found.is_symlink() and (name in named or _is_passing(found)):
            ours.append(name)
        else:
            strangers.append(name)
    return ours, strangers


def _is_passing(path: Path) -> bool:
    """Whether a file is a lock or an unfinished file of ours. UserError while a process is at work there."""
    if not files.is_ours(path.name):
        return False
    if files.is_held(path):
        raise UserError(f"{path.parent} is being written by another process: wait for it to finish")
    return True


def _some(names: list[str]) -> str:
    """A few of many names for a message, control characters made visible."""
    shown = ", ".join(name if name.isprintable() else ascii(name) for name in names[:SHOWN])
    return shown + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")


def _set_aside(path: Path) -> Path:
    """Gives the folder `path`, if it is there, another name, which is returned."""
    old = files.beside(path, files.OLD)
    if path.exists():
        path.rename(old)
    return old


def _recover(path: Path, kind: str) -> None:
    """Undoes or completes what a killed process began with the folder `path`, whose lock is held."""
    for left in files.leftovers(path):
        if left.suffix == files.PARTIAL:
            shutil.rmtree(left, ignore_errors=True)
        elif not os.path.lexists(path) and ((left / marker.BUILD).exists() or (left / marker.OWN).exists()):
            left.rename(path)
        else:
            with suppress(UserError):  # it holds what is not ours to delete
                _delete(left, check_dir(left, kind=kind, force=True))


def _delete(folder: Path, names: Collection[str], *, itself: bool = True) -> None:
    """Deletes files of a folder, and every folder that is then empty; what else is in it stays."""
    last = [name for name in (marker.AUDIT, marker.BUILD, marker.OWN) if name in names]
    for name in set(names).difference(last):
        (folder / name).unlink(missing_ok=True)
    for inner in sorted(folder.rglob("*"), reverse=True):
        if inner.is_dir() and not inner.is_symlink():
            with suppress(OSError):  # it holds more
                inner.rmdir()
    for name in last:  # with its marker a killed removal can be completed
        (folder / name).unlink(missing_ok=True)
    if itself:
        with suppress(OSError):  # it holds more, or is gone
            folder.rmdir()
