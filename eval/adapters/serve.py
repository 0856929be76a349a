"""Our rows for a harness that cannot share an environment with us: a process that answers on a Unix socket.

    python -m robustbench_tc.eval.adapters.serve live|static SETTINGS SOCKET

SETTINGS are the rows', as JSON. It prints a line once it listens, and ends with its standard input. Requests
and answers are JSON over HTTP; what is wrong with a request is one line, under status 400.

    POST /rows                          → rows: [{id, clean_id, type, messages}]
    POST /begin  row, model             → dialogue: n, ask: {messages, tools} or null
    POST /reply  dialogue, completion   → ask: the next, null once it has ended
    POST /end    dialogue               → score: {reward, metrics, record}; it is closed
    POST /gold   row                    → score: that of gold itself

Nothing of what a model said is evaluated. A request has at most REQUEST bytes.
"""

import asyncio
import os
import sys
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from aiohttp import web

from robustbench_tc.errors import UserError, unknown
from robustbench_tc.llm import LLMError
from robustbench_tc.schema import Json

from .dialogue import Dialogue, Rows, answer_of
from .live_rows import LiveRows
from .static_rows import StaticRows

KINDS: dict[str, Callable[..., Any]] = {"live": LiveRows, "static": StaticRows}

REQUEST = 64 * 2**20


class Service:
    """Answers requests; dialogues are numbered from 1."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._dialogues: dict[int, Dialogue] = {}
        self._begun = 0

    async def answer(self, request: web.Request) -> web.Response:
        """The answer to `POST /NAME`."""
        does: dict[str, Callable[..., Awaitable[dict[str, Json]]]] = {
            "rows": self.rows,
            "begin": self.begin,
            "reply": self.reply,
            "end": self.end,
            "gold": self.gold,
        }
        try:
            name = request.match_info["name"]
            if name not in does:
                raise unknown("request", name, does)
            given = msgspec.json.decode(await request.read(), type=dict[str, Any])
            return web.json_response(body=msgspec.json.encode(await does[name](**given)))
        except (UserError, LLMError) as error:
            return web.Response(status=400, text=str(error))
        except (msgspec.DecodeError, TypeError, KeyError) as error:
            return web.Response(status=400, text=f"not a request: {' '.join(str(error).split())[:300]}")

    async def close(self, app: web.Application) -> None:
        """Gives back every dialogue, and the worlds."""
        for dialogue in self._dialogues.values():
            await dialogue.close()
        self._rows.close()

    async def rows(self) -> dict[str, Json]:
        return {"rows": self._rows.rows()}

    async def begin(self, row: str, model: str = "") -> dict[str, Json]:
        dialogue = self._rows.begin(row, model)
        self._begun += 1
        self._dialogues[self._begun] = dialogue
        return {"dialogue": self._begun, **_next(dialogue)}

    async def reply(self, dialogue: int, completion: dict[str, Json]) -> dict[str, Json]:
        found = self._dialogues[dialogue]
        if found.ask() is None:
            raise UserError("this dialogue has ended")
        await found.reply(answer_of(found, completion))
        return _next(found)

    async def end(self, dialogue: int) -> dict[str, Json]:
        return {"score": msgspec.to_builtins(await self._dialogues.pop(dialogue).score())}

    async def gold(self, row: str) -> dict[str, Json]:
        return {"score": msgspec.to_builtins(await self._rows.gold(row))}


def _next(dialogue: Dialogue) -> dict[str, Json]:
    ask = dialogue.ask()
    return {"ask": None if ask is None else {"messages": ask.messages, "tools": ask.tools}}


def application(rows: Rows) -> web.Application:
    """What answers requests about these rows."""
    service, found = Service(rows), web.Application(client_max_size=REQUEST)
    found.router.add_post("/{name}", service.answer)
    found.on_shutdown.append(service.close)
    return found


async def serve(rows: Rows, socket: str) -> None:
    """Until the standard input ends."""
    runner, loop, ended = web.AppRunner(application(rows)), asyncio.get_running_loop(), asyncio.Event()

    def wait() -> None:
        sys.stdin.buffer.read()
        loop.call_soon_threadsafe(ended.set)

    threading.Thread(target=wait, daemon=True).start()
    await runner.setup()
    await web.UnixSite(runner, socket).start()
    sys.stdout.write("it listens\n")
    sys.stdout.flush()
    os.dup2(2, 1)  # nobody reads what a package prints
    try:
        await ended.wait()
    finally:
        await runner.cleanup()


if __name__ == "__main__":
    try:
        kind, settings, place = sys.argv[1:]
        asyncio.run(serve(KINDS[kind](**msgspec.json.decode(settings)), place))
    except UserError as wrong:
        sys.exit(str(wrong))
    except KeyboardInterrupt:  # a terminal sends it to the harness and to this process
        sys.exit(130)
