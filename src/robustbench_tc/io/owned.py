"""Folders that live on, such as a run's. Their marker says at any moment which files are ours.

A file of such a folder is replaced only if it is as we wrote it. Its successor is named in the marker before
it is put in place, so a SIGKILL between the two leaves nothing that looks like somebody else's.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from ..errors import UserError
from . import marker, scratch
from .lock import locked
from .marker import Marker, NotOurs, OwnKind


class Owned:
    """A folder with its `rbtc.json`."""

    def __init__(self, folder: Path, kind: str) -> None:
        self.folder = folder
        self.kind = kind

    @property
    def marker(self) -> Marker:
        """The folder's `rbtc.json`. Raises NotOurs, and FileNotFoundError where there is none."""
        return marker.read(self.folder / marker.OWN)

    def refuse_foreign(self, name: str) -> None:
        """UserError if `name` is there and is not as we wrote it."""
        path = self.folder / name
        if not os.path.lexists(path):
            return
        found = self.marker
        if path.is_symlink() or not path.is_file():
            raise UserError(f"{path} is not a file of rbtc: move it away")
        if name not in found.files and name not in found.before:
            raise UserError(f"{path} was not written by rbtc and is not replaced: move it away")
        if not found.accepts(name, marker.sha256(path, found.grows.get(name))):
            raise UserError(f"{path} was changed since rbtc wrote it and is not replaced: move it away")

    def announce(self, name: str, sha256: str) -> None:
        """Names a file that is about to be put in place, beside what it is now."""
        with self._changed() as found:
            if name in found.files:
                path = self.folder / name
                now = marker.sha256(path) if path.is_file() else found.files[name]
                # Of the two that a killed run may have left the one that is there.
                found.before[name] = now if found.accepts(name, now) else found.files[name]
            found.files[name] = sha256

    def grew(self, name: str) -> None:
        """Names a file that is only ever appended to, as it is now; nothing where there is none."""
        path = self.folder / name
        if path.is_file() and not path.is_symlink():
            with self._changed() as found:
                found.grows[name] = path.stat().st_size
                found.files[name] = marker.sha256(path, found.grows[name])

    @contextmanager
    def _changed(self) -> Iterator[Marker]:
        """The marker to change; written when the block ends."""
        with locked(self.folder / marker.OWN, wait=True):
            found = self.marker
            before = msgspec.json.encode(found)
            yield found
            if msgspec.json.encode(found) != before:
                _write(self.folder, found)


def create(folder: Path, kind: OwnKind, ours: Iterable[str] = ()) -> Owned:
    """Makes `folder` one of ours. `ours`: files of it that are known to be, from before it had a marker."""
    files = {name: marker.sha256(folder / name) for name in sorted(ours)}
    _write(folder, Marker(kind=kind, marker_version=marker.OWN_VERSION, files=files, own_sha256=""))
    return Owned(folder, kind)


def owner(folder: Path) -> Owned | None:
    """The folder as one of ours; None where it has no `rbtc.json`. UserError for one that is not ours."""
    path = folder / marker.OWN
    try:
        found = marker.read(path)
        marker.check_form(found, marker.OWN)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except NotOurs as error:
        raise UserError(f"not a folder of rbtc: {folder}: {marker.OWN}: {error}") from None
    return Owned(folder, found.kind)


def _write(folder: Path, made: Marker) -> None:
    """Writes `rbtc.json`, wholly or not at all."""
    made = msgspec.structs.replace(made, files=dict(sorted(made.files.items())), own_sha256="")
    path = folder / marker.OWN
    with scratch.beside(path) as beside, beside.open("wb") as file:
        file.write(marker.sealed(made))
        file.flush()
        os.fsync(file.fileno())
        beside.replace(path)
