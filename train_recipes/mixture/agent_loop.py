"""verl's agent loop for rows of `full` in a mixture: one answer, as long as in their own recipe."""

from typing import Any

from verl.experimental.agent_loop.agent_loop import AgentLoopOutput, register
from verl.experimental.agent_loop.single_turn_agent_loop import SingleTurnAgentLoop


@register("full_agent")
class FullAgentLoop(SingleTurnAgentLoop):  # type: ignore[misc,unused-ignore]
    """One trajectory. `data.max_response_length` has room for the attempts of `retry`; an answer has less."""

    def __init__(self, *args: Any, response_length: int | None = None, **kwargs: Any) -> None:
        """`response_length`: tokens of an answer, from agent_loop.yaml; null: all the room there is."""
        super().__init__(*args, **kwargs)
        room = self.rollout_config.response_length
        self.response_length: int = room if response_length is None else min(room, response_length)

    async def run(self, sampling_params: dict[str, Any], priority: int = 0, **kwargs: Any) -> AgentLoopOutput:
        """One generation."""
        bounded = {**sampling_params, "max_tokens": self.response_length}
        return await super().run(bounded, priority, **kwargs)
