"""Uploads of scripts: they arrive in parts, and go on after a dropped connection or a restart of the server.

    incoming/TICKET/sent.json   whose it is and what was announced: sizes, sha256, form     (Sent)
                    upload      the predictions, as much as has arrived
                    run.json    the run record, as much as has arrived

The size of a file is how much has arrived: nothing else keeps count. The same announcement of the same user
is the same upload, so a client needs to remember nothing.
"""

import os
import re
import shutil
import threading
import time
from collections.abc import Callable
from hashlib import file_digest
from pathlib import Path

import msgspec

from robustbench_tc.io.files import atomic_file

from .limits import Limits
from .problem import Problem
from .records import encode
from .store import RECORD, SENT, UPLOAD, Store
from .submitting import Form, Submitter

FILES = {"predictions": UPLOAD, "run": RECORD}
"""The files of an upload: their names in addresses, and in the folder."""

_DIGEST = re.compile(r"[0-9a-f]{64}")
_TICKET = re.compile(r"[A-Za-z0-9_-]{24}")


class Announced(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file that will come."""

    bytes: int
    sha256: str


class Sent(msgspec.Struct, frozen=True, kw_only=True):
    """`sent.json`."""

    user: str
    address: str
    files: dict[str, Announced]
    """By the names of FILES."""
    form: Form
    ticket: str = ""
    """The desk's, once the upload is complete and was handed over."""


class Uploads:
    """Uploads on their way. Safe under threads; one process at a time has the folder."""

    def __init__(self, store: Store, limits: Limits, now: Callable[[], float] = time.time) -> None:
        self._store = store
        self._limits = limits
        self._now = now
        self._lock = threading.Lock()
        self._writers: dict[tuple[str, str], int] = {}
        """Upload and file → the number of the request that writes it: a newer one takes over."""
        self._handing: set[str] = set()

    def create(self, who: Submitter, files: dict[str, Announced], form: Form) -> str:
        """A new upload, or the one that was announced in the same way before. Raises Problem."""
        self._announced(files)
        made = Sent(user=who.user, address=who.address, files=files, form=form)
        with self._lock:
            there = self._all()
            for upload_id, (sent, _) in there.items():
                if (sent.user, sent.files, sent.form) == (made.user, made.files, made.form):
                    self._touch(upload_id)
                    return upload_id
            self._make_room(made, there)
            folder = self._store.incoming()
            for name in FILES.values():
                (folder / name).touch()
            self._save(folder.name, made)
        return folder.name

    def find(self, user: str, upload_id: str) -> Sent:
        """Raises Problem for an upload that is not there, and in the same words for somebody else's."""
        sent = self._load(upload_id) if _TICKET.fullmatch(upload_id) else None
        if sent is None or sent.user != user:
            raise Problem(404, "there is no such upload of yours (any more): announce it again")
        return sent

    def received(self, upload_id: str) -> dict[str, int]:
        """Bytes that have arrived, by file."""
        return {name: _size(self._path(upload_id, name)) for name in FILES}

    def begin(self, user: str, upload_id: str, name: str, offset: int, length: int | None) -> int:
        """Opens a file for one request's bytes from `offset` on; the request's number for `append`.

        `length` is what the request says that it brings. Raises Problem; with 409 the answer says how much
        there is, so that the client can go on from there.
        """
        sent = self.find(user, upload_id)
        if name not in FILES:
            raise Problem(404, f"an upload has the files {' and '.join(FILES)}")
        if sent.ticket:
            raise Problem(409, "this upload is complete and was taken", received=sent.files[name].bytes)
        with self._lock:
            there = _size(self._path(upload_id, name))
            if offset != there:
                raise Problem(409, f"{there} bytes have arrived: go on at offset {there}", received=there)
            if offset + (length or 0) > sent.files[name].bytes:
                raise Problem(413, f"{sent.files[name].bytes} bytes were announced", received=there)
            number = self._writers.get((upload_id, name), 0) + 1
            self._writers[upload_id, name] = number
        return number

    def append(self, upload_id: str, name: str, number: int, block: bytes, bound: int) -> int:
        """Adds bytes of request `number`; how many there are now. Raises Problem."""
        path = self._path(upload_id, name)
        with self._lock:
            if self._writers.get((upload_id, name)) != number:
                raise Problem(409, "a newer request writes this file", received=_size(path))
            if _size(path) + len(block) > bound:
                raise Problem(413, f"{bound} bytes were announced", received=_size(path))
            try:
                with path.open("r+b") as file:
                    file.seek(0, os.SEEK_END)
                    file.write(block)
            except FileNotFoundError:
                raise Problem(404, "this upload is no longer here: announce it again") from None
            except OSError:
                raise Problem(507, "the server has no room for this upload: try again later") from None
            self._touch(upload_id)
            return _size(path)

    def hand_over(self, user: str, upload_id: str, place: Callable[[Path, Path], str]) -> Sent:
        """Gives a complete upload to the desk with `place`, once. Raises Problem, and what `place` raises."""
        sent = self.find(user, upload_id)
        if sent.ticket:
            return sent
        with self._lock:
            if upload_id in self._handing:
                return sent
            self._handing.add(upload_id)
        try:
            self._whole(upload_id, sent)
            ticket = place(self._path(upload_id, "predictions"), self._path(upload_id, "run"))
            sent = msgspec.structs.replace(sent, ticket=ticket)
            self._save(upload_id, sent)
            return sent
        finally:
            with self._lock:
                self._handing.discard(upload_id)

    def take_back(self, upload_id: str, sent: Sent) -> Sent:
        """After the desk has forgotten a ticket: the upload waits to be handed over again."""
        sent = msgspec.structs.replace(sent, ticket="")
        self._save(upload_id, sent)
        return sent

    def settle(self, upload_id: str) -> None:
        """Lets go of the bytes of an upload whose result is there; its note stays, for who asks again."""
        for name in FILES:
            path = self._path(upload_id, name)
            if _size(path):
                os.truncate(path, 0)

    def throw_away(self, upload_id: str) -> None:
        """Removes an upload."""
        with self._lock:
            self._drop(upload_id)

    def _announced(self, files: dict[str, Announced]) -> None:
        bounds = {"predictions": self._limits.file_bytes, "run": self._limits.record_bytes}
        if set(files) != set(FILES):
            raise Problem(422, f"announce the files {' and '.join(FILES)}, each with bytes and sha256")
        for name, bound in bounds.items():
            if not 0 < files[name].bytes <= bound:
                raise Problem(413, f"{name}: 1 to {bound:,} bytes are taken, not {files[name].bytes:,}")
            if not _DIGEST.fullmatch(files[name].sha256):
                raise Problem(422, f"{name}: sha256 is 64 hexadecimal digits in small letters")

    def _make_room(self, made: Sent, there: dict[str, tuple[Sent, float]]) -> None:
        """Uploads that stand still make room: for their user, and for all when the server is full."""
        limits, still = self._limits, self._now() - self._limits.upload_idle_s
        size = sum(one.bytes for one in made.files.values())
        on_their_way = {one: found for one, found in there.items() if not found[0].ticket}

        def room(of: Callable[[Sent], bool], most: int, what: str, status: int) -> None:
            mine = sorted((at, one) for one, (sent, at) in on_their_way.items() if of(sent))
            while len(mine) >= most:
                at, oldest = mine.pop(0)
                if at > still:
                    wait = max(1.0, at - still)
                    raise Problem(status, f"{what} are on their way: go on with one, or wait", wait_s=wait)
                self._drop(oldest)
                del on_their_way[oldest]

        own = lambda sent: sent.user == made.user  # noqa: E731
        near = lambda sent: sent.address == made.address  # noqa: E731
        room(own, limits.uploads_of_user, f"{limits.uploads_of_user} uploads of yours", 429)
        room(near, limits.uploads_of_address, f"{limits.uploads_of_address} uploads of your address", 429)
        room(lambda _: True, limits.uploads, "as many uploads as the server takes", 503)
        if shutil.disk_usage(self._store.folder).free < 4 * size + limits.file_bytes:
            raise Problem(507, "the server has no room for this upload: try again later", wait_s=600)

    def _all(self) -> dict[str, tuple[Sent, float]]:
        """Every upload with the moment at which something of it last arrived."""
        found = {}
        for path in (self._store.folder / "incoming").iterdir():
            sent = self._load(path.name)
            if sent is not None:
                found[path.name] = sent, path.stat().st_mtime
        return found

    def _load(self, upload_id: str) -> Sent | None:
        try:
            path = self._store.folder / "incoming" / upload_id / SENT
            return msgspec.json.decode(path.read_bytes(), type=Sent)
        except (OSError, ValueError):
            return None

    def _save(self, upload_id: str, sent: Sent) -> None:
        with atomic_file(self._store.folder / "incoming" / upload_id / SENT, replace=True) as beside:
            beside.write_bytes(encode(sent))

    def _touch(self, upload_id: str) -> None:
        """Keeps the store's sweep away: it goes by the time of the folder."""
        os.utime(self._store.folder / "incoming" / upload_id)

    def _path(self, upload_id: str, name: str) -> Path:
        return self._store.folder / "incoming" / upload_id / FILES[name]

    def _drop(self, upload_id: str) -> None:
        for name in FILES:
            self._writers.pop((upload_id, name), None)
        self._store.throw_away(self._store.folder / "incoming" / upload_id)

    def _whole(self, upload_id: str, sent: Sent) -> None:
        """Raises Problem unless everything has arrived as announced. A wrong file begins anew."""
        for name, announced in sent.files.items():
            path = self._path(upload_id, name)
            if (there := _size(path)) != announced.bytes:
                raise Problem(
                    409,
                    f"{name}: {there} of {announced.bytes} bytes have arrived",
                    received=self.received(upload_id),
                )
            with path.open("rb") as file:
                digest = file_digest(file, "sha256").hexdigest()
            if digest != announced.sha256:
                with self._lock:
                    self._writers.pop((upload_id, name), None)
                    os.truncate(path, 0)
                raise Problem(422, f"{name}: what arrived is not what was announced (sha256): send it again")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
