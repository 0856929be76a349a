"""Work in order on any number of processes, or on Ray: what comes out is the same, whoever did it."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any, Literal, TypeVar

import msgspec

from ..errors import UserError
from . import cluster

Item = TypeVar("Item")
Result = TypeVar("Result")

_work: Callable[[Any], Any]
"""In a worker process: what it does."""


class Workers(msgspec.Struct, frozen=True, kw_only=True):
    """Who does the work. Moves no byte of what comes out."""

    num_proc: int = 1
    """Processes on this machine."""
    engine: Literal["local", "ray"] = "local"
    address: str | None = None
    """Of a Ray cluster to join, as `ray.init` takes it; None: one of `num_proc` CPUs is started here."""


SERIAL = Workers()


def map_ordered(
    work: Callable[[Item], Result], items: Iterable[Item], workers: Workers = SERIAL
) -> Iterator[Result]:
    """`work` on every item, results in the items' order; at most two items a process are in flight.

    `work` may be a closure over anything: processes are forked, so what it reads is shared and never copied;
    Ray gets one pickle of it. Results are pickled.

    Raises what `work` raises; UserError if a process is killed from outside.
    """
    if workers.engine == "local" and workers.num_proc <= 1:
        yield from map(work, items)
    elif workers.engine == "local":
        yield from _pooled(work, items, workers.num_proc)
    else:
        yield from cluster.map_ordered(work, items, workers.num_proc, workers.address)


@contextmanager
def on_ray(workers: Workers) -> Iterator[Any]:
    """The module `ray`, connected for this block and whatever is done in it; None with the local engine."""
    if workers.engine != "ray":
        yield None
        return
    with cluster.session(workers.num_proc, workers.address) as ray:
        yield ray


def _pooled(work: Callable[[Item], Result], items: Iterable[Item], num_proc: int) -> Iterator[Result]:
    fork = multiprocessing.get_context("fork")
    pool = ProcessPoolExecutor(num_proc, fork, initializer=_start, initargs=(work,))
    try:
        for future in cluster.begun(lambda item: pool.submit(_do, item), items, 2 * num_proc):
            yield future.result()
    except BrokenProcessPool:
        raise UserError(
            "a worker process was killed (out of memory?): run again, with a smaller --num-proc where "
            "the command has one"
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


def _start(work: Callable[[Any], Any]) -> None:
    """In a new worker. Ctrl-C, which reaches every process of a terminal, is left to the parent."""
    global _work
    _work = work
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """Else workers of a parent that was killed would wait for work for ever."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _do(item: Any) -> Any:
    return _work(item)
