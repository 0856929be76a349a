"""Work in order on any number of processes: what comes out is the same, whoever did it."""

import multiprocessing
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

from .errors import UserError

Item = TypeVar("Item")
Result = TypeVar("Result")

_work: Callable[[Any], Any] | None = None


def ordered(work: Callable[[Item], Result], items: Iterable[Item], num_proc: int = 1) -> Iterator[Result]:
    """`work` on every item, results in the items' order; at most two items a process are in flight.

    With one process nothing is forked. With more, `work` may be a closure over anything: the processes are
    forked, so what it reads is shared and never copied. Items and results travel as pickles.

    Raises what `work` raises; UserError if a process is killed from outside.
    """
    if num_proc <= 1:
        yield from map(work, items)
        return
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(num_proc, context, initializer=_begin, initargs=(work,)) as pool:
        waiting: deque[Future[Result]] = deque()
        try:
            for item in items:
                waiting.append(pool.submit(_do, item))
                if len(waiting) >= 2 * num_proc:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        except BrokenProcessPool:
            raise UserError(
                "a worker process was killed (out of memory?): run again with a smaller --num-proc"
            ) from None
        finally:
            for future in waiting:
                future.cancel()


def cores() -> int:
    """The processors this process may use."""
    return len(os.sched_getaffinity(0))


def _begin(work: Callable[[Any], Any]) -> None:
    global _work
    _work = work


def _do(item: Any) -> Any:
    assert _work is not None
    return _work(item)
