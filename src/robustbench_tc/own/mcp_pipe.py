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
from anyio.abc import ObjectReceiveStream, ObjectSendStream
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCResponse, jsonrpc_message_adapter

from robustbench_tc.credentials import Secrets, of_process
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


class Pipe(ObjectReceiveStream[SessionMessage | Exception]):
    """A server that is started by its argument vector, never by a shell, and the messages that it writes."""

    _process: asyncio.subprocess.Process

    def __init__(self, command: Sequence[str], env: Mapping[str, str]) -> None:
        self._command, self._env = command, env
        self._tail, self._size = b"", 0
        self.garbage = 0
        """Lines on standard output that are no messages."""
        self.problem: str | None = None
        """Why nothing more was read."""
        self.ended: int | None = None
        """The exit status of a server that ended while it was asked."""

    @property
    def last_words(self) -> str:
        """The last lines of its standard error, joined, without what it was given."""
        lines = [line.strip() for line in self._tail.decode(errors="replace").splitlines()]
        said = " / ".join([line for line in lines if line][-3:])
        secrets = of_process(self._command, self._env) | Secrets(quoted=frozenset(self._env.values()))
        return secrets.blanked(said)[-400:]

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Streams]:
        """The server, running; ended with whatever it started when the block is left.

        Raises UserError, whose text goes on after "the MCP server".
        """
        process = self._process = await self._start()
        listening = asyncio.create_task(self._listen(process.stderr))
        try:
            yield self, Sent(process.stdin)
        finally:
            with anyio.CancelScope(shield=True):
                await _end(process)
                await asyncio.wait([listening], timeout=0.5)  # what it said last
                listening.cancel()
                await asyncio.gather(listening, return_exceptions=True)
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

    async def receive(self) -> SessionMessage | Exception:
        """The next message."""
        assert self._process.stdout is not None
        while line := await self._line(self._process.stdout):
            self._size += len(line)
            if self._size > 4 * BYTES:
                self.problem = f"wrote more than {4 * BYTES:,} bytes"
                break
            try:
                return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
            except ValueError:
                self.garbage += bool(line.strip())
        if self.problem is None:
            with suppress(TimeoutError):  # its end of the pipe is closed, it need not have ended
                self.ended = await asyncio.wait_for(self._process.wait(), 5.0)
        raise anyio.EndOfStream

    async def aclose(self) -> None:
        """`open` ends the server."""

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


class Sent(ObjectSendStream[SessionMessage]):
    """What a client writes to a server, a message a line."""

    def __init__(self, stdin: Any) -> None:
        self._stdin = stdin

    async def send(self, item: SessionMessage) -> None:
        """Writes a message."""
        line = item.message.model_dump_json(by_alias=True, exclude_unset=True)
        with suppress(OSError):  # a server that is gone is seen by the reader
            self._stdin.write(line.encode() + b"\n")
            await self._stdin.drain()

    async def aclose(self) -> None:
        """`Pipe.open` ends the server."""


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
