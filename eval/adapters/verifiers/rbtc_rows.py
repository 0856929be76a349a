"""Rows of RobustBench-TC as tasks of verifiers: `vf-eval rbtc-rows`.

The loader of verifiers 0.4 takes the classes of `__all__`; a function `load_environment` is not looked for.
The harness asks the process that has the rows (`rbtc_process`) what to send, sends it to the model, and hands
the reply back; so requests are those of `rbtc eval`, byte for byte: a row's own tools with their schemas,
equal names included.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import openai
import verifiers.v1 as vf
from pydantic import Field
from rbtc_process import Core, core

__all__ = ["RowHarness", "RowTaskset"]

SCORE = "robustbench_tc"
"""Under which `trace.info` holds what our scorer said."""


class RowsConfig(vf.TasksetConfig):
    """Which rows: the options of `rbtc eval`, several names separated by commas."""

    python: str = Field(default_factory=lambda: os.environ.get("RBTC_PYTHON", sys.executable))
    """The Python that has robustbench-tc: this one, unless said otherwise."""
    dataset: str = "robustbench-tc"
    """A release or a build, of static rows or a live one."""
    revision: str | None = None
    """Of a dataset on the Hub."""
    types: str = ""
    """Types or kinds of faults."""
    sources: str = ""
    """Upstream benchmarks."""
    ids: str = ""
    """Row ids, or those of samples and tasks."""
    samples: int | None = None
    """At most so many clean ids, with all their rows."""
    mode: str = "fc"
    """fc: native tools; prompt: the registry stands in the system message, calls are read from texts."""
    worlds: str = ""
    """Python files of worlds that robustbench-tc does not bring."""
    world_python: str | None = None
    """The Python that has BFCL's classes."""


class RowData(vf.TaskData):
    """One row; the process has the rest of it."""

    python: str
    settings: str
    clean_id: str
    type: str

    @property
    def core(self) -> Core:
        return core(self.python, self.settings)


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


class RowTaskset(vf.Taskset[RowTask, RowsConfig]):
    """One task for each row."""

    def load(self) -> list[RowTask]:
        config, found = self.config, []
        there = Path(config.dataset).expanduser()
        dataset = str(there.resolve()) if there.is_dir() else config.dataset
        # What is not verifiers' own says which rows.
        own = config.model_dump(exclude={"python", *vf.TasksetConfig.model_fields})
        settings = json.dumps(own | {"dataset": dataset}, sort_keys=True)
        for row in core(config.python, settings).rows:
            data = RowData(
                id=row["id"],
                name=row["id"],
                python=config.python,
                settings=settings,
                clean_id=row["clean_id"],
                type=row["type"],
                prompt="\n\n".join(one["content"] for one in row["ask"]["messages"] if one["role"] == "user"),
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
            async with openai.AsyncOpenAI(base_url=endpoint, api_key=secret, timeout=None) as client:
                while ask is not None:
                    body = {"model": ctx.model} | {key: one for key, one in ask.items() if one is not None}
                    said = await client.post("/chat/completions", body=body, cast_to=object)
                    ask = (await core.ask("reply", dialogue=number, completion=said))["ask"]
        except openai.APIError as error:
            failed = str(error)[-2000:]
        finally:
            score = (await core.ask("end", dialogue=number))["score"]
        if not failed or trace.stop_condition is not None:  # a limit of the run's cut it off: scored as it is
            trace.info[SCORE] = score
        return vf.ProgramResult(exit_code=int(bool(failed)), stdout="", stderr=failed)
