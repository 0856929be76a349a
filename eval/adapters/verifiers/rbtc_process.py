"""The process that has the rows, their worlds and the scorer.

Worlds and scorer run beside the rollouts, in a process of the Python that has robustbench-tc: this one, or
another environment's. It answers each line of JSON with one (`robustbench_tc.eval.adapters.serve`).
"""

import asyncio
import json
import os
import subprocess
import threading
from functools import cache
from typing import Any


@cache
def core(python: str, settings: str) -> "Core":
    """The process for these settings: one for the same."""
    return Core(python, settings)


class Core:
    """The process that has the rows. It ends with this one."""

    def __init__(self, python: str, settings: str) -> None:
        """`settings`: JSON. Ends the program with one line where the process cannot be had."""
        own = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
        self._python, self._lock = python, threading.Lock()
        try:
            self._process = subprocess.Popen(
                [python, "-m", "robustbench_tc.eval.adapters.serve", settings],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={name: value for name, value in os.environ.items() if name not in own},
            )
            self.rows = self._answer("rows")["rows"]
        except OSError as error:
            raise SystemExit(f"{python}: {error.strerror}: name a Python with robustbench-tc in it") from None
        except RuntimeError:
            raise SystemExit(
                f"{python} gives no rows of robustbench-tc: its own message stands above"
            ) from None

    async def ask(self, do: str, **what: Any) -> dict[str, Any]:
        """The answer to one request. Raises RuntimeError with what is wrong."""
        return await asyncio.to_thread(self._answer, do, **what)

    def _answer(self, do: str, **what: Any) -> dict[str, Any]:
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            with self._lock:  # an answer belongs to the request before it
                self._process.stdin.write(json.dumps({"do": do, **what}).encode() + b"\n")
                self._process.stdin.flush()
                answer = dict(json.loads(self._process.stdout.readline()))
        except (BrokenPipeError, ValueError):
            raise RuntimeError(f"{self._python} has ended: see its own message above") from None
        if "wrong" in answer:
            raise RuntimeError(answer["wrong"])
        return answer
