"""One row with one speaker: the next request out, the reply in, until it has ended.

    dialogue = begin(row, settings, repeat)
    while (ask := dialogue.ask()) is not None:
        dialogue.reply(dialogue.noted(answer to ask))
        if dialogue.doing is not None:                   # calls that a world has to carry out
            dialogue.done(await stage.carry_out(dialogue.doing))

Nothing here reads, writes or waits: a run, the reading of its journal, another harness and a training loop
take the same steps. Defences stand between the row and the speaker; every request that they make is one here.
"""

from collections.abc import Sequence
from types import MappingProxyType
from typing import Protocol, TypeAlias

import msgspec

from robustbench_tc.errors import UserError
from robustbench_tc.schema import Call, Ended, LiveRow, Sample, Step

from . import wire
from .defend.chain import Asking, Request, Said, finished, reply
from .live.carrying_out import CarryingOut
from .live.world_env import World
from .prompts import OURS, Prompts
from .record import Answer, Settings
from .scripted import Results, Scripted

Env: TypeAlias = Scripted | World
"""What answers a speaker's calls: the text of a row, or a world.

`chain` are the defences between the row and the speaker, the first in front; `asks` is a digest of all that
an answer depends on in the row, `wording` a version of the texts it is asked in, where not that of
`Settings.prompt_version`; `tools` are those that the speaker is shown: native calls bear their names. `scene`
is this moment for defences, `ask` one of its requests as it goes over the wire, `noted` an answer as it is
written down. `take`: the reply of this moment, made of several answers, counts; it may return calls that a
world has to carry out before the next moment, and whose `add` is told what came of them.
"""


class Dialogue:
    """A row, asked for the `repeat`th time (from 0)."""

    def __init__(self, env: Env, settings: Settings, repeat: int = 0) -> None:
        self.env, self.settings, self.repeat = env, settings, repeat
        self.number = 0
        """Of the moment, from 1: one reply counts at each."""
        self.doing: CarryingOut | None = None
        """Calls that wait to be carried out; what came of them goes to `done`."""
        self._request: Request | None = None
        self._asked: list[Answer] = []
        """To the requests of this moment: defences may make several."""
        self._next_moment()

    @property
    def ended(self) -> Ended | None:
        """How it ended; None while it goes on."""
        return self.env.ended

    def ask(self) -> wire.Ask | None:
        """The next request; None once it has ended, and while calls wait for a world."""
        if self._request is None:
            return None
        ask = self.env.ask(self._request)
        return msgspec.structs.replace(
            ask, row=self._request.row, number=self.number, draw=self._request.draw
        )

    def base(self) -> Answer:
        """The answer to the next request, without what was said."""
        return Answer(
            id=self.env.row.id, repeat=self.repeat, number=self.number, further=len(self._asked), status="ok"
        )

    def key(self) -> str:
        """Where a journal has the answer to the next request; or, while calls wait, what came of them."""
        env, further = self.env, 0 if self.doing is not None else len(self._asked)
        key = self.settings.key(env.asks, self.repeat, self.number, env.wording, further)
        return f"{key}:results" if self.doing is not None else key

    def noted(self, answer: Answer) -> Answer:
        """An answer to the next request as a journal has it."""
        assert self._request is not None
        return self.env.noted(answer, self._request)

    def calls(self, answer: Answer) -> tuple[Call, ...]:
        """The calls in an answer to the next request, by the names that were shown."""
        assert self._request is not None
        return self._scene.read(self._request.row, answer)

    def reply(self, answer: Answer) -> None:
        """Takes the answer to the next request, as `noted` or a journal has it."""
        self._asked.append(answer)
        self._advance(answer)

    def done(self, steps: Sequence[Step]) -> None:
        """Takes what came of the calls that waited for a world."""
        assert isinstance(self.env, World)
        self.env.add(steps)
        self._next_moment()

    def _next_moment(self) -> None:
        self.doing, self._request = None, None
        if self.env.ended is not None:
            return
        self.number += 1
        self._asked = []
        self._scene = self.env.scene()
        self._steps: Asking = reply(self.env.chain, self._scene)
        self._advance(None)

    def _advance(self, answer: Answer | None) -> None:
        """To the next request of this moment, or to the end of it."""
        try:
            # A generator that has not begun takes None alone.
            self._request = next(self._steps) if answer is None else self._steps.send(answer)
            return
        except StopIteration as end:
            said: Said = end.value
        self._request = None
        if self.env.chain:
            said = finished(said, self._scene, self._asked, repeat=self.repeat, number=self.number)
        self.doing = self.env.take(said, self._asked)
        if self.doing is None:
            self._next_moment()


def begin(
    row: Sample | LiveRow,
    settings: Settings,
    repeat: int = 0,
    results: Results = MappingProxyType({}),
    words: Prompts = OURS,
) -> Dialogue:
    """A row before its first request. `results`: what the tools of own cases answer; `words`: of prompt
    mode."""
    env = World(row, settings) if isinstance(row, LiveRow) else Scripted(row, settings, results, words)
    return Dialogue(env, settings, repeat)


class BudgetSpent(UserError):
    """The limit of cost is reached: nothing more is sent."""


class Speaker(Protocol):
    """Whoever answers: a model, a reference or scripted agent, an agent of the user's, a person."""

    async def reply(self, dialogue: Dialogue, ask: wire.Ask, base: Answer) -> Answer:
        """The answer to the next request: `base` with what was said, or with a status other than ok.

        Raises BudgetSpent, or UserError where there is no sense in going on.
        """
