"""The process that has the rows, their worlds and the scorer.

verifiers and robustbench-tc can share no environment. So the process runs the Python that has robustbench-tc,
and is spoken to in lines of JSON (`robustbench_tc.eval.adapters.serve`).
"""

import asyncio
import contextlib
import itertools
import json
import os
import subprocess
import threading
from concurrent.futures import Future
from typing import Any, ClassVar


class Core:
    """The process that has the rows: one for the same settings."""

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
        try:
            self._process = subprocess.Popen(
                [python, "-m", "robustbench_tc.eval.adapters.serve"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={name: value for name, value in os.environ.items() if name not in own},
            )
        except OSError as error:
            raise SystemExit(f"{python}: {error.strerror}: name a Python with robustbench-tc in it") from None
        assert self._process.stdin is not None and self._process.stdout is not None
        self._in, self._out = self._process.stdin, self._process.stdout
        self._python = python
        self._numbers = itertools.count(1)
        self._waiting: dict[int, Future[dict[str, Any]]] = {}
        self._writing = threading.Lock()
        self._most: int | None = None
        threading.Thread(target=self._read, daemon=True).start()
        try:
            found = self._send("open", kind=kind, settings=settings).result()
        except RuntimeError as error:
            self.close()
            raise SystemExit(str(error)) from None
        self.rows, self._most = found["rows"], found["line"]

    def close(self) -> None:
        """Ends the process; it also ends with this one."""
        with contextlib.suppress(OSError):  # it ended before
            self._in.close()
        self._process.wait()

    async def ask(self, do: str, **what: Any) -> dict[str, Any]:
        """The answer to one request. Raises RuntimeError with what is wrong."""
        return await asyncio.wrap_future(self._send(do, **what))

    def _send(self, do: str, **what: Any) -> "Future[dict[str, Any]]":
        future: Future[dict[str, Any]] = Future()
        line = json.dumps({"do": do, **what})
        if self._most is not None and len(line) + 40 > self._most:  # it would end the process for everyone
            future.set_exception(
                RuntimeError(f"a reply of {len(line):,} bytes: at most {self._most:,} are read")
            )
            return future
        with self._writing:
            number = next(self._numbers)
            self._waiting[number] = future
            try:
                self._in.write(f'{{"id": {number}, {line[1:]}\n'.encode())
                self._in.flush()
            except (OSError, ValueError):  # ValueError: it was closed
                self._give_up(number)
            if self._process.poll() is not None:
                self._give_up(number)
        return future

    def _read(self) -> None:
        for line in self._out:
            said = json.loads(line)
            future = self._waiting.pop(said.pop("id"), None)
            if future is None:
                continue
            if "error" in said:
                future.set_exception(RuntimeError(said["error"]))
            else:
                future.set_result(said)
        self._process.wait()
        for number in list(self._waiting):
            self._give_up(number)

    def _give_up(self, number: int) -> None:
        """The process has ended: sender and reader may both find that out, and one of them says so."""
        future = self._waiting.pop(number, None)
        if future is not None:
            future.set_exception(
                RuntimeError(
                    f"{self._python} has ended; it needs robustbench-tc in it (its own message stands above)"
                )
            )
