"""The MCP door between standard input and a child process, a message a line."""

import asyncio
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from functools import partial

from robustbench_tc.errors import UserError
from robustbench_tc.schema import Json

from . import jsonrpc
from .calls import Calls
from .jsonrpc import Message
from .pipes import Writer

ENDS_WITHIN_S = 5.0
"""How long a server may take to end once its input is closed."""


class Stdio:
    """Relays between our standard input and output and one server's."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._waiting: dict[str, asyncio.Future[Message]] = {}
        """Requests of the client's that the door looks at, and the door's own: id (as JSON) → answer."""
        self._dropped: set[str] = set()
        """The door's own questions that nobody waits for any more: their answers are not the client's."""
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._listening: list[Json] = []
        """Ids of the client's open subscriptions to changes of the tools."""
        self._initialized = False
        self._out = Writer(1)

    async def run(self, command: Sequence[str]) -> int:
        """Until either side ends. Returns the server's exit code; 0 where the client went first.

        Raises UserError for a command that cannot be started.
        """
        if shutil.which(command[0]) is None:
            raise UserError(f"the server {command[0]!r} cannot be started: No such file or directory")
        kind = os.fstat(0).st_mode
        if not (stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind) or os.isatty(0)):
            raise UserError(
                "the standard input is a file: a client has to write to a pipe (`cat FILE | rbtc …`)"
            )
        try:
            self._child = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, start_new_session=True
            )
        except OSError as error:
            raise UserError(f"the server {command[0]!r} cannot be started: {error.strerror}") from None
        assert self._child.stdin is not None
        self._to_server = Writer(self._child.stdin.fileno())
        sides: list[asyncio.Task[None]] = []
        try:
            sides += await self._sides()
            client, server = sides
            await asyncio.wait({client, server}, return_when=asyncio.FIRST_COMPLETED)
            gone = not client.done()
            if self._tasks:  # what the client has asked is answered
                await asyncio.wait(set(self._tasks.values()), timeout=ENDS_WITHIN_S)
            if not gone:  # and what the server still has to say is passed on
                await self._no_more()
                await asyncio.wait({server}, timeout=ENDS_WITHIN_S)
        finally:
            await self._end()
            if sides:
                await asyncio.wait(sides[1:], timeout=ENDS_WITHIN_S)
            for task in (*self._tasks.values(), *sides):
                task.cancel()
            self._out.end(ENDS_WITHIN_S)
        for side in sides:
            if side.done() and not side.cancelled():
                side.result()  # its error, if it has one
        return (self._child.returncode or 0) if gone else 0

    async def _sides(self) -> list[asyncio.Task[None]]:
        """Reads what the client says, and what the server says."""
        loop, this = asyncio.get_running_loop(), asyncio.current_task()
        if this is not None:  # as clients end their servers
            loop.add_signal_handler(signal.SIGTERM, this.cancel)
        of_client, of_server = (asyncio.StreamReader(limit=jsonrpc.MOST) for _ in range(2))
        for reader, pipe in ((of_client, sys.stdin), (of_server, self._child.stdout)):
            await loop.connect_read_pipe(partial(asyncio.StreamReaderProtocol, reader), pipe)
        return [
            asyncio.create_task(self._of_client(of_client)),
            asyncio.create_task(self._of_server(of_server)),
        ]

    async def _of_client(self, reader: asyncio.StreamReader) -> None:
        async for line in _lines(reader, "the client"):
            message = jsonrpc.read(line)
            if message is not None and self._calls.answers(message):
                key = _key(message["id"])
                self._tasks[key] = asyncio.create_task(self._answer(message, key))
                continue
            if message is not None:
                self._note(message)
            self._to_server.send(_ended(line))
            await self._to_server.drain()

    def _note(self, message: Message) -> None:
        """Remembers what a message that passes means for the door."""
        method, given = message.get("method"), jsonrpc.params(message)
        if method == "notifications/initialized":
            self._initialized = True
        elif method == "subscriptions/listen":
            wanted = given.get("notifications")
            if isinstance(wanted, dict) and wanted.get("toolsListChanged") is True:
                self._listening.append(message.get("id"))
        elif method == "notifications/cancelled":
            ended = given.get("requestId")
            self._listening = [one for one in self._listening if one != ended]
            task = self._tasks.pop(_key(ended), None)
            if task is not None:
                task.cancel()

    async def _answer(self, request: Message, key: str) -> None:
        try:
            answer = await self._calls.answer(request, self._forward, self._changed)
        except ConnectionError:
            answer = jsonrpc.failure(request, "the MCP server has ended")
        self._tasks.pop(key, None)
        self._out.send(jsonrpc.written(answer) + b"\n")

    async def _forward(self, request: Message) -> Message:
        key = _key(request["id"])
        answer: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._waiting[key] = answer
        try:
            self._to_server.send(jsonrpc.written(request) + b"\n")
            return await answer
        except asyncio.CancelledError:
            if str(request["id"]).startswith(self._calls.own):
                self._dropped.add(key)
            raise
        finally:
            self._waiting.pop(key, None)

    async def _changed(self) -> None:
        notices = [jsonrpc.changed(one) for one in self._listening]
        if self._initialized:
            notices.append(jsonrpc.changed())
        for notice in notices:
            self._out.send(jsonrpc.written(notice) + b"\n")

    async def _of_server(self, reader: asyncio.StreamReader) -> None:
        try:
            async for line in _lines(reader, "the server"):
                message = jsonrpc.read(line) if self._waiting or self._dropped else None
                if message is not None and jsonrpc.is_response(message):
                    answer = self._waiting.pop(_key(message["id"]), None)
                    if answer is not None:
                        if not answer.done():
                            answer.set_result(message)
                        continue
                    if _key(message["id"]) in self._dropped:
                        self._dropped.discard(_key(message["id"]))
                        continue
                self._out.send(_ended(line))
                await self._out.drain()
        finally:
            for answer in self._waiting.values():
                if not answer.done():
                    answer.set_exception(ConnectionError())

    async def _no_more(self) -> None:
        """Closes the server's input, once all is written that it is still to read."""
        await asyncio.to_thread(self._to_server.end, ENDS_WITHIN_S)
        with suppress(OSError):
            self._child.stdin.close()  # type: ignore[union-attr]

    async def _end(self) -> None:
        """Closes the server's input and waits; a server that stays is killed with what it has started."""
        await self._no_more()
        for sign in (signal.SIGTERM, signal.SIGKILL):
            if await self._ended_within(ENDS_WITHIN_S):
                return
            with suppress(ProcessLookupError):
                os.killpg(self._child.pid, sign)
        await self._ended_within(ENDS_WITHIN_S)

    async def _ended_within(self, seconds: float) -> bool:
        until = time.monotonic() + seconds
        while self._child.poll() is None and time.monotonic() < until:
            await asyncio.sleep(0.02)
        return self._child.returncode is not None


async def _lines(reader: asyncio.StreamReader, whose: str) -> AsyncIterator[bytes]:
    while True:
        try:
            line = await reader.readline()
        except ValueError:
            raise UserError(f"{whose} sends a message of more than {jsonrpc.MOST:,} bytes") from None
        except ConnectionError:
            return
        if not line:
            return
        if line.strip():
            yield line


def _key(request_id: Json) -> str:
    return f"{type(request_id).__name__} {request_id}"


def _ended(line: bytes) -> bytes:
    return line if line.endswith(b"\n") else line + b"\n"
