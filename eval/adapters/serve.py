"""Our rows for a harness that cannot share an environment with us: a process that reads and writes lines.

    python -m robustbench_tc.eval.adapters.serve

Every line of the input is a request `{"id": n, "do": NAME, …}`, every line of the output its answer
`{"id": n, …}`, or `{"id": n, "error": one line}`. Answers come when they are ready, in any order.

    open   kind: live or static, settings: {…}   → rows: [{id, clean_id, type, messages}], line: LINE; once
    begin  row, model                            → dialogue: n, ask: {messages, tools} or null
    reply  dialogue, completion                  → ask: the next, null once it has ended
    end    dialogue                              → score: {reward, metrics, record}; it is closed
    gold   row                                   → score: that of gold itself

The process ends with its input. Nothing of what a model said is evaluated. A line has at most LINE bytes: a
longer one ends the process, with one line on stderr and exit code 1.
"""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from robustbench_tc.errors import UserError, unknown
from robustbench_tc.llm import LLMError
from robustbench_tc.schema import Json, dumps

from .dialogue import Dialogue, Rows, answer_of
from .live_rows import LiveRows
from .static_rows import StaticRows

KINDS: dict[str, Callable[..., Any]] = {"live": LiveRows, "static": StaticRows}

LINE = 64 * 2**20
"""Bytes of a request."""


class Service:
    """Answers requests; dialogues are numbered from 1."""

    def __init__(self) -> None:
        self._rows: Rows | None = None
        self._dialogues: dict[int, Dialogue] = {}
        self._begun = 0

    async def answer(self, line: bytes) -> dict[str, Json]:
        """The answer to one line; what is wrong with it is one line in it."""
        number: Json = None
        try:
            asked = msgspec.json.decode(line)
            if not isinstance(asked, dict):
                raise UserError("a request is a JSON object")
            number = asked.pop("id", None)
            does: dict[str, Callable[..., Awaitable[dict[str, Json]]]] = {
                "open": self._open,
                "begin": self._begin,
                "reply": self._reply,
                "end": self._end,
                "gold": self._gold,
            }
            name = asked.pop("do", None)
            if name not in does:
                raise unknown("request", str(name), does)
            return {"id": number, **await does[name](**asked)}
        except (UserError, LLMError) as error:
            return {"id": number, "error": str(error)}
        except (msgspec.DecodeError, TypeError, KeyError) as error:
            return {"id": number, "error": f"not a request: {' '.join(str(error).split())[:300]}"}

    async def close(self) -> None:
        """Gives back every dialogue, and the worlds."""
        for dialogue in self._dialogues.values():
            await dialogue.close()
        if isinstance(self._rows, LiveRows):
            await self._rows.__aexit__()

    async def _open(self, kind: str, settings: dict[str, Json]) -> dict[str, Json]:
        if kind not in KINDS:
            raise unknown("kind of rows", kind, KINDS)
        if self._rows is not None:
            raise UserError("rows were opened already")
        self._rows = KINDS[kind](**settings)
        return {"rows": self._rows.rows(), "line": LINE}

    async def _begin(self, row: str, model: str = "") -> dict[str, Json]:
        dialogue = self._opened().begin(row, model)
        self._begun += 1
        self._dialogues[self._begun] = dialogue
        return {"dialogue": self._begun, **_next(dialogue)}

    async def _reply(self, dialogue: int, completion: dict[str, Json]) -> dict[str, Json]:
        found = self._dialogues[dialogue]
        if found.ask() is None:
            raise UserError("this dialogue has ended")
        await found.reply(answer_of(found, completion))
        return _next(found)

    async def _end(self, dialogue: int) -> dict[str, Json]:
        return {"score": msgspec.to_builtins(await self._dialogues.pop(dialogue).score())}

    async def _gold(self, row: str) -> dict[str, Json]:
        return {"score": msgspec.to_builtins(await self._opened().gold(row))}

    def _opened(self) -> Rows:
        if self._rows is None:
            raise UserError("no rows were opened")
        return self._rows


def _next(dialogue: Dialogue) -> dict[str, Json]:
    ask = dialogue.ask()
    return {"ask": None if ask is None else {"messages": ask.messages, "tools": ask.tools}}


async def serve() -> None:
    """Until the input ends. Raises UserError where it cannot be read."""
    reader = asyncio.StreamReader(limit=LINE)
    try:
        await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), sys.stdin.buffer
        )
    except ValueError:
        raise UserError("requests are read from a pipe, not from a file") from None
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what a package prints is not an answer
    service, under_way = Service(), set[asyncio.Task[None]]()
    opened = asyncio.Event()

    async def one(line: bytes) -> None:
        said = await service.answer(line)
        out.write(dumps(said).encode() + b"\n")
        out.flush()
        opened.set()

    try:
        while line := await _line(reader):
            task = asyncio.create_task(one(line))
            under_way.add(task)
            task.add_done_callback(under_way.discard)
            await opened.wait()  # everything else needs the rows
    finally:
        for task in under_way:
            task.cancel()
        await service.close()


async def _line(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.readline()
    except ValueError:  # asyncio's for a line over the limit
        raise UserError(f"a request has more than {LINE:,} bytes: nothing after it can be read") from None


if __name__ == "__main__":
    try:
        asyncio.run(serve())
    except UserError as wrong:
        sys.exit(str(wrong))
    except KeyboardInterrupt:  # a terminal sends it to the harness and to this process
        sys.exit(130)
