"""The MCP door between standard input and output and a child process, a message a line."""

import asyncio
import os
import re
import signal
import stat
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

from robustbench_tc.errors import UserError

from ..journal import of_process
from ..plan import Refused, parse
from ..sse import MOST, Parts
from . import wire
from .calls import Calls, Door, Pending
from .wire import Message

GRACE_S = 0.8
"""How long a server may take once its client has gone. Clients wait for two seconds before they end the door
itself."""

WATCH = 'cat; kill -s TERM -- "-$0"; sleep 0.2; kill -s KILL -- "-$0"'
"""Ends a server's process group once standard input has ended."""

_CHUNK = 2**18
_LINE = re.compile(rb"\n")


def relayed(door: Door, session: str, command: Sequence[str]) -> int:
    """Relays between our standard input and output and a server's, until one ends.

    Returns the server's exit code, 0 where the client went first. Raises UserError for a `session` that is
    none, and for files in place of pipes.
    """
    try:
        calls = Calls(door, parse(session))
    except Refused as error:
        raise UserError(f"--session: {error}") from None
    calls.secrets = of_process(command, os.environ)
    try:
        with suppress(asyncio.CancelledError):  # by SIGTERM: as clients end their servers
            return asyncio.run(Stdio(calls).run(command))
        return 0
    finally:
        calls.close()
        door.journal.close()


class Stdio:
    """Relays between our standard input and output and one server's."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._asked: dict[str, asyncio.Future[Message]] = {}
        """The door's own questions, by `wire.key` of their ids."""
        self._requests: dict[str, asyncio.Task[None]] = {}
        """Of the client's, by their ids, until they have gone on or are answered here."""

    async def run(self, command: Sequence[str]) -> int:
        """Until either side ends. Returns the server's exit code; 0 where the client went first.

        Raises OSError for a command that cannot be started, UserError for files in place of pipes.
        """
        this = asyncio.current_task()
        assert this is not None
        # As clients end their servers: before there is one that could be left running.
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, this.cancel)
        child = await asyncio.create_subprocess_exec(
            *command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        # It knows of the door by its standard input alone: that pipe ends with the door, also a killed one.
        watcher = subprocess.Popen(
            ["sh", "-c", WATCH, str(child.pid)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            with watcher:  # the end of its input is its word to end the server, and it is waited for
                return await self._relay(child)
        finally:
            await child.wait()

    async def _relay(self, child: asyncio.subprocess.Process) -> int:
        for number in (0, 1):
            kind = os.fstat(number).st_mode
            if not (stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind) or os.isatty(number)):
                raise UserError(
                    "standard input or output is a file: give it a pipe (`cat FILE | rbtc … | cat`)"
                )
        assert child.stdin is not None and child.stdout is not None
        self._server, loop = child.stdin, asyncio.get_running_loop()
        reader = asyncio.StreamReader()
        ours = os.fdopen(os.dup(0), "rb", 0), os.fdopen(os.dup(1), "wb", 0)  # Python itself uses the others
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), ours[0])
        transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, ours[1])
        self._client = asyncio.StreamWriter(transport, protocol, None, loop)
        self._tell = partial(self._calls.tell, partial(_send, self._client, wire.changed()))
        up, down = asyncio.create_task(self._up(reader)), asyncio.create_task(self._down(child.stdout))
        await asyncio.wait({up, down}, return_when=asyncio.FIRST_COMPLETED)
        went_first = not down.done()
        with suppress(TimeoutError):
            async with asyncio.timeout(GRACE_S):
                if went_first:  # what the client has asked is still answered
                    await asyncio.gather(*self._requests.values(), return_exceptions=True)
                    child.stdin.close()
                    await down
                for failed in self._calls.close("the MCP server has ended"):
                    await _send(self._client, failed)
                await child.wait()
        return 0 if went_first else child.returncode or 0

    async def _up(self, reader: asyncio.StreamReader) -> None:
        """What the client says."""
        async for line in Parts(partial(reader.read, _CHUNK), _LINE):
            if len(line) > MOST:  # this request fails, the session goes on
                asked = next(iter(wire.ids_in(line)), None)
                await _send(self._client, wire.failure(asked, wire.TOO_LONG))
                continue
            message = wire.read(line)
            key = wire.key(message.get("id"))
            if self._calls.looks_at(message):
                # A task, since the server may ask the client something before it says what its tools are.
                self._requests[key] = asyncio.create_task(self._request(message, line, key))
                continue
            if wire.wants_changes(message):
                notice = wire.changed(message.get("id"))
                self._calls.listening[key] = partial(_send, self._client, notice)
            ended = wire.cancelled(message)
            self._calls.listening.pop(ended, None)
            self._calls.lose(ended, "cancelled by the client")
            if (task := self._requests.pop(ended, None)) is not None:
                task.cancel()
            await _send(self._server, line)

    async def _request(self, message: Message, line: bytes, key: str) -> None:
        step = await self._calls.prepared(message, self._ask)
        if isinstance(step, Pending):
            await _send(self._server, line if step.request is message else step.request)
        else:
            await _send(self._client, step)
            await self._tell()
        self._requests.pop(key, None)

    async def _ask(self, question: Message) -> Message:
        answer: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._asked[wire.key(question["id"])] = answer
        await _send(self._server, question)
        return await answer

    async def _down(self, reader: asyncio.StreamReader) -> None:
        """What the server says."""
        async for line in Parts(partial(reader.read, _CHUNK), _LINE):
            if len(line) > MOST:
                await _send(self._client, self._calls.too_long(line))
                continue
            own = self._asked.pop(wire.key(wire.read(line).get("id")), None) if self._asked else None
            if own is None:
                await _send(self._client, self._calls.relayed(line))
                await self._tell()
            elif not own.done():  # else the client has cancelled what it was asked for
                own.set_result(wire.read(line))


async def _send(writer: asyncio.StreamWriter, message: Message | bytes | None) -> None:
    """A message, or a line as it came; None for nothing."""
    if message is not None:
        line = message if isinstance(message, bytes) else wire.text(message).encode()
        with suppress(ConnectionError):  # who reads no more is noticed where it is read
            writer.write(line if line.endswith(b"\n") else line + b"\n")
            await writer.drain()
