"""`parallel.map_ordered` on Ray: one task per item around the same function, Arrow tables back, in order.

A task whose process or node is lost runs again elsewhere; nothing else does. Every part arrives sealed with
its checksum and is kept on disk until the command has succeeded, so that one that was cut off goes on where
it stopped. The nodes need this package in the same version, and nothing of each other's files.
"""

import hashlib
import os
import re
import socket
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from .. import __version__
from ..errors import UserError, need_extra
from ..io import files
from .parallel import Workers, collect_rarely

Item = TypeVar("Item")

ATTEMPTS = 4
"""How often Ray gives a task to another worker after losing the one that had it."""

OBJECT_STORE = 512 * 2**20
"""Bytes of shared memory of a Ray that is started here: parts are small, and few are in flight."""

_DIGEST = hashlib.sha256().digest_size

_PART = re.compile(r"\d{8}\.part")

_held: tuple[str, Callable[[Any], pa.Table]] | None = None


def map_ordered(
    work: Callable[[Item], pa.Table], items: Iterable[Item], workers: Workers, kept: Path | None = None
) -> Iterator[pa.Table]:
    """See `parallel.map_ordered`. UserError where there is no Ray, no cluster, or no worker survives."""
    parts = Parts(kept)
    with session(workers) as ray:
        do = ray.remote(max_retries=ATTEMPTS)(_do)
        # In a list Ray hands the reference over, not the object: a worker fetches it once, not per task.
        shared = [ray.put(work)]
        room = 2 * max(1, int(ray.cluster_resources().get("CPU", 1)))
        waiting: deque[tuple[int, Any]] = deque()

        def arrive() -> pa.Table:
            number, part = waiting.popleft()
            return part if isinstance(part, pa.Table) else parts.put(number, _get(ray, part))

        for number, item in enumerate(items):
            found = parts.get(number)
            waiting.append((number, do.remote(shared, item, __version__) if found is None else found))
            if len(waiting) >= room:
                yield arrive()
        while waiting:
            yield arrive()


def seal(table: pa.Table) -> bytes:
    """A table as its checksum and a compressed Arrow stream."""
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    data = sink.getvalue().to_pybytes()
    return hashlib.sha256(data).digest() + data


def unseal(data: bytes) -> pa.Table:
    """The table of `seal`. Raises ValueError where a byte is missing or another."""
    if hashlib.sha256(data[_DIGEST:]).digest() != data[:_DIGEST]:
        raise ValueError("a part does not have its checksum")
    return pa.ipc.open_stream(data[_DIGEST:]).read_all()


def is_part(path: Path) -> bool:
    """Whether a file is a finished part with its checksum, or one that a killed run was writing."""
    if files.is_ours(path.name):
        return not files.is_held(path)
    if not _PART.fullmatch(path.name):
        return False
    with path.open("rb") as file:
        return file.read(_DIGEST) == hashlib.file_digest(file, "sha256").digest()


class Parts:
    """Finished parts in a folder, by number; nothing is kept without one."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def _path(self, number: int) -> Path | None:
        return None if self._folder is None else self._folder / f"{number:08d}.part"

    def get(self, number: int) -> pa.Table | None:
        """The part if it is there and whole."""
        path = self._path(number)
        try:
            return None if path is None else unseal(path.read_bytes())
        except (FileNotFoundError, ValueError):
            return None

    def put(self, number: int, data: bytes) -> pa.Table:
        """The table of a part that has arrived, checked and then kept."""
        try:
            table = unseal(data)
        except ValueError:
            raise UserError(f"part {number} was damaged on its way from a worker: run again") from None
        if (path := self._path(number)) is not None:
            with files.atomic_file(path, replace=True) as beside:
                beside.write_bytes(data)
        return table


def _do(shared: list[Any], item: Any, version: str) -> bytes:
    """One task: the work on one item, sealed."""
    global _held
    import ray

    if version != __version__:
        raise UserError(
            f"a Ray worker has robustbench-tc {__version__}, this machine {version}: install the same on all"
        )
    [reference] = shared
    if _held is None or _held[0] != reference.hex():
        _held = reference.hex(), ray.get(reference)
        collect_rarely()
    return seal(_held[1](item))


def _get(ray: Any, reference: Any) -> bytes:
    try:
        return bytes(ray.get(reference))
    except ray.exceptions.RayTaskError as error:
        raise error.cause from None
    except ray.exceptions.RayError as error:
        raise UserError(
            f"Ray lost a part {ATTEMPTS + 1} times ({type(error).__name__}; out of memory?): run the same "
            "command again, what is finished is kept"
        ) from None


@contextmanager
def session(workers: Workers) -> Iterator[Any]:
    """Ray, joined or started for this block; one that is already there is used and left running."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # a build does not phone home
    try:
        import ray
    except ImportError:
        raise need_extra("ray", "scale") from None
    if ray.is_initialized():
        yield ray
        return
    options: dict[str, Any] = {"address": workers.address}
    if workers.address is None:
        options = {
            "address": "local",
            "num_cpus": workers.num_proc,
            "include_dashboard": False,
            "object_store_memory": OBJECT_STORE,
        }
    try:
        _knock(workers.address)
        ray.init(**options, log_to_driver=False, logging_level="ERROR")
    except (OSError, RuntimeError, ValueError) as error:
        where = f"at {workers.address}" if workers.address else "on this machine"
        raise UserError(f"no Ray cluster {where}: {str(error).strip().splitlines()[0]}") from None
    try:
        yield ray
    finally:
        ray.shutdown()


def _knock(address: str | None) -> None:
    """Raises OSError where nobody listens at HOST:PORT: Ray would wait for somebody for a very long time."""
    host, colon, port = (address or "").removeprefix("ray://").rpartition(":")
    if colon and port.isdigit():
        socket.create_connection((host, int(port)), timeout=10).close()
