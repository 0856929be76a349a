"""Rows of RobustBench-TC as tasks of verifiers. Modules of their own: nothing of robustbench_tc is imported.

The two packages can share no environment. The rows, their worlds and the scorer therefore live in a process
of the Python that has robustbench-tc, which is spoken to in lines of JSON. The harness asks that process what
to send, sends it to the model, and hands the reply back; so requests are those of `rbtc live run` and
`rbtc eval`, byte for byte: a row's own tools with their schemas, equal names included.
"""

import asyncio
import itertools
import json
import os
import subprocess
import threading
from concurrent.futures import Future
from pathlib import Path
from typing import Any, ClassVar

import httpx
import verifiers.v1 as vf
from pydantic import Field

SCORE = "robustbench_tc"
"""Under which `trace.info` holds what our scorer said."""

AGAIN = (408, 409, 429)
"""Statuses besides 5xx after which a request is sent again, twice."""


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
        threading.Thread(target=self._read, daemon=True).start()
        try:
            self.rows = self._send("open", kind=kind, settings=settings).result()["rows"]
        except RuntimeError as error:
            raise SystemExit(str(error)) from None

    async def ask(self, do: str, **what: Any) -> dict[str, Any]:
        """The answer to one request. Raises RuntimeError with what is wrong."""
        return await asyncio.wrap_future(self._send(do, **what))

    def _send(self, do: str, **what: Any) -> "Future[dict[str, Any]]":
        future: Future[dict[str, Any]] = Future()
        line = json.dumps({"do": do, **what})
        with self._writing:
            number = next(self._numbers)
            self._waiting[number] = future
            try:
                self._in.write(f'{{"id": {number}, {line[1:]}\n'.encode())
                self._in.flush()
            except OSError:
                self._waiting.pop(number, None)
                future.set_exception(self._gone())
            if self._process.poll() is not None and not future.done():
                self._waiting.pop(number, None)
                future.set_exception(self._gone())
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
        while self._waiting:
            self._waiting.popitem()[1].set_exception(self._gone())

    def _gone(self) -> RuntimeError:
        return RuntimeError(
            f"{self._python} has ended; it needs robustbench-tc in it (its own message stands above)"
        )


class RowsConfig(vf.TasksetConfig):
    """Which rows. `python` and `dataset` may be left out where RBTC_PYTHON and a dataset's default are."""

    python: str = Field(default_factory=lambda: os.environ.get("RBTC_PYTHON", "python"))
    """The Python that has robustbench-tc."""
    types: str = ""
    """Types or kinds of faults, separated by commas."""
    revision: str | None = None
    """Of a dataset on the Hub."""

    def settings(self, dataset: str, **more: Any) -> dict[str, Any]:
        """What the process is opened with."""
        there = Path(dataset).expanduser()
        found = {"dataset": str(there.resolve()) if there.is_dir() else dataset}
        return found | {"types": self.types, "revision": self.revision, **more}


class RowData(vf.TaskData):
    """One row; the process has the rest of it."""

    python: str
    kind: str
    settings: dict[str, Any]
    clean_id: str
    type: str

    @property
    def core(self) -> Core:
        return Core.of(self.python, self.kind, self.settings)


class RowTask(vf.Task[RowData]):
    """A row: the reward is 1 where our scorer calls it right, else 0.

    What the scorer said is in `trace.info`: a trace can be scored again without a world.
    """

    @vf.reward(weight=1.0)
    async def right(self, trace: vf.Trace) -> float:
        return float(trace.info[SCORE]["reward"]) if SCORE in trace.info else 0.0

    @vf.metric
    async def counts(self, trace: vf.Trace) -> dict[str, float]:
        return dict(trace.info[SCORE]["metrics"]) if SCORE in trace.info else {}

    async def validate(self, runtime: vf.Runtime) -> bool:
        """Whether gold, played through the same conversation, earns 1."""
        found = await self.data.core.ask("gold", row=self.data.id)
        return bool(found["score"]["reward"] == 1.0)


def tasks(config: RowsConfig, kind: str, settings: dict[str, Any]) -> list[RowTask]:
    """A task for each row."""
    found = []
    for row in Core.of(config.python, kind, settings).rows:
        said = [one["content"] for one in row["messages"] if one["role"] == "user"]
        about = {"clean_id": row["clean_id"], "type": row["type"], "prompt": "\n\n".join(said)}
        data = RowData(
            id=row["id"], name=row["id"], python=config.python, kind=kind, settings=settings, **about
        )
        found.append(RowTask(data, config.task))
    return found


class RowHarness(vf.Harness[vf.HarnessConfig]):
    """Plays a row in this process: no program is installed, no tool server started."""

    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(
        self,
        ctx: Any,
        trace: vf.Trace,
        runtime: Any,
        endpoint: str,
        secret: str,
        mcp_urls: dict[str, str],
        data: RowData,
    ) -> vf.ProgramResult:
        core = data.core
        begun = await core.ask("begin", row=data.id, model=ctx.model)
        ask, number, failed = begun["ask"], begun["dialogue"], ""
        try:
            headers = {"Authorization": f"Bearer {secret}"}
            async with httpx.AsyncClient(base_url=endpoint, headers=headers, timeout=None) as client:
                while ask is not None:
                    body = {"model": ctx.model} | {key: one for key, one in ask.items() if one is not None}
                    response = await _sent(client, body)
                    if response.status_code != 200:
                        failed = response.text[-2000:] or f"status {response.status_code}"
                        break
                    said = response.json()
                    ask = (await core.ask("reply", dialogue=number, completion=said))["ask"]
        finally:
            score = (await core.ask("end", dialogue=number))["score"]
        if not failed or trace.stop_condition is not None:  # a limit of the run's cut it off: scored as it is
            trace.info[SCORE] = score
        return vf.ProgramResult(exit_code=int(bool(failed)), stdout="", stderr=failed)


async def _sent(client: httpx.AsyncClient, body: dict[str, Any]) -> httpx.Response:
    for pause in (0.5, 2.0, None):
        response = await client.post("/chat/completions", json=body)
        wanted = response.status_code in AGAIN or response.status_code >= 500
        if pause is None or not wanted:
            break
        await asyncio.sleep(pause)
    return response
