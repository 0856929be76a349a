"""The MCP door between a client that speaks on a pipe, a message a line, and a child process."""

import asyncio
import os
import re
import signal
import stat
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial

from robustbench_tc.credentials import NONE, Secrets, of_process
from robustbench_tc.errors import UserError

from ..plan import Session
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


def relayed(door: Door, session: Session | None, command: Sequence[str]) -> int:
    """Relays between our standard input and output and a server's, until one ends.

    Returns the server's exit code, 0 where the client went first. Raises UserError for files in place of
    pipes.
    """
    with suppress(asyncio.CancelledError):  # by SIGTERM: as clients end their servers
        return asyncio.run(_piped(door, session, command))
    return 0


async def _piped(door: Door, session: Session | None, command: Sequence[str]) -> int:
    this, loop = asyncio.current_task(), asyncio.get_running_loop()
    assert this is not None
    # As clients end their servers: before there is one that could be left running.
    loop.add_signal_handler(signal.SIGTERM, this.cancel)
    for number in (0, 1):
        kind = os.fstat(number).st_mode
        if not (stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind) or os.isatty(number)):
            raise UserError("standard input or output is a file: give it a pipe (`cat FILE | rbtc … | cat`)")
    reader = asyncio.StreamReader()
    ours = os.fdopen(os.dup(0), "rb", 0), os.fdopen(os.dup(1), "wb", 0)  # Python itself uses the others
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), ours[0])
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, ours[1])
    write = partial(_written, asyncio.StreamWriter(transport, protocol, None, loop))
    return await Stdio(door, session, partial(reader.read, _CHUNK), write).run(command)


async def _written(writer: asyncio.StreamWriter, line: bytes) -> None:
    writer.write(line)
    await writer.drain()


class Stdio:
    """Relays between one client and a server of its own."""

    def __init__(
        self,
        door: Door,
        name: Session | None,
        read: Callable[[], Awaitable[bytes]],
        write: Callable[[bytes], Awaitable[None]],
        secrets: Secrets = NONE,
    ) -> None:
        """`name`: of the session. `read` and `write`: what the client says, nothing at its end, and hears.
        `secrets`: that the server was given beside its command and our environment."""
        self._door, self._name, self._read, self._write = door, name, read, write
        self._secrets = secrets
        self._asked: dict[str, asyncio.Future[Message]] = {}
        """The door's own questions, by `wire.key` of their ids."""
        self._requests: dict[str, asyncio.Task[None]] = {}
        """Of the client's, by their ids, until they have gone on or are answered here."""

    async def run(
        self, command: Sequence[str], env: Mapping[str, str] = os.environ, folder: str | None = None
    ) -> int:
        """Until either side ends. Returns the server's exit code; 0 where the client went first.

        Raises OSError for a command that cannot be started.
        """
        child = await asyncio.create_subprocess_exec(
            *command, stdin=PIPE, stdout=PIPE, start_new_session=True, env=env, cwd=folder
        )
        assert child.stdin is not None and child.stdout is not None
        # It knows of the door by its standard input alone: that pipe ends with the door, also a killed one.
        watcher = await asyncio.create_subprocess_exec(
            "sh",
            "-c",
            WATCH,
            str(child.pid),
            stdin=PIPE,
            stdout=DEVNULL,
            stderr=DEVNULL,
            start_new_session=True,
        )
        assert watcher.stdin is not None
        self._server, self._secrets = child.stdin, self._secrets | of_process(command, env)
        self._calls = Calls(self._door, self._name, self._secrets)
        try:
            return await self._relay(child, child.stdout)
        finally:
            self._calls.close()
            watcher.stdin.close()  # its word to end the server
            await watcher.wait()
            await child.wait()

    async def _relay(self, child: asyncio.subprocess.Process, output: asyncio.StreamReader) -> int:
        up, down = asyncio.create_task(self._up()), asyncio.create_task(self._down(output))
        try:
            await asyncio.wait({up, down}, return_when=asyncio.FIRST_COMPLETED)
            went_first = not down.done()
            with suppress(TimeoutError):  # one that does not end is ended by its watcher
                async with asyncio.timeout(GRACE_S):
                    if went_first:  # what the client has asked is still answered
                        await asyncio.gather(*self._requests.values(), return_exceptions=True)
                        self._server.close()
                        await down
                    for failed in self._calls.close("the MCP server has ended"):
                        await self._say(failed)
                    await child.wait()
            return 0 if went_first else child.returncode or 0
        finally:
            tasks = (up, down, *self._requests.values())
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _up(self) -> None:
        """What the client says."""
        async for line in Parts(self._read, _LINE):
            if len(line) > MOST:  # this request fails, the session goes on
                asked = next(iter(wire.ids_in(line)), None)
                await self._say(wire.failure(asked, wire.TOO_LONG))
                continue
            message = wire.parse_message(line)
            if self._calls.over(message):
                self._calls.close()
                self._calls = Calls(self._door, self._name, self._secrets, message)
            key = wire.key(message.get("id"))
            if self._calls.looks_at(message):
                # A task, since the server may ask the client something before it says what its tools are.
                self._requests[key] = asyncio.create_task(self._request(message, line, key))
                continue
            if wire.wants_changes(message):
                self._calls.listening[key] = partial(self._say, wire.changed(message.get("id")))
            ended = wire.cancelled(message)
            self._calls.listening.pop(ended, None)
            self._calls.lose(ended, "cancelled by the client")
            if (task := self._requests.pop(ended, None)) is not None:
                task.cancel()
            await self._asks(line)

    async def _request(self, message: Message, line: bytes, key: str) -> None:
        step = await self._calls.prepared(message, self._ask)
        if isinstance(step, Pending):
            await self._asks(line if step.request is message else step.request)
        else:
            await self._say(step)
            await self._calls.tell(partial(self._say, wire.changed()))
        self._requests.pop(key, None)

    async def _ask(self, question: Message) -> Message:
        answer: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._asked[wire.key(question["id"])] = answer
        await self._asks(question)
        return await answer

    async def _down(self, reader: asyncio.StreamReader) -> None:
        """What the server says."""
        async for line in Parts(partial(reader.read, _CHUNK), _LINE):
            if len(line) > MOST:
                await self._say(self._calls.too_long(line))
                continue
            own = self._asked.pop(wire.key(wire.parse_message(line).get("id")), None) if self._asked else None
            if own is None:
                await self._say(self._calls.relayed(line))
                await self._calls.tell(partial(self._say, wire.changed()))
            elif not own.done():  # else the client has cancelled what it was asked for
                own.set_result(wire.parse_message(line))

    async def _say(self, message: Message | bytes | None) -> None:
        """Something to the client; None for nothing."""
        await _send(self._write, message)

    async def _asks(self, message: Message | bytes) -> None:
        """Something to the server."""
        await _send(partial(_written, self._server), message)


async def _send(write: Callable[[bytes], Awaitable[None]], message: Message | bytes | None) -> None:
    """A message, or a line as it came; None for nothing."""
    if message is not None:
        line = message if isinstance(message, bytes) else wire.text(message).encode()
        with suppress(ConnectionError):  # who reads no more is noticed where it is read
            await write(line if line.endswith(b"\n") else line + b"\n")
