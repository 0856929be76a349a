"""The port opens first: who waits for what while the rest is made, and what happens when it cannot be."""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the board needs the extra leaderboard (make env-leaderboard)")

from fastapi import FastAPI
from starlette.responses import PlainTextResponse

from robustbench_tc.eval.leaderboard import front
from robustbench_tc.eval.leaderboard.front import Front

Answer = tuple[int, str, dict[str, str]]


def app(says: str, *paths: str) -> FastAPI:
    made = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    for path in paths:
        made.add_route(path, lambda _: PlainTextResponse(says))
    return made


class Served:
    """A front whose parts are ready when the test says so, as a server drives it."""

    def __init__(self, loads: Any = None, makes: Any = None) -> None:
        self.may_load, self.may_make = threading.Event(), threading.Event()
        self.failures = 0
        self._loads, self._makes = loads, makes
        self.front = Front(app("first", "/", "/types"), self._load, self._make, self._failed)

    def _load(self) -> None:
        self.may_load.wait(60)
        if self._loads is not None:
            raise self._loads

    def _make(self) -> FastAPI:
        self.may_make.wait(60)
        if self._makes is not None:
            raise self._makes
        return app("whole", "/", "/submit/", "/types")

    def _failed(self) -> None:
        self.failures += 1

    def run(self, work: "Callable[[Served], Awaitable[None]]") -> None:
        """Serves while `work` goes on."""

        async def all_of_it() -> None:
            said: asyncio.Queue[Any] = asyncio.Queue()
            told: asyncio.Queue[Any] = asyncio.Queue()
            await said.put({"type": "lifespan.startup"})
            living = asyncio.create_task(self.front({"type": "lifespan"}, said.get, told.put))
            assert (await told.get())["type"] == "lifespan.startup.complete"
            await work(self)
            await said.put({"type": "lifespan.shutdown"})
            assert (await asyncio.wait_for(told.get(), 10))["type"] == "lifespan.shutdown.complete"
            await living

        try:
            asyncio.run(all_of_it())
        finally:
            self.may_load.set()
            self.may_make.set()

    async def get(self, path: str) -> Answer:
        sent: list[Any] = []

        async def receive() -> Any:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        scope = {"type": "http", "method": "GET", "path": path, "headers": [], "query_string": b""}
        await self.front(scope | {"root_path": "", "raw_path": path.encode()}, receive, send)
        headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
        return sent[0]["status"], b"".join(one.get("body", b"") for one in sent[1:]).decode(), headers


async def _until(true: Callable[[], bool]) -> None:
    ends = time.monotonic() + 30
    while not true():
        assert time.monotonic() < ends
        await asyncio.sleep(0.005)


def test_pages_wait_for_the_board_alone_and_the_rest_for_everything() -> None:
    async def work(served: Served) -> None:
        page, other = (asyncio.create_task(served.get(path)) for path in ("/", "/submit/"))
        await asyncio.sleep(0.02)
        assert not page.done() and not other.done()
        served.may_load.set()
        assert (await page)[:2] == (200, "first") and not other.done()
        assert (await served.get("/types"))[1] == "first"
        served.may_make.set()
        assert (await other)[:2] == (200, "whole")
        assert (await served.get("/"))[1] == "whole"
        assert (await served.get("/nowhere"))[0] == 404

    Served().run(work)


def test_who_has_waited_long_enough_is_told_to_come_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(front, "WAIT_S", 0.02)

    async def work(served: Served) -> None:
        served.may_load.set()
        status, said, headers = await served.get("/submit/")
        assert status == 503 and "try again" in said and headers["retry-after"] == "5"
        assert (await served.get("/"))[1] == "first"

    Served().run(work)


@pytest.mark.parametrize("part", ["loads", "makes"])
def test_what_cannot_be_made_is_kept_and_ends_the_server(part: str) -> None:
    error = OSError("the dataset is away")

    async def work(served: Served) -> None:
        served.may_load.set()
        waiting = asyncio.create_task(served.get("/submit/"))
        await asyncio.sleep(0.01)
        served.may_make.set()
        await _until(lambda: served.failures > 0)
        assert served.front.error is error and served.failures == 1
        assert (await waiting)[0] == 503  # not after two minutes, and without what went wrong
        status, said, _ = await served.get("/")
        assert status == 503 and "dataset" not in said

    Served(**{part: error}).run(work)


def test_a_server_that_is_stopped_waits_for_nothing_that_is_still_made() -> None:
    async def while_loading(served: Served) -> None:
        await asyncio.sleep(0.01)

    async def while_making(served: Served) -> None:
        served.may_load.set()
        await served.get("/")

    for work in (while_loading, while_making):
        served = Served()
        served.run(work)
        assert served.failures == 0 and served.front.error is None


def test_the_whole_site_begins_and_ends_once() -> None:
    seen: list[str] = []

    class Whole(Served):
        def _make(self) -> FastAPI:
            made = super()._make()
            made.router.on_startup.append(lambda: seen.append("begins"))
            made.router.on_shutdown.append(lambda: seen.append("ends"))
            return made

    async def work(served: Served) -> None:
        served.may_load.set()
        served.may_make.set()
        assert (await served.get("/submit/"))[1] == "whole" and seen == ["begins"]

    Whole().run(work)
    assert seen == ["begins", "ends"]
