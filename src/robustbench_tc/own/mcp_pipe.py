"""An MCP server as a child process: its messages, bounded, and what it said on standard error.

The SDK's own transport reads lines of any length and hands on the server's standard error as it is.
"""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
from anyio.abc import ObjectReceiveStream
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCResponse, jsonrpc_message_adapter

from robustbench_tc.errors import UserError
from robustbench_tc.schema import Json

from .files import BYTES

Streams = tuple[Any, Any]
"""What the SDK's client reads messages from, and writes them to."""

TAIL = 2_000
"""Bytes of standard error that are kept."""

PATIENCE = 2.0
"""Seconds that a server has to end by itself, and again after SIGTERM."""


class Tap(ObjectReceiveStream[SessionMessage | Exception]):
    """What a server writes, looked at on its way: the SDK orders keys, and refuses whole lists."""

    def __init__(self, stream: ObjectReceiveStream[SessionMessage | Exception]) -> None:
        self._stream = stream
        self.last: dict[str, Json] = {}
        """The result of the last reply, as the server wrote it."""

    async def receive(self) -> SessionMessage | Exception:
        """The next message."""
        message = await self._stream.receive()
        if isinstance(message, SessionMessage) and isinstance(message.message, JSONRPCResponse):
            self.last = message.message.result
        return message

    async def aclose(self) -> None:
        """Closes the stream."""
        await self._stream.aclose()


class Pipe:
    """A server that is started by its argument vector, never by a shell."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str]) -> None:
        self._command, self._env = command, env
        self._tail, self._leaving = b"", False
        self.garbage = 0
        """Lines on standard output that are no messages."""
        self.problem: str | None = None
        """Why nothing more was read."""
        self.ended: int | None = None
        """The exit status of a server that ended while it was asked."""

    @property
    def last_words(self) -> str:
        """The last lines of its standard error, joined."""
        lines = [line.strip() for line in self._tail.decode(errors="replace").splitlines()]
        return " / ".join([line for line in lines if line][-3:])[-400:]

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Streams]:
        """The server, running; ended with whatever it started when the block is left.

        Raises UserError, whose text goes on after "the MCP server".
        """
        process = await self._start()
        to_client, received = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        to_send, from_client = anyio.create_memory_object_stream[SessionMessage](0)
        tasks = [
            asyncio.create_task(self._read(process, to_client)),
            asyncio.create_task(_write(process.stdin, from_client)),
            asyncio.create_task(self._listen(process.stderr)),
        ]
        try:
            yield received, to_send
        finally:
            self._leaving = True
            with anyio.CancelScope(shield=True):
                await _end(process)
                await asyncio.wait([tasks[2]], timeout=0.5)  # what it said last
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
                for stream in (to_client, received, to_send, from_client):
                    stream.close()
                # A pipe that was not read to its end would be closed after the loop, with a traceback.
                process._transport.close()  # type: ignore[attr-defined]
                await asyncio.sleep(0)

    async def _start(self) -> asyncio.subprocess.Process:
        pipe = asyncio.subprocess.PIPE
        try:
            return await asyncio.create_subprocess_exec(
                *self._command,
                stdin=pipe,
                stdout=pipe,
                stderr=pipe,
                limit=BYTES,
                env={**get_default_environment(), **self._env},
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            said = getattr(error, "strerror", None) or str(error)
            raise UserError(f"cannot be started: {said}: check the command after --") from None

    async def _read(self, process: asyncio.subprocess.Process, to_client: Any) -> None:
        assert process.stdout is not None
        size = 0
        async with to_client:
            while line := await self._line(process.stdout):
                size += len(line)
                if size > 4 * BYTES:
                    self.problem = f"wrote more than {4 * BYTES:,} bytes"
                    return
                try:
                    message = SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
                except ValueError:
                    self.garbage += bool(line.strip())
                    continue
                with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):  # who listened has left
                    await to_client.send(message)
            if self.problem is None and not self._leaving:
                with suppress(TimeoutError):  # its end of the pipe is closed, it need not have ended
                    self.ended = await asyncio.wait_for(process.wait(), 5.0)

    async def _line(self, stdout: asyncio.StreamReader) -> bytes:
        try:
            return await stdout.readuntil(b"\n")
        except asyncio.IncompleteReadError as error:
            return error.partial
        except asyncio.LimitOverrunError:
            self.problem = f"wrote a message of more than {BYTES:,} bytes"
            return b""

    async def _listen(self, stderr: Any) -> None:
        while said := await stderr.read(65_536):
            self._tail = (self._tail + said)[-TAIL:]


async def _write(stdin: Any, from_client: Any) -> None:
    async with from_client:
        async for message in from_client:
            line = message.message.model_dump_json(by_alias=True, exclude_unset=True)
            with suppress(OSError):  # a server that is gone is seen by the reader
                stdin.write(line.encode() + b"\n")
                await stdin.drain()


async def _end(process: asyncio.subprocess.Process) -> None:
    """Ends the server: its input is closed, then its process group is asked and killed."""
    if process.stdin is not None:
        process.stdin.close()
    for what in (signal.SIGTERM, signal.SIGKILL):  # after its end too: what it started outlives it otherwise
        with suppress(TimeoutError):  # the next signal is harder
            await asyncio.wait_for(process.wait(), PATIENCE)
        with suppress(ProcessLookupError, PermissionError):  # the group has ended, or is no longer ours
            os.killpg(process.pid, what)
    with suppress(TimeoutError):  # a process that not even SIGKILL ends is the system's
        await asyncio.wait_for(process.wait(), PATIENCE)
