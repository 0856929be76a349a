"""Who acts in an episode: a model behind a backend, or a scripted agent in this process."""

from collections.abc import Mapping

import msgspec

from robustbench_tc.schema import Call, LiveRow, dumps

from ..defend.base import Request
from ..prompts.calls import python_calls
from ..record import Answer
from ..run import SAMPLES, Backend, Watch, received
from .agents import AGENTS, View
from .conversation import Conversation


class ModelSpeaker:
    """Asks a backend."""

    def __init__(self, backend: Backend, workers: int) -> None:
        self._backend = backend
        self._watch = Watch(workers)
        self.served_models: set[str] = set()

    async def reply(self, so_far: Conversation, base: Answer, request: Request) -> Answer:
        ask = so_far.request(request.turns)
        draw = base.repeat + request.draw * SAMPLES  # a seed of its own for every sample
        made = await received(self._backend, ask, base, so_far.every_tool, draw)
        self.served_models |= {made.served_model} if made.served_model else set()
        self._watch.see(made, ask)
        return made


class ScriptedSpeaker:
    """Plays one of `agents.AGENTS`, each episode with the clean row of its task."""

    def __init__(self, agent: str, clean: Mapping[str, LiveRow]) -> None:
        self._make = AGENTS[agent]
        self._clean = clean

    async def reply(self, so_far: Conversation, base: Answer, request: Request) -> Answer:
        player = self._make(self._clean[so_far.row.clean_id])
        asked = bool(so_far.replies) and so_far.replies[-1].answered
        said = player.reply(View(so_far.turn, so_far.history, asked, so_far.shown_tools))
        return answered(base, said, so_far)


def answered(base: Answer, said: tuple[Call, ...] | str, so_far: Conversation) -> Answer:
    """Calls or a text as the mode of the run writes them; calls of the registry as it is shown."""
    if isinstance(said, str):
        return msgspec.structs.replace(base, text=said)
    said = tuple(so_far.registry.calling(so_far.turn, call) for call in said)
    if so_far.mode == "prompt":
        return msgspec.structs.replace(base, text=python_calls(said))
    number = len(so_far.replies) + 1
    calls = [
        {"id": f"call_{number}_{at}", "name": call.name, "arguments": dumps(call.parameters)}
        for at, call in enumerate(said)
    ]
    return msgspec.structs.replace(base, text="", tool_calls=calls)
