"""Work in order on any number of processes, or on Ray: what comes out is the same, whoever did it."""

import gc
import hashlib
import multiprocessing
import os
import re
import signal
import tempfile
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import msgspec

from .. import __version__
from ..errors import UserError
from ..io.files import named
from ..schema import Json, dumps

if TYPE_CHECKING:
    import pyarrow as pa

Item = TypeVar("Item")
Result = TypeVar("Result")

_work: Callable[[Any], Any] | None = None


class Workers(msgspec.Struct, frozen=True, kw_only=True):
    """Who does the work. Moves no byte of what comes out."""

    num_proc: int = 1
    """Processes on this machine."""
    engine: Literal["local", "ray"] = "local"
    address: str | None = None
    """Of a Ray cluster to join, as `ray.init` takes it; None: one of `num_proc` CPUs is started here."""


SERIAL = Workers()


def map_ordered(
    work: "Callable[[Item], pa.Table]",
    items: Iterable[Item],
    workers: Workers = SERIAL,
    kept: Path | None = None,
) -> "Iterator[pa.Table]":
    """`work` on every item, results in the items' order; at most two items a process are in flight.

    Results are Arrow tables; anything else travels in a table's schema metadata (`parquet.noted`).
    `work` may be a closure over anything: processes are forked, so what it reads is shared and never copied;
    Ray gets one pickle of it. With Ray, finished parts are also put into the folder `kept`, and a later call
    with the same work and items takes them from there.

    Raises what `work` raises; UserError if a process is killed from outside.
    """
    if workers.engine == "ray":
        from . import cluster

        yield from cluster.map_ordered(work, items, workers, kept)
        return
    with collecting_rarely():
        if workers.num_proc <= 1:
            yield from map(work, items)
            return
        with (
            # Interrupted more than once, a process may still be writing its part.
            tempfile.TemporaryDirectory(prefix="rbtc-parts-", ignore_cleanup_errors=True) as folder,
            closing(forked(lambda item: _filed(work(item), folder), items, workers.num_proc)) as paths,
        ):
            yield from map(_mapped, paths)


def forked(work: Callable[[Item], Result], items: Iterable[Item], num_proc: int) -> Generator[Result]:
    """`work` on every item in `num_proc` forked processes, results in the items' order; they are pickled.

    Raises what `work` raises; UserError if a process is killed from outside.
    """
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(num_proc, context, initializer=_begin, initargs=(work,)) as pool:
        waiting: deque[Future[Result]] = deque()
        try:
            for item in items:
                with _interrupts_later():  # the first of these forks
                    waiting.append(pool.submit(_do, item))
                if len(waiting) >= 2 * num_proc:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        except BrokenProcessPool:
            raise UserError(
                "a worker process was killed (out of memory?): run again, with a smaller --num-proc where "
                "the command has one"
            ) from None
        finally:
            for future in waiting:
                future.cancel()


@contextmanager
def on_ray(workers: Workers) -> Iterator[Any]:
    """The module `ray`, connected for this block and whatever is done in it; None with the local engine."""
    if workers.engine != "ray":
        yield None
        return
    from . import cluster

    with cluster.session(workers) as ray:
        yield ray


def checkpoint_dir(out: Path, *made_of: Json) -> Path:
    """The hidden folder beside `out` for the finished parts of what is made of `made_of`."""
    key = hashlib.sha256(dumps((__version__, *made_of)).encode()).hexdigest()[:16]
    return out.absolute().parent / f".{out.name}.{key}.parts"


def remove_checkpoints(out: Path) -> None:
    """Removes every such folder of `out`, which stands now, as far as it holds finished parts of ours."""
    wanted = re.compile(re.escape(f".{out.name}.") + r"[0-9a-f]{16}\.parts")
    for folder in list(out.absolute().parent.iterdir()):
        if wanted.fullmatch(folder.name) and folder.is_dir() and not folder.is_symlink():
            from .cluster import is_part

            for part in folder.iterdir():
                if part.is_file() and not part.is_symlink() and is_part(part):
                    part.unlink()
            with suppress(OSError):  # something else is in it
                folder.rmdir()


def cores() -> int:
    """The processors this process may use."""
    return len(os.sched_getaffinity(0))


def collect_rarely() -> None:
    """Tells the garbage collector to look at new objects only, and rarely: rows hold no cycles.

    It would else walk through every sample in memory again and again, a fifth of a build's time; and a forked
    process that walks through shared memory copies it. Garbage among the old objects waits: to find it here
    takes longer than most of the work that this is called for.
    """
    gc.collect(1)
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


@contextmanager
def _interrupts_later() -> Iterator[None]:
    """Ctrl-C in this block is felt after it; a process that is forked in it feels none."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin(work: Callable[[Any], Any]) -> None:
    global _work
    _work = work
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process; the parent ends this one


def _do(item: Any) -> Any:
    assert _work is not None
    return _work(item)


def _filed(table: "pa.Table", folder: str) -> str:
    """The table in a file, which costs a tenth of a pipe's copying and pickling."""
    import pyarrow as pa

    handle, path = tempfile.mkstemp(dir=folder)
    os.close(handle)
    with named(Path(path)), pa.OSFile(path, "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return path


def _mapped(path: str) -> "pa.Table":
    """The table in a file, which is gone once the table is."""
    import pyarrow as pa

    with pa.memory_map(path) as file:
        table = pa.ipc.open_file(file).read_all()
    Path(path).unlink()
    return table
