"""The tools of a live MCP server, as the file that a user would have written of them."""

import asyncio
import json
import os
import re
from contextlib import AsyncExitStack, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec

from robustbench_tc.compute import loop
from robustbench_tc.credentials import Secrets, of_process, of_query
from robustbench_tc.errors import UserError, need_extra
from robustbench_tc.io.files import atomic_file
from robustbench_tc.schema import Json

from .cases import OwnTool
from .files import BYTES
from .tools import parse_tools

if TYPE_CHECKING:
    from mcp import Client

    from .mcp_pipe import Pipe, Tap

TIMEOUT_S = 60.0
PAGES = 1_000
REFUSED = "servers made with the official SDK refuse the whole list where one schema lacks type: object"
NAMELESS = "mcp"
"""The prefix of a server that does not say its name."""


class Server(msgspec.Struct, frozen=True, kw_only=True):
    """Which server, and how long it may take."""

    command: tuple[str, ...] = ()
    """Its argument vector: never a shell's line, and never from a file."""
    url: str = ""
    """Or where it answers streamable HTTP."""
    env: tuple[str, ...] = ()
    """Environment variables that the command gets, beside HOME, PATH and the like."""
    timeout_s: float = TIMEOUT_S

    @property
    def title(self) -> str:
        """How messages and files name it: without keys."""
        shown = self.secrets.blanked(self.url or " ".join(self.command))
        return re.sub(r"//[^/@\s]*@", "//", shown)[:80]

    @property
    def secrets(self) -> Secrets:
        """What it is given that no message may hold."""
        given = {name: os.environ.get(name, "") for name in self.env}
        return of_process(self.command, given) | of_query(urlsplit(self.url).query)


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """What a server listed."""

    prefix: str
    """Its own name, of letters, digits, `-`, `_` and `.`: the stem of a file too."""
    entries: tuple[Json, ...]
    """The tools of all pages as it wrote them, `title`, `annotations` and `outputSchema` too."""
    null_cursor: bool = False
    """Whether its last page says `"nextCursor": null`, which no revision of the protocol allows."""

    def json(self) -> bytes:
        """A tools file: the same list, the same bytes."""
        page = {"tools": self.entries} | ({"nextCursor": None} if self.null_cursor else {})
        return (json.dumps(page, ensure_ascii=False, indent=1) + "\n").encode(errors="surrogatepass")

    def tools(self, title: str) -> tuple[OwnTool, ...]:
        """As `read_tools` of that file. `title` names the server in errors."""
        return parse_tools(self.json(), self.prefix, title)


def keep_tools(path: Path, data: bytes, title: str) -> None:
    """Writes what a server listed as a tools file; one that is there already has to say the same.

    Raises UserError where it does not: what a dataset is made of never changes unseen.
    """
    if not path.is_file():
        with atomic_file(path) as beside:
            beside.write_bytes(data)
    elif path.read_bytes() != data:
        raise UserError(
            f"{path}: {title} lists different tools now: move the file away to use them, or leave the server "
            "out and name the file in tools:"
        )


def list_tools(server: Server) -> Listed:
    """Asks a server for its tools. Raises UserError for one that does not list them, in one line."""
    try:
        from .mcp_pipe import Pipe
    except ModuleNotFoundError:
        raise need_extra("mcp", "mcp") from None
    if bool(server.command) == bool(server.url):
        raise UserError("name one MCP server: its command after -- (-- python server.py), or --mcp-url")
    missing = [name for name in server.env if name not in os.environ]
    if missing:
        raise UserError(f"--mcp-env {missing[0]}: no such environment variable")
    pipe = Pipe(server.command, {name: os.environ[name] for name in server.env})
    try:
        return loop.run(_listed(server, pipe))
    except TimeoutError:
        raise UserError(
            f"{server.title}: the MCP server did not answer within {server.timeout_s:g} s"
            f"{_beside(pipe)}; raise --mcp-timeout"
        ) from None
    except Exception as error:  # an ExceptionGroup too: the SDK has tasks of its own
        raise UserError(
            f"{server.title}: the MCP server {_why(error, server, pipe)}{_beside(pipe)}"
        ) from None


async def _listed(server: Server, pipe: "Pipe") -> Listed:
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client

    from .mcp_pipe import Tap

    async with asyncio.timeout(server.timeout_s), AsyncExitStack() as stack:
        opened = pipe.open() if server.command else streamable_http_client(server.url)
        read, write = await stack.enter_async_context(opened)
        tap = Tap(read)
        client = await stack.enter_async_context(Client(nullcontext((tap, write)), cache=None))
        info = client.server_info
        found = await _pages(client, tap)
        null = "nextCursor" in tap.last and tap.last["nextCursor"] is None
        return Listed(prefix=prefix_of(info.name if info else ""), entries=found, null_cursor=null)


async def _pages(client: "Client", tap: "Tap") -> tuple[Json, ...]:
    """The entries of all pages. Raises UserError, whose text goes on after "the MCP server"."""
    from mcp_types import ListToolsRequest, ListToolsResult, PaginatedRequestParams
    from pydantic import ValidationError

    found: list[Json] = []
    size, cursor, seen = 0, None, set[str]()
    for number in range(1, PAGES + 1):
        params = None if cursor is None else PaginatedRequestParams(cursor=cursor)
        # The SDK refuses a whole list for one tool of it: `rbtc lint` says which.
        with suppress(ValidationError):
            await client.session.send_request(ListToolsRequest(params=params), ListToolsResult)
        listed, cursor = tap.last.get("tools"), tap.last.get("nextCursor")
        if not isinstance(listed, list) or not isinstance(cursor, str | None):
            raise UserError(f"does not list its tools as MCP requires: page {number} has no list 'tools'")
        found += listed
        size += len(json.dumps(listed))
        if size > BYTES:
            raise UserError(f"lists more than {BYTES:,} bytes of tools, which is too many to read")
        if not cursor:
            return tuple(found)
        if cursor in seen:
            raise UserError(
                f"lists without end: page {number} states a nextCursor that was asked for already"
            )
        seen.add(cursor)
    raise UserError(f"lists more than {PAGES:,} pages")


def prefix_of(name: str) -> str:
    """A server's name as a prefix, and as a file's stem."""
    return re.sub(r"[^\w.-]", "_", name)[:64].strip("._") or NAMELESS


def _why(error: BaseException, server: Server, pipe: "Pipe") -> str:
    """What went wrong, after "the MCP server"."""
    from mcp import MCPError
    from mcp_types import INTERNAL_ERROR

    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, UserError):
        return str(error)
    if pipe.problem:
        return pipe.problem
    if pipe.ended is not None:
        return f"ended with status {pipe.ended} before it had listed its tools"
    said = server.secrets.blanked(" ".join(str(error).split()))[:300] or type(error).__name__
    if isinstance(error, MCPError):
        if error.code in (INTERNAL_ERROR, 0):
            said += f" ({REFUSED})"
        return f"does not list its tools: {said}"
    return f"cannot be asked: {said}"


def _beside(pipe: "Pipe") -> str:
    """What helps to find out more."""
    found = f"; {pipe.garbage} lines of its standard output are no messages" if pipe.garbage else ""
    return found + (f"; on standard error it said: {pipe.last_words}" if pipe.last_words else "")
