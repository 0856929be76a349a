"""A server that keeps a ledger, behind the door: both transports, both revisions of the protocol."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

SERVER = Path(__file__).with_name("ledger_server.py")
DOOR = "from robustbench_tc.cli import main; main()"


class Remote(NamedTuple):
    """The server over HTTP."""

    address: str
    ledger: Path


@contextmanager
def listening(folder: Path, script: Path, *words: str) -> Iterator[str]:
    """The address of a server of ours that writes its port into the file named last."""
    port = folder / "port"
    process = subprocess.Popen([sys.executable, str(script), *words, str(port)])
    try:
        for _ in range(600):
            if port.exists() or process.poll() is not None:
                break
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port.read_text()}/mcp"
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


def first_answer(command: Sequence[str], message: Any, **options: Any) -> str:
    """The line that a server on standard input and output answers to a message. The client goes only after it
    has heard it: a door waits but a moment longer than its client. `options`: of `Popen`."""
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **options
    ) as door:
        assert door.stdin is not None and door.stdout is not None
        door.stdin.write(json.dumps(message) + "\n")
        door.stdin.flush()
        answer: str = door.stdout.readline()
        door.stdin.close()
        assert door.wait(60) == 0
    return answer


@pytest.fixture(scope="session")
def remote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Remote]:
    folder = tmp_path_factory.mktemp("mcp")
    ledger = folder / "ledger"
    with listening(folder, SERVER, str(ledger), "http") as address:
        yield Remote(address, ledger)


class Desk:
    """What a test does with a client, through the door or without it."""

    def __init__(self, folder: Path, kind: str, mode: str, remote: Remote) -> None:
        self.kind, self.mode = kind, mode
        self._folder, self._remote = folder, remote
        self.journal = folder / "journal.jsonl"
        self.ledger = folder / "ledger" if kind == "stdio" else remote.ledger
        self._before = self._lines()

    def _lines(self) -> int:
        return len(self.ledger.read_text().splitlines()) if self.ledger.exists() else 0

    @property
    def executed(self) -> list[str]:
        """Names of the tools that the server has carried out for this test."""
        lines = self.ledger.read_text().splitlines() if self.ledger.exists() else []
        return [json.loads(line)["name"] for line in lines[self._before :]]

    @property
    def lines(self) -> list[dict[str, Any]]:
        """The journal's calls."""
        lines = [json.loads(line) for line in self.journal.read_text().splitlines()]
        return [line for line in lines if line.get("lists") is None]

    def run(self, plan: str | None, act: Callable[[Any], Awaitable[Any]], session: str = "case.0") -> Any:
        """What `act` makes of a client. `plan`: None for no door."""

        async def go() -> Any:
            async with self._client(plan, session) as client:
                return await act(client)

        return asyncio.run(asyncio.wait_for(go(), 120))

    @asynccontextmanager
    async def _client(self, plan: str | None, session: str) -> AsyncIterator[Any]:
        from mcp import Client
        from mcp.client.stdio import StdioServerParameters, stdio_client

        from robustbench_tc.api.proxy import proxied

        self.notices: list[Any] = []

        async def notice(message: Any) -> None:
            self.notices.append(message)

        options: dict[str, Any] = {"mode": self.mode, "cache": None, "message_handler": notice}
        (self._folder / "plan.yaml").write_text(plan or "")
        if self.kind == "stdio":
            words = [str(SERVER), str(self.ledger)]
            if plan is not None:
                door = ["proxy", "--plan", str(self._folder / "plan.yaml"), "--session", session]
                words = ["-c", DOOR, *door, "--journal", str(self.journal), "--", sys.executable, *words]
            paths = os.pathsep.join(sys.path)
            server = StdioServerParameters(command=sys.executable, args=words, env={"PYTHONPATH": paths})
            # The SDK's own choice is the standard error of the test in which it was first imported.
            with (self._folder / "stderr").open("w") as errors:
                async with Client(stdio_client(server, errlog=errors), **options) as client:
                    yield client
        elif plan is None:
            async with Client(self._remote.address, **options) as client:
                yield client
        else:
            with proxied(
                self._folder / "plan.yaml", mcp_url=self._remote.address, journal=self.journal
            ) as address:
                mine = address.replace("/mcp", f"/s/{session}/mcp")
                async with Client(mine, **options) as client:
                    yield client


ALL = ("stdio legacy", "stdio auto", "http legacy", "http auto")

both = pytest.mark.parametrize("desk", ["stdio legacy", "http auto"], indirect=True)
"""Each transport and each revision once."""


@pytest.fixture(params=ALL)
def desk(request: pytest.FixtureRequest, tmp_path: Path, remote: Remote) -> Desk:
    """Every transport with every revision."""
    kind, mode = request.param.split()
    return Desk(tmp_path, kind, mode, remote)


@pytest.fixture(params=["http legacy", "http auto"])
def either(request: pytest.FixtureRequest, tmp_path: Path, remote: Remote) -> Desk:
    """Each revision, over HTTP: a door of its own behind a pipe takes seconds, and `desk` has it."""
    kind, mode = request.param.split()
    return Desk(tmp_path, kind, mode, remote)
