"""verl's agent loop over a world: `retry`'s loop, with the row's world as what answers."""

from typing import Any

from verl.experimental.agent_loop.agent_loop import register

from robustbench_tc.schema import LiveRow, loads, record
from robustbench_tc.train_recipes.retry.agent_loop import RetryAgentLoop
from robustbench_tc.worlds.host import Worlds

from .rollout import Rollout

_WORLDS = Worlds()
"""The bundled worlds evaluate nothing of what a model says, so they run in the rollout worker's process."""


@register("live_agent")
class LiveAgentLoop(RetryAgentLoop):
    """One trajectory; `max_attempts` counts the model's answers over all turns of the task."""

    def _environment(self, info: dict[str, Any]) -> Rollout:
        return Rollout(record(loads(info["live_row"]), LiveRow), _WORLDS)
