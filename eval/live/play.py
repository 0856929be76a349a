"""A person in an agent's place: the same loop, the same limits, the same results.

Calls run one by one between what is typed, so that Ctrl-C is heard while a person thinks.
"""

import asyncio
from types import TracebackType
from typing import Self

from robustbench_tc.schema import Ended, Episode, Json, LiveRow, LiveTool, Step, dumps
from robustbench_tc.worlds.handle import WorldType
from robustbench_tc.worlds.host import Worlds

from ..inputs import Selection
from ..record import Answer, Settings
from . import prompts
from .carrying_out import carried_out
from .conversation import Wanted
from .episode import Place, Stage, bounded
from .replay import replayed
from .show import Shown, shown


class Game:
    """One episode that a person plays. Use it as a context manager: the world ends with it."""

    def __init__(self, row: LiveRow, world: WorldType) -> None:
        settings = Settings(
            fingerprint="",
            model="person",
            mode="fc",
            backend="person",
            decoding={},
            prompt_version=prompts.version(),
            selection=Selection(),
            repeat=1,
        )
        self.row = row
        self._world = world
        self._place = Place.of(row, settings, 0)
        self._so_far = self._place.conversation()
        self._runner = asyncio.Runner()
        self._worlds = Worlds()
        self._stage = Stage(row, self._worlds, world)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._worlds.close()
        self._runner.close()

    @property
    def tools(self) -> tuple[LiveTool, ...]:
        """What is offered in this turn."""
        return self._so_far.tools

    @property
    def turn(self) -> int:
        """Of the user, from 0."""
        return self._so_far.turn

    @property
    def ended(self) -> Ended | None:
        return self._so_far.ended

    @property
    def says(self) -> str:
        """What the user said last."""
        messages = self._so_far.request().messages
        return str(next(one["content"] for one in reversed(messages) if one["role"] == "user"))

    def call(self, name: str, arguments: Json) -> Step:
        """Carries a call out. Raises ValueError for arguments that are not JSON."""
        number, text = len(self._so_far.replies) + 1, dumps(arguments)
        wanted = [Wanted(name, arguments)]
        steps = self._runner.run(self._stage.carry_out(carried_out(self._so_far, wanted)))
        native = [{"id": f"call_{number}", "name": name, "arguments": text}]
        self._so_far.add(self._answer(None, native), steps)
        return steps[0]

    def say(self, text: str) -> None:
        """Replies to the user: that ends the turn, or asks."""
        self._so_far.add(self._answer(text, None), ())

    def _answer(self, text: str | None, calls: Json) -> Answer:
        number = len(self._so_far.replies) + 1
        base = Answer(id=self.row.id, repeat=0, number=number, status="ok", text=text, tool_calls=calls)
        return bounded(base)

    def verdict(self) -> Shown:
        """How it went, once it has ended."""
        episode: Episode = self._place.episode(self._so_far, None)
        return shown(self._runner.run(replayed(self.row, episode, self._worlds, world=self._world)))
