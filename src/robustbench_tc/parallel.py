"""Work in order on any number of processes, or on Ray: what comes out is the same, whoever did it."""

import gc
import glob
import hashlib
import multiprocessing
import os
import shutil
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import msgspec

from . import __version__
from .errors import UserError
from .schema import Json, dumps

if TYPE_CHECKING:
    import pyarrow as pa

Item = TypeVar("Item")

_work: Callable[[Any], Any] | None = None
_folder: str | None = None


class Workers(msgspec.Struct, frozen=True, kw_only=True):
    """Who does the work. Moves no byte of what comes out."""

    num_proc: int = 1
    """Processes on this machine."""
    engine: Literal["local", "ray"] = "local"
    address: str | None = None
    """Of a Ray cluster to join, as `ray.init` takes it; None: one of `num_proc` CPUs is started here."""


ALONE = Workers()


def ordered(
    work: "Callable[[Item], pa.Table]",
    items: Iterable[Item],
    workers: Workers = ALONE,
    kept: Path | None = None,
) -> "Iterator[pa.Table]":
    """`work` on every item, results in the items' order; at most two items a process are in flight.

    Results are Arrow tables; what else is to be told travels in a table's schema metadata (`parquet.noted`).
    `work` may be a closure over anything: processes are forked, so what it reads is shared and never copied;
    Ray gets one pickle of it. With Ray, finished parts are also put into the folder `kept`, and a later call
    with the same work and items takes them from there.

    Raises what `work` raises; UserError if a process is killed from outside.
    """
    if workers.engine == "ray":
        from . import cluster

        yield from cluster.ordered(work, items, workers, kept)
        return
    with collecting_rarely():
        if workers.num_proc <= 1:
            yield from map(work, items)
        else:
            yield from _forked(work, items, workers.num_proc)


@contextmanager
def on_ray(workers: Workers) -> Iterator[Any]:
    """The module `ray`, connected for this block; see `cluster.session`."""
    from . import cluster

    with cluster.session(workers) as ray:
        yield ray


@contextmanager
def ready(workers: Workers) -> Iterator[None]:
    """Holds the cluster, if there is to be one, so that what is done in this block does not start its own."""
    if workers.engine != "ray":
        yield
        return
    with on_ray(workers):
        yield


def kept_beside(out: Path, *made_of: Json) -> Path:
    """The hidden folder beside `out` for the finished parts of what is made of `made_of`."""
    key = hashlib.sha256(dumps((__version__, *made_of)).encode()).hexdigest()[:16]
    return out.absolute().parent / f".{out.name}.{key}.parts"


def forget_kept(out: Path) -> None:
    """Removes every such folder of `out`: it stands."""
    for folder in out.absolute().parent.glob(f".{glob.escape(out.name)}.*.parts"):
        shutil.rmtree(folder, ignore_errors=True)


def cores() -> int:
    """The processors this process may use."""
    return len(os.sched_getaffinity(0))


def collect_rarely() -> None:
    """Tells the garbage collector to look at new objects only, and rarely: rows hold no cycles.

    It would else walk through every sample in memory again and again, a fifth of a build's time; and a forked
    process that walks through shared memory copies it.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 100)


@contextmanager
def collecting_rarely() -> Iterator[None]:
    """`collect_rarely` for a block."""
    before = gc.get_threshold()
    collect_rarely()
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def _forked(work: "Callable[[Item], pa.Table]", items: Iterable[Item], num_proc: int) -> "Iterator[pa.Table]":
    context = multiprocessing.get_context("fork")
    with (
        tempfile.TemporaryDirectory(prefix="rbtc-parts-") as folder,
        ProcessPoolExecutor(num_proc, context, initializer=_begin, initargs=(work, folder)) as pool,
    ):
        waiting: deque[Future[str]] = deque()
        try:
            for item in items:
                waiting.append(pool.submit(_do, item))
                if len(waiting) >= 2 * num_proc:
                    yield _mapped(waiting.popleft().result())
            while waiting:
                yield _mapped(waiting.popleft().result())
        except BrokenProcessPool:
            raise UserError(
                "a worker process was killed (out of memory?): run again with a smaller --num-proc"
            ) from None
        finally:
            for future in waiting:
                future.cancel()


def _begin(work: Callable[[Any], Any], folder: str) -> None:
    global _work, _folder
    _work, _folder = work, folder


def _do(item: Any) -> str:
    """Does the work; its table goes into a file, which costs a tenth of a pipe's copying and pickling."""
    import pyarrow as pa

    assert _work is not None
    table = _work(item)
    handle, path = tempfile.mkstemp(dir=_folder)
    os.close(handle)
    with pa.OSFile(path, "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return path


def _mapped(path: str) -> "pa.Table":
    """The table in a file, which is gone once the table is."""
    import pyarrow as pa

    with pa.memory_map(path) as file:
        table = pa.ipc.open_file(file).read_all()
    Path(path).unlink()
    return table
