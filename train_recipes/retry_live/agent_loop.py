"""verl's agent loop over a world: `retry`'s loop, with the row's world as what answers."""

from typing import Any

import msgspec
from verl.experimental.agent_loop.agent_loop import register

from robustbench_tc.schema import LiveRow, loads, record
from robustbench_tc.train_recipes.retry.agent_loop import RetryAgentLoop
from robustbench_tc.worlds.host import Worlds

from .rollout import Rollout

_WORLDS = Worlds()
"""The bundled worlds evaluate nothing of what a model says, so they run in the rollout worker's process."""


class InWorld:
    """A rollout as the agent loop's `Environment`."""

    def __init__(self, rollout: Rollout) -> None:
        self._rollout = rollout
        self.answer = rollout.answer
        self.was_seen = rollout.was_seen

    async def outcome(self) -> dict[str, Any]:
        return {"world": msgspec.json.encode(await self._rollout.outcome()).decode()}


@register("live_agent")
class LiveAgentLoop(RetryAgentLoop):
    """One trajectory; `max_attempts` counts the model's answers over all turns of the task."""

    async def _environment(self, info: dict[str, Any]) -> InWorld:
        row = record(loads(info["live_row"]), LiveRow)
        return InWorld(await Rollout.begin(row, _WORLDS))
