"""A rollout in which a tool call meets a transition error and the model may try again.

    model: <think> … </think> <tool_call> … </tool_call>      attempt 1
    tool:  <obs> HTTP 429 Too Many Requests. … </obs>          the row's error, at its turn
    model: <tool_call> … </tool_call>                          attempt 2: weighs most in the reward
    tool:  <obs> [{"name": …, "results": …}] </obs>            later calls succeed, but after a 401
    model: <response> … </response>                            no call: the rollout ends

The tools' answers are user turns in the form that rlla's own transcripts and system text give them; they
are masked out of the loss. The attempts reach the reward through `extra_fields`.
"""

import json
from typing import Any, Protocol
from uuid import uuid4

from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopOutput, register
from verl.utils.profiler import simple_timer
from verl.utils.rollout_trace import rollout_trace_op

from robustbench_tc import seeding
from robustbench_tc.errors import UserError
from robustbench_tc.eval.prompts.rlla_form import observation
from robustbench_tc.train_recipes.noisy import COLUMN, DRAWN, noise
from robustbench_tc.train_recipes.retry.reward import calls_in, permanent

PLUGIN = "robustbench_tc.train_recipes.verl_plugin"


class Environment(Protocol):
    """The other side of one trajectory."""

    async def answer(self, text: str) -> str | None:
        """The user turn after a text of the model's; None ends the trajectory."""
        ...

    def was_seen(self) -> None:
        """The last answer went to the model: there was room for it."""
        ...

    async def outcome(self) -> dict[str, Any]:
        """Fields for the reward, once the trajectory is over."""
        ...


class ErrorOnce:
    """A row's error at its turn, a plain success for every other call; no call ends the trajectory.

    A permanent error (reward.py) is met by every call from its turn on: credentials do not get better.
    """

    def __init__(self, fault: dict[str, Any] | None, noisy: bool = False) -> None:
        """`noisy`: the error is drawn for each rollout, so the outcome says which way it went."""
        self._fault, self._noisy = fault, noisy
        self._answered, self._failing, self._error_attempt = 0, False, -1

    async def answer(self, text: str) -> str | None:
        names = [call["name"] for call in calls_in(text)]
        if not names:
            return None
        self._answered += 1
        if self._fault is not None:
            late = self._answered - self._fault["position"]
            self._failing = late == 0 or (late > 0 and permanent(self._fault))
            if self._failing:
                return observation(str(self._fault["error"]))
        # No real tool stands behind a row, so a success says nothing about the arguments: the reward does.
        results = [{"name": name, "results": {"status": "success"}} for name in names]
        return observation(json.dumps(results, ensure_ascii=False))

    def was_seen(self) -> None:
        if self._failing and self._error_attempt < 0:
            self._error_attempt = self._answered - 1

    async def outcome(self) -> dict[str, Any]:
        said = {DRAWN: self._fault is not None} if self._noisy else {}
        return {"error_attempt": self._error_attempt} | said


@register("retry_agent")
class RetryAgentLoop(AgentLoopBase):
    """One trajectory. Arguments beyond verl's own come from agent_loop.yaml."""

    def __init__(
        self,
        *args: Any,
        max_attempts: int = 4,
        position: int | None = None,
        probability: float | None = None,
        **kwargs: Any,
    ) -> None:
        """`position` and `probability` override what the rows say; see agent_loop.yaml."""
        super().__init__(*args, **kwargs)
        self._max_attempts, self._position, self._probability = max_attempts, position, probability
        self._response_length = self.rollout_config.response_length

    @rollout_trace_op  # type: ignore[untyped-decorator,unused-ignore]
    async def run(self, sampling_params: dict[str, Any], priority: int = 0, **kwargs: Any) -> AgentLoopOutput:
        """Generates, answers, generates again, until the model makes no call or its room is used up."""
        messages = [dict(message) for message in kwargs["raw_prompt"]]
        info = dict(kwargs.get("extra_info") or {})
        info |= {name: kwargs[name] for name in (COLUMN, "session_id") if name in kwargs}
        environment = self._environment(info)
        deterministic = getattr(self.rollout_config, "full_determinism", False)
        priority = int(priority)  # verl hands in a numpy number
        request_id = f"det-{priority}" if deterministic else uuid4().hex
        ids: list[int] = await self.ct_build_initial_tokens(messages)
        mask: list[int] = []
        logprobs: list[float] | None = None
        fields: dict[str, Any] = {}
        metrics: dict[str, Any] = {}
        attempts: list[str] = []
        while True:
            with simple_timer("generate_sequences", metrics):
                output = await self.server_manager.generate(
                    request_id=request_id, prompt_ids=ids, sampling_params=sampling_params, priority=priority
                )
            metrics["num_preempted"] = metrics.get("num_preempted", 0) + (output.num_preempted or 0)
            # The first generation's fields stand, but the newest weights that took part are named.
            newest = output.extra_fields.get("max_global_steps")
            fields = fields or dict(output.extra_fields)
            fields |= {} if newest is None else {"max_global_steps": newest}
            merged, mask, logprobs = await self.ct_merge_assistant_token(
                ids,
                output.token_ids,
                mask,
                (logprobs or []) if output.log_probs else None,
                assistant_logprobs=output.log_probs or None,
            )
            ids = merged.token_ids
            text = self.tokenizer.decode(output.token_ids, skip_special_tokens=True)
            attempts.append(text)
            messages.append({"role": "assistant", "content": text})
            if len(attempts) >= self._max_attempts or len(mask) >= self._response_length:
                break
            answer = await environment.answer(text)
            if answer is None:
                break
            longer = [*messages, {"role": "user", "content": answer}]
            merged, grown, grown_logprobs = await self.ct_merge_context_msg(
                messages, longer, ids, mask, logprobs
            )
            if len(grown) >= self._response_length:
                break  # no room for another attempt
            environment.was_seen()
            messages, ids, mask, logprobs = longer, merged.token_ids, grown, grown_logprobs
        prompt = len(ids) - len(mask)
        return AgentLoopOutput(
            prompt_ids=ids[:prompt],
            response_ids=ids[prompt:][: self._response_length],
            response_mask=mask[: self._response_length],
            response_logprobs=logprobs[: self._response_length] if logprobs else None,
            num_turns=len(messages),
            metrics=metrics,
            extra_fields=fields
            | {"attempts": attempts, "turn_scores": [], "tool_rewards": []}
            | await environment.outcome(),
        )

    def _environment(self, info: dict[str, Any]) -> Environment:
        """What answers the calls of one trajectory; `info` is the row's `extra_info`.

        With `data.noisy` it also has which of the prompt's rollouts meet the error, and this one's number.
        """
        fault, mine = self._fault(info), info.get(COLUMN)
        if mine is None:
            if info.get("split") == "train" and noise(self.data_config.get("noisy")).on:
                raise UserError(
                    f"data.noisy is set and {PLUGIN} is not in VERL_USE_EXTERNAL_MODULES: use train.sh"
                )
            return ErrorOnce(fault)
        return ErrorOnce(fault if info["session_id"] in mine["met"] else None, noisy=True)

    def _fault(self, info: dict[str, Any]) -> dict[str, Any] | None:
        """The error of the row and the turn that meets it; None where the row has none, or is spared."""
        fault = info.get("retry")
        if not fault:
            return None
        if self._probability is not None:
            # By row, so that all rollouts of a group meet the same world.
            draw = seeding.rng(0, "meets", str(info.get("clean_id")), str(info.get("split")))
            if draw.random() >= self._probability:
                return None
        return dict(fault) | {"position": self._position or fault["position"]}
