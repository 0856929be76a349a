"""One door for an agent: its client's `mcpServers` file, each server in it behind a door of this process.

The wrapped file leaves each entry of the kind that it was, since not every client knows both. A `url` becomes
one of ours. A `command` becomes `pipe`, which the client starts and ends as it did the server: the connection
that it makes lasts as long as the client does, so a server of its own is started for it here and ends with
it. That is one process that counts all calls and writes one journal, and nothing of it has to be shared.
"""

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

import msgspec
from aiohttp import web

from robustbench_tc.credentials import Secrets
from robustbench_tc.errors import UserError
from robustbench_tc.io.files import atomic_file
from robustbench_tc.own.files import read_bytes
from robustbench_tc.schema import Json

from ..plan import Refused
from ..relay import TOKEN, Endpoint, session_of
from . import pipe
from .calls import Door
from .http import Http
from .stdio import Stdio


class Server(msgspec.Struct):
    """An entry of the file; what it says beside is the client's affair."""

    command: str | None = None
    args: list[str] = []
    env: dict[str, str] = {}
    cwd: str | None = None
    url: str | None = None
    headers: dict[str, str] = {}
    type: str = ""


class File(msgspec.Struct):
    """A client's configuration."""

    mcpServers: dict[str, Server]


def read_servers(path: Path) -> dict[str, Server]:
    """The servers of a client's file, by name. Raises UserError for one that cannot be started or reached."""
    try:
        servers = msgspec.json.decode(read_bytes(path, "a client's servers"), type=File).mcpServers
        if not servers:
            raise ValueError("it names none")
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: no file with `mcpServers`: {error}") from None
    for name, one in servers.items():
        where = f"{path}: server {name!r}"
        if (one.command is None) == (one.url is None):
            raise UserError(f"{where} needs either a `command` or a `url`")
        if one.type == "sse":
            raise UserError(f"{where}: `sse` is a transport of before 2025-03-26: name its streamable HTTP")
        if one.command is not None and shutil.which(one.command, path=one.env.get("PATH")) is None:
            raise UserError(f"{where}: there is no program {one.command!r} here or on PATH")
    return servers


class Piped(Endpoint):
    """Starts a server for each client that connects."""

    def __init__(self, server: Server, door: Door, place: str) -> None:
        self.place, self._door = place, door
        self._words, self._folder = [server.command or "", *server.args], server.cwd
        self._env = {**os.environ, **server.env}
        self._secrets = Secrets(quoted=frozenset(server.env.values()))  # `Stdio` knows those that are keys

    async def exchange(self, request: web.Request, name: str | None, path: str) -> web.StreamResponse:
        session = session_of(name, self._door.plan, f"address …/s/<case>.<repeat>/{self.place}")
        reply = web.StreamResponse()

        async def write(line: bytes) -> None:
            if not reply.prepared:
                await reply.prepare(request)
            await reply.write(line)

        client = Stdio(self._door, session, request.content.readany, write, self._secrets)
        try:
            await client.run(self._words, self._env, self._folder)
        except OSError as error:
            raise Refused(f"{self._words[0]} cannot be started: {error.strerror}", 502) from None
        return reply


def endpoints(servers: Mapping[str, Server], door: Door, silence_s: float) -> list[Endpoint]:
    """A door before each."""
    found: list[Endpoint] = []
    for name, server in servers.items():
        place, own = f"mcp/{quote(name, safe='')}", door._replace(by=name)
        door.scenes.unlisted.add(name)
        if server.url is None:
            found.append(Piped(server, own, place))
        else:
            found.append(Http(server.url, own, place=place, silence_s=silence_s))
    return found


_WRITER = {"writtenBy": "rbtc proxy"}
"""In a client's file that a door wrote: such a one is replaced, another is somebody's."""


def refuse_foreign(out: Path) -> None:
    """UserError where a file, folder or link is there that no door wrote."""
    if not os.path.lexists(out):
        return
    try:
        ours = msgspec.json.decode(out.read_bytes(), type=dict[str, Json])
    except (OSError, ValueError):
        ours = {}
    if out.is_symlink() or ours.get("writtenBy") != _WRITER["writtenBy"]:
        raise UserError(f"{out} exists and was not written by `rbtc proxy`: name another file with --write")


def write_wrapped(path: Path, out: Path, base: str, token: str | None) -> None:
    """The client's file with the doors, at `base`, in place of the servers; readable by its owner only."""
    file: dict[str, Json] = msgspec.json.decode(path.read_bytes())
    for name, entry in file["mcpServers"].items():
        address = f"{base}/mcp/{quote(name, safe='')}"
        if "url" in entry:
            entry["url"] = address
            entry["headers"] = {**entry.get("headers", {}), **({TOKEN: token} if token else {})}
        else:
            entry |= {"command": sys.executable, "args": ["-I", pipe.__file__, address]}
            entry["env"] = {"RBTC_TOKEN": token} if token else {}
            entry.pop("cwd", None)
    with atomic_file(out, replace=True) as beside:
        beside.chmod(0o600)
        beside.write_bytes(msgspec.json.format(msgspec.json.encode({**file, **_WRITER}), indent=2))
