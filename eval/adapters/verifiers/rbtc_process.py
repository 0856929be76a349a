"""The process that has the rows, their worlds and the scorer.

verifiers and robustbench-tc can share no environment. So the process runs the Python that has robustbench-tc,
and is spoken to over a Unix socket (`robustbench_tc.eval.adapters.serve`).
"""

import asyncio
import json
import os
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import Any, ClassVar

import httpx


class Core:
    """The process that has the rows: one for the same settings. It ends with this one."""

    _known: ClassVar[dict[str, "Core"]] = {}
    _lock: ClassVar[threading.Lock] = threading.Lock()

    @classmethod
    def of(cls, python: str, kind: str, settings: dict[str, Any]) -> "Core":
        """The process for these settings. Ends the program with one line where it cannot be had."""
        key = json.dumps([python, kind, settings], sort_keys=True)
        with cls._lock:
            if key not in cls._known:
                cls._known[key] = cls(python, kind, settings)
            return cls._known[key]

    def __init__(self, python: str, kind: str, settings: dict[str, Any]) -> None:
        own = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
        self._python, self._place = python, tempfile.TemporaryDirectory(prefix="rbtc-rows-")
        socket = str(Path(self._place.name) / "socket")
        try:
            self._process = subprocess.Popen(
                [python, "-m", "robustbench_tc.eval.adapters.serve", kind, json.dumps(settings), socket],
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
        found: dict[str, Any] = response.json()
        return found
