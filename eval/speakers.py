"""Who answers: a model, a reference agent or a scripted agent in this process."""

from collections.abc import Mapping

import msgspec

from robustbench_tc.llm import ChatRequest, Client, Completion, LLMError
from robustbench_tc.schema import Call, Json, LiveRow, Sample, Status, Tool

from . import agents, wire
from .dialogue import BudgetSpent, Dialogue
from .live import agents as live_agents
from .live.world_env import World
from .prompts import OURS, Prompts
from .prompts.calls import python_calls, render_calls
from .record import Answer, Settings
from .request_settings import RequestSettings

SAMPLES = 1_000
"""Between the seeds of two samples of one request: more than there are repeats."""


class ModelSpeaker:
    """Asks a model with a run's decoding and the user's system text."""

    def __init__(self, client: Client, requests: RequestSettings) -> None:
        self._client, self._requests = client, requests

    async def ask(self, ask: wire.Ask, repeat: int) -> Completion:
        """The completion of one request. Raises LLMError.

        A repeat, from 0, has a place in the store of its own, and with `seed` in the decoding seed + repeat.
        """
        params = dict(self._requests.decoding)
        if params.get("seed") is not None:
            params["seed"] += repeat
        messages = with_system(ask.messages, self._requests.system)
        return await self._client.complete(ChatRequest(messages, ask.tools, params, repeat))

    async def reply(self, dialogue: Dialogue, ask: wire.Ask, base: Answer) -> Answer:
        """What came back, or the reason why nothing did; names mapped to those of the tools as shown.

        Raises BudgetSpent.
        """
        draw = base.repeat + ask.draw * SAMPLES  # a seed of its own for every sample
        try:
            done = await self.ask(ask, draw)
        except LLMError as error:
            if error.code == "budget":
                raise BudgetSpent(f"stopped: {error.message}; answers are kept") from None
            return failed(error, base, ask)
        return answer_of(done, base, dialogue.env.tools)


def with_system(messages: list[dict[str, Json]], system: str | None) -> list[dict[str, Json]]:
    """The messages with the user's own system text in front."""
    if system is None:
        return messages
    first, *rest = messages or [{}]
    if first.get("role") != "system":
        return [{"role": "system", "content": system}, *messages]
    return [{**first, "content": f"{system}\n\n{first['content']}"}, *rest]


def body(ask: wire.Ask, settings: Settings, repeat: int = 0) -> dict[str, Json]:
    """The body of a request, as a server gets it that takes all its parameters."""
    found: dict[str, Json] = {"model": settings.checkpoint or settings.model, **settings.decoding}
    if found.get("seed") is not None:
        found["seed"] += repeat + ask.draw * SAMPLES
    found["messages"] = with_system(ask.messages, settings.system)
    return found if ask.tools is None else {**found, "tools": ask.tools}


def answer_of(done: Completion, base: Answer, tools: tuple[Tool, ...]) -> Answer:
    """A completion as an answer; native calls by the names of `tools`."""
    return msgspec.structs.replace(
        base,
        text=done.text,
        tool_calls=wire.names_back(tools, done.tool_calls),
        finish_reason=done.finish_reason,
        prompt_tokens=done.prompt_tokens,
        completion_tokens=done.completion_tokens,
        latency_s=round(done.latency_s, 6),
        retries=done.retries,
        logprobs=chosen(done.logprobs),
        reasoning=done.reasoning,
        served_model=done.model,
    )


def chosen(logprobs: Json) -> list[float] | None:
    """The log probability of each token of a reply; what else a server says of them is many times longer."""
    entries = logprobs.get("content") if isinstance(logprobs, dict) else logprobs
    values = [one.get("logprob") for one in entries or () if isinstance(one, dict)]
    return [float(value) for value in values if isinstance(value, int | float)] or None


def failed(error: LLMError, base: Answer, ask: wire.Ask) -> Answer:
    """What is recorded of a request without a completion."""
    filtered = "content_filter" if error.code == "content_filter" else None
    return msgspec.structs.replace(
        base, status=status_of(error, ask), error=str(error), finish_reason=filtered
    )


def status_of(error: LLMError, ask: wire.Ask) -> Status:
    """How a request without a completion is recorded."""
    if error.code == "too_long":
        return "too_long"
    # A refusal in unknown words may be one of a registry that servers are known to refuse.
    of_names = error.code == "bad_request" and wire.has_duplicates(ask)
    if of_names or error.code in ("rejected", "duplicate_tools"):
        return "rejected"
    return "request_error"


class ReferenceAgent:
    """One of `agents.AGENTS`: it knows the row that it is asked about, as defences show it."""

    def __init__(self, agent: str, anchors: Mapping[str, Sample], words: Prompts = OURS) -> None:
        """`anchors`: by row id the clean row, as defences show it (`inputs.anchors`); `words`: of prompt
        mode."""
        self._agent, self._anchors, self._words = agent, anchors, words

    async def reply(self, dialogue: Dialogue, ask: wire.Ask, base: Answer) -> Answer:
        """A validator teaches it nothing: what it was asked before is asked again."""
        row = ask.row
        assert row is not None
        errors = min(base.number - 1, wire.answered(row))
        scene = agents.AgentContext(row, self._anchors[row.id], errors > 0, errors)
        said = agents.reply(self._agent, scene)
        base = msgspec.structs.replace(base, text="", finish_reason="tool_calls", prompt_tokens=0)
        if isinstance(said, tuple) and dialogue.settings.mode == "fc":
            return msgspec.structs.replace(base, tool_calls=wire.native(said), completion_tokens=0)
        text = said if isinstance(said, str) else render_calls(said, self._words.output_format(row))
        words = len(text.split())  # as its tokens: something that defences can cost
        return msgspec.structs.replace(base, text=text, finish_reason="stop", completion_tokens=words)


class ScriptedAgent:
    """One of `live.agents.AGENTS`, which knows the clean row of the task and not the fault."""

    def __init__(self, agent: str, clean: Mapping[str, LiveRow]) -> None:
        self._make, self._clean = live_agents.AGENTS[agent], clean

    async def reply(self, dialogue: Dialogue, ask: wire.Ask, base: Answer) -> Answer:
        world = dialogue.env
        assert isinstance(world, World)
        player = self._make(self._clean[world.row.clean_id])
        asked = bool(world.replies) and world.replies[-1].answered
        said = player.reply(live_agents.View(world.turn, world.history, asked, world.shown_tools))
        return in_world(base, said, world)


def in_world(base: Answer, said: tuple[Call, ...] | str, world: World) -> Answer:
    """Calls or a text as the mode of the run writes them; calls of the registry as it is shown."""
    if isinstance(said, str):
        return msgspec.structs.replace(base, text=said)
    said = tuple(world.registry.calling(world.turn, call) for call in said)
    if world.mode == "prompt":
        return msgspec.structs.replace(base, text=python_calls(said))
    return msgspec.structs.replace(
        base, text="", tool_calls=wire.native(said, f"call_{len(world.replies) + 1}_")
    )
