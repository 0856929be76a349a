"""The port opens first: the board's pages answer while gradio and the dataset are still being loaded."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from starlette.responses import PlainTextResponse
from starlette.routing import Match

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.types import Receive, Scope, Send

WAIT_S = 120.0
"""How long a request waits for the part of the site that it needs."""

Made = TypeVar("Made")


class Front:
    """The board's pages at once, everything once it is made.

    `load` reads what the pages show and `make` gives the whole site; both block, in threads. If one of them
    raises, `error` has it and `failed` is called.
    """

    def __init__(
        self,
        first: "FastAPI",
        load: Callable[[], None],
        make: "Callable[[], FastAPI]",
        failed: Callable[[], None],
    ) -> None:
        self._first = first
        self._load = load
        self._make = make
        self._failed = failed
        self._whole: FastAPI | None = None
        self.error: BaseException | None = None

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        if self._whole is None:
            of_board = any(route.matches(scope)[0] is Match.FULL for route in self._first.routes)
            with suppress(TimeoutError):
                await asyncio.wait_for((self._loaded if of_board else self._ready).wait(), WAIT_S)
            if of_board and self.error is None:
                await (self._whole or self._first)(scope, receive, send)
                return
        if self._whole is not None:
            await self._whole(scope, receive, send)
        elif scope["type"] == "http":
            text = "The board is starting: try again in a moment.\n"
            await PlainTextResponse(text, 503, {"Retry-After": "5"})(scope, receive, send)

    async def _live(self, receive: "Receive", send: "Send") -> None:
        self._loaded, self._ready, over = asyncio.Event(), asyncio.Event(), asyncio.Event()
        await receive()
        task = asyncio.create_task(self._start(over))
        await send({"type": "lifespan.startup.complete"})
        await receive()
        over.set()
        if self._whole is None:
            task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        await send({"type": "lifespan.shutdown.complete"})

    async def _start(self, over: asyncio.Event) -> None:
        try:
            await _in_thread(self._load)
            self._loaded.set()
            whole = await _in_thread(self._make)
            async with whole.router.lifespan_context(whole):
                self._whole = whole
                self._ready.set()
                await over.wait()
        except Exception as error:
            self.error = error
            self._loaded.set()
            self._ready.set()
            self._failed()


async def _in_thread(work: Callable[[], Made]) -> Made:
    """In a thread that nobody waits for when the server is stopped meanwhile."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Made] = loop.create_future()

    def tell(call: Callable[..., None], value: Any) -> None:
        if not done.done():
            call(value)

    def run() -> None:
        call: Callable[..., None] = done.set_result
        value: Any
        try:
            value = work()
        except Exception as error:
            call, value = done.set_exception, error
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(tell, call, value)

    threading.Thread(target=run, daemon=True).start()
    return await done
