"""Async work from functions that are not, also where an event loop is running already, as in a notebook."""

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from typing import Any, TypeVar

Result = TypeVar("Result")


def run(work: Coroutine[Any, Any, Result]) -> Result:
    """What the work gives. Beside a running loop it has one of its own, in a thread that is waited for.

    Ctrl-C cancels it there too, so that what it holds is closed.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    runner = asyncio.Runner()
    loop = runner.get_loop()

    def in_thread() -> Result:
        with runner:
            return runner.run(work)

    with ThreadPoolExecutor(1) as thread:
        done = thread.submit(in_thread)
        try:
            while not done.done():  # a thread that waits without end may not see the signal
                wait([done], timeout=1)
        except KeyboardInterrupt:
            with suppress(RuntimeError):  # it ended meanwhile
                loop.call_soon_threadsafe(lambda: [task.cancel() for task in asyncio.all_tasks(loop)])
            raise
        return done.result()
