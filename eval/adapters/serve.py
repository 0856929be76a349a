"""Our rows for a harness that cannot share an environment with us: a process that answers on a Unix socket.

    python -m robustbench_tc.eval.adapters.serve SETTINGS SOCKET

SETTINGS are those of `Rows`, as JSON. It prints a line once it listens, and ends with its standard input.
Requests and answers are JSON over HTTP; what is wrong with a request is one line, under status 400.

    POST /rows                          → rows: [{id, clean_id, type, ask}]
    POST /begin  row, model             → dialogue: n, ask: {messages, tools} or null
    POST /reply  dialogue, completion   → ask: the next, null once it has ended
    POST /end    dialogue               → score: {reward, metrics, record}; it is closed
    POST /gold   row                    → score: that of gold itself

Nothing of what a model said is evaluated. A request has at most REQUEST bytes.
"""

import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from aiohttp import web

from robustbench_tc.errors import UserError, unknown
from robustbench_tc.eval.speakers import answer_of
from robustbench_tc.llm import LLMError
from robustbench_tc.llm.messages import completion as read_completion
from robustbench_tc.schema import Json

from .rows import Playing, Rows

REQUEST = 64 * 2**20


class Service:
    """Answers requests; dialogues are numbered from 1."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._playing: dict[int, Playing] = {}
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
        """Ends the worlds."""
        self._rows.worlds.close()

    async def rows(self) -> dict[str, Json]:
        return {
            "rows": [
                {
                    "id": row.id,
                    "clean_id": row.clean_id,
                    "type": row.type_code,
                    **_next(self._rows.begin(row.id)),
                }
                for row in self._rows.rows.values()
            ]
        }

    async def begin(self, row: str, model: str = "") -> dict[str, Json]:
        self._begun += 1
        self._playing[self._begun] = playing = self._rows.begin(row, model)
        return {"dialogue": self._begun, **_next(playing)}

    async def reply(self, dialogue: int, completion: dict[str, Json]) -> dict[str, Json]:
        playing = self._playing[dialogue]
        talk = playing.dialogue
        if talk.ended is not None:
            raise UserError("this dialogue has ended")
        await playing.reply(answer_of(read_completion(completion), talk.base(), talk.env.tools))
        return _next(playing)

    async def end(self, dialogue: int) -> dict[str, Json]:
        return {"score": msgspec.to_builtins(await self._playing.pop(dialogue).score())}

    async def gold(self, row: str) -> dict[str, Json]:
        return {"score": msgspec.to_builtins(await self._rows.gold(row))}


def _next(playing: Playing) -> dict[str, Json]:
    ask = playing.dialogue.ask()
    return {"ask": None if ask is None else {"messages": ask.messages, "tools": ask.tools}}


def application(rows: Rows) -> web.Application:
    """What answers requests about these rows."""
    service, found = Service(rows), web.Application(client_max_size=REQUEST)
    found.router.add_post("/{name}", service.answer)
    found.on_shutdown.append(service.close)
    return found


def _end_with_input() -> None:
    sys.stdin.buffer.read()
    os.kill(os.getpid(), signal.SIGTERM)


def _listening(_: str) -> None:
    os.write(1, b"it listens\n")
    os.dup2(2, 1)  # nobody reads what a package prints


if __name__ == "__main__":
    settings, socket = sys.argv[1:]
    try:
        app = application(Rows(**msgspec.json.decode(settings)))
    except UserError as wrong:
        sys.exit(str(wrong))
    threading.Thread(target=_end_with_input, daemon=True).start()
    web.run_app(app, path=socket, print=_listening, shutdown_timeout=1)
