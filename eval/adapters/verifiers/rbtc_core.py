"""Rows of RobustBench-TC as tasks of verifiers. Modules of their own: nothing of robustbench_tc is imported.

The harness asks the process that has the rows (`rbtc_process`) what to send, sends it to the model, and hands
the reply back; so requests are those of `rbtc eval`, byte for byte: a row's own tools with their schemas,
equal names included.
"""

import os
from pathlib import Path
from typing import Any

import openai
import verifiers.v1 as vf
from pydantic import Field
from rbtc_process import Core

SCORE = "robustbench_tc"
"""Under which `trace.info` holds what our scorer said."""


class RowsConfig(vf.TasksetConfig):
    """Which rows. `python` and `dataset` may be left out where RBTC_PYTHON and a dataset's default are."""

    python: str = Field(default_factory=lambda: os.environ.get("RBTC_PYTHON", "python"))
    """The Python that has robustbench-tc."""
    dataset: str
    types: str = ""
    """Types or kinds of faults, separated by commas."""
    revision: str | None = None
    """Of a dataset on the Hub."""
    mode: str = "fc"
    """fc: native tools; prompt: the registry stands in the system message, calls are read from texts."""


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


def tasks(config: RowsConfig, kind: str) -> list[RowTask]:
    """A task for each row. The process is opened with what the config has beside verifiers' own fields."""
    own = config.model_dump(exclude={"python", *vf.TasksetConfig.model_fields})
    there = Path(config.dataset).expanduser()
    settings = own | ({"dataset": str(there.resolve())} if there.is_dir() else {})
    found = []
    for row in Core.of(config.python, kind, settings).rows:
        said = [one["content"] for one in row["messages"] if one["role"] == "user"]
        data = RowData(
            id=row["id"],
            name=row["id"],
            python=config.python,
            kind=kind,
            settings=settings,
            clean_id=row["clean_id"],
            type=row["type"],
            prompt="\n\n".join(said),
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
