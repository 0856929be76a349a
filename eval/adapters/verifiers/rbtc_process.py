"""The process that has the rows, their worlds and the scorer.

verifiers and robustbench-tc can share no environment. So the process runs the Python that has robustbench-tc,
and is spoken to over a Unix socket (`robustbench_tc.eval.adapters.serve`).
"""

import asyncio
import json
import os
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import httpx


@cache
def core(python: str, settings: str) -> "Core":
    """The process for these settings: one for the same."""
    return Core(python, settings)


class Core:
    """The process that has the rows. It ends with this one."""

    def __init__(self, python: str, settings: str) -> None:
        """`settings`: JSON. Ends the program with one line where the process cannot be had."""
        own = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
        self._python, self._place = python, tempfile.TemporaryDirectory(prefix="rbtc-rows-")
        socket = str(Path(self._place.name) / "socket")
        try:
            self._process = subprocess.Popen(
                [python, "-m", "robustbench_tc.eval.adapters.serve", settings, socket],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={name: value for name, value in os.environ.items() if name not in own},
            )
        except OSError as error:
            raise SystemExit(f"{python}: {error.strerror}: name a Python with robustbench-tc in it") from None
        assert self._process.stdout is not None
        if not self._process.stdout.readline():  # it listens, or has ended
            raise SystemExit(f"{python} gives no rows of robustbench-tc: its own message stands above")
        self._client = httpx.Client(
            base_url="http://rows", transport=httpx.HTTPTransport(uds=socket), timeout=None
        )
        self.rows = self._post("rows")["rows"]

    async def ask(self, do: str, **what: Any) -> dict[str, Any]:
        """The answer to one request. Raises RuntimeError with what is wrong."""
        return await asyncio.to_thread(self._post, do, **what)

    def _post(self, do: str, **what: Any) -> dict[str, Any]:
        try:
            response = self._client.post(f"/{do}", content=json.dumps(what))
        except httpx.TransportError:
            raise RuntimeError(f"{self._python} has ended: its own message stands above") from None
        if response.status_code != 200:
            raise RuntimeError(response.text)
        return dict(response.json())
