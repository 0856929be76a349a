"""verl's agent loop for rollouts of several turns: generate, read the calls, answer them, generate again.

A row says what answers (`extra_info.rollout`): a world (`live_rollout`), nothing at all after one answer
(`single`), or, under `retry`, an error that the model may try again after:

    model: <think> … </think> <tool_call> … </tool_call>      attempt 1
    tool:  <obs> HTTP 429 Too Many Requests. … </obs>          the row's error, at its turn
    model: <tool_call> … </tool_call>                          attempt 2: weighs most in the reward
    tool:  <obs> [{"name": …, "results": …}] </obs>            later calls succeed, but after a 401
    model: <response> … </response>                            no call: the rollout ends

The tools' answers are user turns in the form that rlla's own transcripts and system text give them; they
are masked out of the loss. The attempts reach the reward through `extra_fields`.
"""

import json
from typing import Any
from uuid import uuid4

from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopOutput, register
from verl.utils.profiler import simple_timer
from verl.utils.rollout_trace import rollout_trace_op

from robustbench_tc.errors import UserError
from robustbench_tc.eval.prompts.rlla_form import observation
from robustbench_tc.schema import LiveRow, loads, record

from .live_rollout import Rollout
from .retry_reward import calls_in, permanent
from .reward import LIVE, RETRY, SINGLE
from .verl_noisy import COLUMN, DRAWN

PLUGIN = "robustbench_tc.train_recipes.verl_plugin"


class ErrorOnce:
    """A row's error at its turn, a plain success for every other call; no call ends the trajectory.

    A permanent error (reward.py) is met by every call from its turn on: credentials do not get better.
    """

    def __init__(self, fault: dict[str, Any] | None, noisy: bool = False) -> None:
        """`noisy`: the error is drawn for each rollout, so the outcome says which way it went."""
        self._fault, self._noisy = fault, noisy
        self._answered, self._failing, self._error_attempt = 0, False, -1

    async def answer(self, text: str) -> str | None:
        """The user turn after a text of the model's; None ends the trajectory."""
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
        """The last answer went to the model: there was room for it."""
        if self._failing and self._error_attempt < 0:
            self._error_attempt = self._answered - 1

    async def outcome(self) -> dict[str, Any]:
        """Fields for the reward, once the trajectory is over."""
        drawn = {DRAWN: self._fault is not None} if self._noisy else {}
        return {"error_attempt": self._error_attempt} | drawn


@register("rollout_agent")
class RolloutLoop(AgentLoopBase):
    """One trajectory. Arguments beyond verl's own are `attempts` of the recipe's file."""

    def __init__(
        self,
        *args: Any,
        retry_attempts: int = 4,
        live_attempts: int = 16,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self._attempts = {SINGLE: 1, RETRY: retry_attempts, LIVE: live_attempts}

    @rollout_trace_op  # type: ignore[untyped-decorator,unused-ignore]
    async def run(self, sampling_params: dict[str, Any], priority: int = 0, **kwargs: Any) -> AgentLoopOutput:
        """Generates, answers, generates again, until the model makes no call or its room is used up."""
        messages = [dict(message) for message in kwargs["raw_prompt"]]
        info = dict(kwargs.get("extra_info") or {})
        info |= {name: kwargs[name] for name in (COLUMN, "session_id") if name in kwargs}
        environment, most_attempts = self._environment(info), self._attempts[info["rollout"]]
        room = self.rollout_config.response_length
        priority = int(priority)  # verl hands in a numpy number
        deterministic = getattr(self.rollout_config, "full_determinism", False)
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
            if len(attempts) >= most_attempts or len(mask) >= room:
                break
            answer = await environment.answer(text)
            if answer is None:
                break
            longer = [*messages, {"role": "user", "content": answer}]
            merged, grown, grown_logprobs = await self.ct_merge_context_msg(
                messages, longer, ids, mask, logprobs
            )
            if len(grown) >= room:
                break  # no room for another attempt
            environment.was_seen()
            messages, ids, mask, logprobs = longer, merged.token_ids, grown, grown_logprobs
        prompt = len(ids) - len(mask)
        return AgentLoopOutput(
            prompt_ids=ids[:prompt],
            response_ids=ids[prompt:][:room],
            response_mask=mask[:room],
            response_logprobs=logprobs[:room] if logprobs else None,
            num_turns=len(messages),
            metrics=metrics,
            extra_fields=fields
            | {"attempts": attempts, "turn_scores": [], "tool_rewards": []}
            | await environment.outcome(),
        )

    def _environment(self, info: dict[str, Any]) -> ErrorOnce | Rollout:
        """What answers in one trajectory; `info` is the row's `extra_info`.

        With `data.noisy` it also has which of the prompt's rollouts meet the error, and this one's number.
        """
        if info.get("rollout") == LIVE:
            return Rollout(record(loads(info["live_row"]), LiveRow))
        fault, mine = info.get("retry"), info.get(COLUMN)
        if mine is None:
            if info.get("split") == "train" and self.data_config.get("noisy", 1) < 1:
                raise UserError(
                    f"data.noisy is set and {PLUGIN} is not in VERL_USE_EXTERNAL_MODULES: start it by "
                    "python -m robustbench_tc.train_recipes.grpo"
                )
            return ErrorOnce(fault)
        return ErrorOnce(fault if info["session_id"] in mine["met"] else None, noisy=True)
