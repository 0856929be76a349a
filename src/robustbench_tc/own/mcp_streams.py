"""The streams of an MCP server, its replies to `tools/list` kept as it wrote them."""

import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, TextIO

import anyio
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCRequest, JSONRPCResponse

from robustbench_tc.schema import Json

Streams = tuple[Any, Any]
"""What the SDK's client reads messages from, and writes them to."""

# A banner on standard output is no error: the SDK would log each of its lines with a traceback.
logging.getLogger("mcp").addHandler(logging.NullHandler())

_GONE = (anyio.ClosedResourceError, anyio.BrokenResourceError)


class Tap:
    """The replies to `tools/list` as the server wrote them: the SDK orders keys, and refuses whole lists."""

    def __init__(self) -> None:
        self.pages: list[dict[str, Json]] = []
        self._asked: set[str | int] = set()

    @asynccontextmanager
    async def streams(
        self, command: Sequence[str], env: Mapping[str, str], url: str, stderr: TextIO
    ) -> AsyncIterator[Streams]:
        """The streams of a server, looked at on their way: of one at `url`, or of a command that is run until
        the block is left. What the command says on standard error goes to `stderr`."""
        if url:
            opened: Any = streamable_http_client(url)
        else:
            program, *args = command
            process = StdioServerParameters(
                command=program, args=args, env=dict(env), encoding_error_handler="replace"
            )
            opened = stdio_client(process, stderr)
        to_client, received = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        to_send, from_client = anyio.create_memory_object_stream[SessionMessage](0)

        async def incoming() -> None:
            async with to_client:
                async for message in streams[0]:
                    found = message.message if isinstance(message, SessionMessage) else None
                    if isinstance(found, JSONRPCResponse) and found.id in self._asked:
                        self.pages.append(found.result)
                    with suppress(*_GONE):  # the client has all that it wanted
                        await to_client.send(message)

        async def outgoing() -> None:
            async with from_client:
                async for message in from_client:
                    asked = message.message
                    if isinstance(asked, JSONRPCRequest) and asked.method == "tools/list":
                        self._asked.add(asked.id)
                    with suppress(*_GONE):  # a server that is gone is seen by the reader
                        await streams[1].send(message)

        async with opened as streams, anyio.create_task_group() as group:
            group.start_soon(incoming)
            group.start_soon(outgoing)
            yield received, to_send
            group.cancel_scope.cancel()
