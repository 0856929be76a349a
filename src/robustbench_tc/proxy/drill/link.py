"""One connection to a server of a drill: a fresh process, or an address whose state was put back."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from typing import Any, NamedTuple

import anyio
from anyio.abc import ObjectSendStream
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import (
    REQUEST_TIMEOUT,
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    jsonrpc_message_adapter,
)
from mcp_types.jsonrpc import CONNECTION_CLOSED
from pydantic import ValidationError

from robustbench_tc.own.mcp_pipe import Pipe, Tap
from robustbench_tc.own.mcp_tools import Server
from robustbench_tc.own.tools import Entry
from robustbench_tc.result_faults import Fault
from robustbench_tc.schema import Json

from ..journal import Journal
from ..mcp import wire
from ..mcp.calls import Calls, Door
from ..plan import Plan, Session
from ..scenes import Scenes, loaded
from ..sessions import Sessions
from .inputs import NoAnswer

LONGEST = 1_000_000
"""Characters of a result that are compared value by value; a longer one is compared as a whole."""


class Answer(NamedTuple):
    """What a tool answered."""

    value: Json
    """The structured content, else the JSON of the text, else its lines."""
    text: str
    failed: bool


class Link:
    """A client of the server, and the MCP door between their streams. Every call passes the door; of one it
    loses the answer, once the server has given it."""

    client: Client
    calls: Calls | None = None
    """The door. None: nothing is to be lost so far."""

    def __init__(self, tools: Sequence[Entry], timeout_s: float) -> None:
        """`tools`: what the server lists."""
        self._tools, self._timeout_s = [tool.raw for tool in tools], timeout_s

    async def call(self, tool: str, arguments: Mapping[str, Json]) -> Answer:
        """The answer of one call. Raises NoAnswer where none comes."""
        try:
            result = await self.client.session.send_request(
                CallToolRequest(params=CallToolRequestParams(name=tool, arguments=dict(arguments))),
                CallToolResult,
                request_read_timeout_seconds=self._timeout_s,
            )
        except ValidationError:
            return Answer(None, "its answer is not the result of a tool call", True)
        except MCPError as error:
            if error.code == REQUEST_TIMEOUT:
                raise NoAnswer(f"{tool} did not answer within {self._timeout_s:g} s") from None
            if error.code == CONNECTION_CLOSED:
                raise NoAnswer(f"the server ended while {tool} was called") from None
            return Answer({"error": str(error)}, str(error), True)
        text = "\n".join(getattr(part, "text", None) or part.model_dump_json() for part in result.content)
        value = result.structured_content
        if value is None and len(text) <= LONGEST:
            value = loaded(text)
        if value is None:
            value = text.splitlines()
        if len(whole := json.dumps([text, value])) > 2 * LONGEST:
            value = {"hash": hash(whole)}
        return Answer(value, text, bool(result.is_error))

    def lose_next(self, tool: str) -> None:
        """Has the door lose the answer to the next call, which is of this tool."""
        plan = Plan(faults=(Fault(kind="timeout_after_effect", at=(1,), tools=(tool,)),), allow_writes=True)
        door = Door("drill", plan, False, Scenes(plan), Sessions(Journal(None, plan)))
        self.calls = Calls(door, Session("drill", 0))

    async def listed(self, question: wire.Message) -> wire.Message:
        """What the door gets that asks which tools there are."""
        return wire.result(question, {"tools": self._tools})


class Asked(ObjectSendStream[SessionMessage]):
    """What the client sends, seen by the door before the server has it."""

    def __init__(self, stream: Any, link: Link) -> None:
        self._stream, self._link = stream, link

    async def send(self, item: SessionMessage) -> None:
        """Sends a message on."""
        request = item.message.model_dump(mode="json", by_alias=True, exclude_unset=True)
        if self._link.calls is not None and self._link.calls.looks_at(request):
            await self._link.calls.prepared(request, self._link.listed)  # its plan changes answers alone
        await self._stream.send(item)

    async def aclose(self) -> None:
        """Closes the stream."""
        await self._stream.aclose()


class Told(Tap):
    """What the server sends, as the door lets the client have it."""

    def __init__(self, stream: Any, link: Link) -> None:
        super().__init__(stream)
        self._link = link

    async def receive(self) -> SessionMessage | Exception:
        """The next message."""
        item = await super().receive()
        if self._link.calls is None or not isinstance(item, SessionMessage):
            return item
        came = item.message.model_dump_json(by_alias=True, exclude_unset=True).encode()
        told = self._link.calls.relayed(came)
        return (
            item
            if told is came
            else SessionMessage(jsonrpc_message_adapter.validate_json(told, by_name=False))
        )


@asynccontextmanager
async def connected(
    server: Server, tools: Sequence[Entry], reset: Sequence[str], doing: str
) -> AsyncIterator[Link]:
    """A fresh server while the block runs. Raises NoAnswer, which says what it was `doing`."""
    pipe, link = (
        Pipe(server.command, {name: os.environ[name] for name in server.env}),
        Link(tools, server.timeout_s),
    )
    try:
        async with AsyncExitStack() as stack:
            async with asyncio.timeout(server.timeout_s):
                if reset and (done := await anyio.run_process(list(reset), check=False)).returncode:
                    raise NoAnswer(f"the reset command ended with status {done.returncode}")
                opened = pipe.open() if server.command else streamable_http_client(server.url)
                read, write = await stack.enter_async_context(opened)
                streams = nullcontext((Told(read, link), Asked(write, link)))
                link.client = await stack.enter_async_context(Client(streams, cache=None))
            yield link
    except Exception as error:  # an ExceptionGroup too: the SDK has tasks of its own
        cause: BaseException = error
        while isinstance(cause, BaseExceptionGroup):
            cause = cause.exceptions[0]
        said = server.secrets.blanked(" ".join(str(cause).split()))[:300]
        said = said or f"the server did not start within {server.timeout_s:g} s"
        if pipe.problem or pipe.ended is not None:
            said = f"the server {pipe.problem or f'ended with status {pipe.ended}'}"
        said += f"; on standard error it said: {pipe.last_words}" if pipe.last_words else ""
        raise NoAnswer(f"{doing}: {said}") from None
