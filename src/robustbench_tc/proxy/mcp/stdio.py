"""The MCP door between standard input and a child process, a message a line."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress

from robustbench_tc.errors import UserError
from robustbench_tc.schema import Json

from . import jsonrpc
from .calls import Calls
from .jsonrpc import Message

ENDS_WITHIN_S = 5.0
"""How long a server may take to end once its input is closed."""


class Stdio:
    """Relays between our standard input and output and one server's."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._waiting: dict[str, asyncio.Future[Message]] = {}
        """Requests of the client's that the door looks at, and the door's own: id (as JSON) → answer."""
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._listening: list[Json] = []
        """Ids of the client's open subscriptions to changes of the tools."""
        self._initialized = False
        self._out: asyncio.Queue[bytes | None] = asyncio.Queue()

    async def run(self, command: Sequence[str]) -> int:
        """Until either side ends. Returns the server's exit code; 0 where the client went first.

        Raises UserError for a command that cannot be started.
        """
        try:
            self._child = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                limit=jsonrpc.MOST,
                start_new_session=True,
            )
        except OSError as error:
            raise UserError(f"the server {command[0]!r} cannot be started: {error.strerror}") from None
        reader = asyncio.StreamReader(limit=jsonrpc.MOST)
        loop = asyncio.get_running_loop()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        this = asyncio.current_task()
        if this is not None:  # as clients end their servers
            loop.add_signal_handler(signal.SIGTERM, this.cancel)
        writing = asyncio.create_task(self._written_out())
        client = asyncio.create_task(self._of_client(reader))
        server = asyncio.create_task(self._of_server())
        try:
            await asyncio.wait({client, server}, return_when=asyncio.FIRST_COMPLETED)
            gone = not client.done()
            if not gone:  # what the server still has to say is passed on
                self._child.stdin.close()  # type: ignore[union-attr]
                await asyncio.wait({server}, timeout=ENDS_WITHIN_S)
            if self._tasks:
                await asyncio.wait(set(self._tasks.values()), timeout=ENDS_WITHIN_S)
        finally:
            client.cancel()
            await self._end()
            await asyncio.wait({server})
            for task in tuple(self._tasks.values()):
                task.cancel()
            self._out.put_nowait(None)
            await writing
            loop.remove_signal_handler(signal.SIGTERM)
        for side in (client, server):
            if side.done() and not side.cancelled():
                side.result()  # its error, if it has one
        return (self._child.returncode or 0) if gone else 0

    async def _of_client(self, reader: asyncio.StreamReader) -> None:
        async for line in _lines(reader, "the client"):
            message = jsonrpc.read(line)
            if message is not None and self._calls.answers(message):
                key = _key(message["id"])
                self._tasks[key] = asyncio.create_task(self._answer(message, key))
                continue
            if message is not None:
                self._note(message)
            await self._to_server(line)

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
        self._out.put_nowait(jsonrpc.written(answer) + b"\n")

    async def _forward(self, request: Message) -> Message:
        key = _key(request["id"])
        answer: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._waiting[key] = answer
        try:
            await self._to_server(jsonrpc.written(request) + b"\n")
            return await answer
        finally:
            self._waiting.pop(key, None)

    async def _changed(self) -> None:
        notices = [jsonrpc.changed(one) for one in self._listening]
        if self._initialized:
            notices.append(jsonrpc.changed())
        for notice in notices:
            self._out.put_nowait(jsonrpc.written(notice) + b"\n")

    async def _to_server(self, line: bytes) -> None:
        assert self._child.stdin is not None
        self._child.stdin.write(line if line.endswith(b"\n") else line + b"\n")
        await self._child.stdin.drain()

    async def _of_server(self) -> None:
        assert self._child.stdout is not None
        try:
            async for line in _lines(self._child.stdout, "the server"):
                message = jsonrpc.read(line) if self._waiting else None
                if message is not None and jsonrpc.is_response(message):
                    answer = self._waiting.pop(_key(message["id"]), None)
                    if answer is not None:
                        if not answer.done():
                            answer.set_result(message)
                        continue
                self._out.put_nowait(line if line.endswith(b"\n") else line + b"\n")
        finally:
            for answer in self._waiting.values():
                if not answer.done():
                    answer.set_exception(ConnectionError())

    async def _written_out(self) -> None:
        """To standard output in order, without holding up the loop where the client is slow."""
        while (line := await self._out.get()) is not None:
            try:
                await asyncio.to_thread(_write, line)
            except OSError:  # the client does not read any more
                return

    async def _end(self) -> None:
        """Closes the server's input and waits; a server that stays is killed with what it has started."""
        if self._child.stdin is not None:
            self._child.stdin.close()
        for sign in (signal.SIGTERM, signal.SIGKILL):
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._child.wait(), ENDS_WITHIN_S)
                break
            with suppress(ProcessLookupError):
                os.killpg(self._child.pid, sign)
        await self._child.wait()


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


def _write(line: bytes) -> None:
    view = memoryview(line)
    while view:
        view = view[os.write(1, view) :]
