"""An append-only JSONL file of records by key: what was answered once is never asked again.

A record is durable (fsync) before `put` returns; records that arrive while a sync runs share the next one.
Nothing is ever rewritten, so a SIGKILL loses at most records whose `put` had not returned; the torn last
line it may leave is cut off on opening.
"""

import asyncio
import os
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Self

import msgspec

from ..errors import UserError
from ..io.files import locked
from ..schema import Json

_BEGINS = b'{"key":"'
"""How every line begins: what tells a store from another file."""


class _Head(msgspec.Struct):
    key: str


_HEAD = msgspec.json.Decoder(_Head)


class Store:
    """Records by key in the JSONL file `path`, one process at a time.

    A record is a JSON object; the store adds the field `key` and looks at nothing else. Values stay on disk:
    memory holds the keys and their places. Raises UserError for a file that another process writes, that is
    damaged before its last line, or that cannot be written.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self._places: dict[str, tuple[int, int]] = {}
        self._pending: list[tuple[str, bytes, asyncio.Future[None]]] = []
        self._flusher: asyncio.Task[None] | None = None
        self._writing = threading.Lock()
        self._held = ExitStack()
        refuse_foreign(self.path)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._held.enter_context(locked(self.path.absolute()))
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            self._held.callback(os.close, self._file)
            self._size = self._load()
        except BaseException as error:  # what was opened is closed, then it goes on
            self._held.close()
            if not isinstance(error, OSError):
                raise
            raise UserError(
                f"{self.path} cannot be used as a store: {error.strerror}: choose another --store"
            ) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Gives file and lock back. Records whose `put` has not returned may be lost."""
        self._held.close()

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, key: str) -> bool:
        return key in self._places

    def keys(self) -> Iterator[str]:
        """Keys of all stored answers, in the order in which they were first stored."""
        return iter(self._places)

    def get(self, key: str) -> dict[str, Json] | None:
        """The record under `key` (with its field `key`), or None."""
        place = self._places.get(key)
        if place is None:
            return None
        record: dict[str, Json] = msgspec.json.decode(os.pread(self._file, place[1], place[0]))
        return record

    def extend(self, records: dict[str, dict[str, Json]]) -> None:
        """Appends records by key; returns when they are on disk. For before anything is put."""
        if records:
            lines = [(key, msgspec.json.encode({"key": key, **one}) + b"\n") for key, one in records.items()]
            self._append(lines)

    async def put(self, key: str, record: dict[str, Json]) -> None:
        """Appends a record; returns when it is on disk. A later record under the same key replaces it."""
        line = msgspec.json.encode({"key": key, **record}) + b"\n"
        done = asyncio.get_running_loop().create_future()
        self._pending.append((key, line, done))
        if self._flusher is None:
            self._flusher = asyncio.create_task(self._flush())
        await done

    async def _flush(self) -> None:
        """Writes what is pending, batch by batch, and lets those who wait know."""
        batch: list[tuple[str, bytes, asyncio.Future[None]]] = []
        try:
            while self._pending:
                batch, self._pending = self._pending, []
                try:
                    await asyncio.to_thread(self._append, [(key, line) for key, line, _ in batch])
                except UserError as error:
                    for *_, done in batch:
                        if not done.done():
                            done.set_exception(UserError(str(error)))
                for *_, done in batch:
                    if not done.done():
                        done.set_result(None)
        finally:  # when the loop is shut down, nobody is left waiting
            for *_, done in batch + self._pending:
                done.cancel()
            self._pending.clear()
            self._flusher = None

    def _append(self, records: list[tuple[str, bytes]]) -> None:
        with self._writing:
            data = memoryview(b"".join(line for _, line in records))
            written = 0
            try:
                while written < len(data):
                    written += os.pwrite(self._file, data[written:], self._size + written)
                os.fsync(self._file)
            except OSError as error:
                raise UserError(
                    f"{self.path} cannot be written: {error.strerror}; what it holds is kept"
                ) from None
            for key, line in records:
                self._places[key] = (self._size, len(line))
                self._size += len(line)

    def _load(self) -> int:
        """Reads the keys, cuts off a torn last line, and gives the size of what is good."""
        good = 0
        for key, line in _lines(self.path):
            self._places[key] = (good, len(line))
            good += len(line)
        os.ftruncate(self._file, good)
        return good


def read_lines(path: Path) -> Iterator[tuple[str, dict[str, Json]]]:
    """Every whole record of the store at `path` under its key, oldest first; the file is only read.

    A last line that is torn, or being written at this moment, is left out. Raises UserError for a file that
    is not a store, or that is damaged before its last line.
    """
    refuse_foreign(path)
    return ((key, msgspec.json.decode(line)) for key, line in _lines(path))


def _lines(path: Path) -> Iterator[tuple[str, bytes]]:
    """Key and text of every record but a torn last one."""
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                key = _HEAD.decode(line).key
            except ValueError as error:
                if not file.read(1):
                    return
                raise UserError(
                    f"{path}, line {number} is damaged ({error}): fix or remove that line"
                ) from None
            if line.endswith(b"\n"):
                yield key, line


def refuse_foreign(path: Path) -> None:
    """UserError for a file, a folder or a link that is there and is not a store: said before any work."""
    if os.path.lexists(path) and not (path.is_file() and _begins(path)):
        raise UserError(f"{path} is not a store that rbtc wrote: name another file")


def _begins(path: Path) -> bool:
    """Whether a store's line is there, or what a crash leaves of one: its beginning, or zeros."""
    with path.open("rb") as file:
        text = file.read(len(_BEGINS))
    return text.startswith(_BEGINS) or _BEGINS.startswith(text) or not text.strip(b"\0")
