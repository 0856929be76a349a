"""A person in an agent's place: the same loop, the same limits, the same results.

Calls run one by one between what is typed, so that Ctrl-C is heard while a person thinks.
"""

import asyncio
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Self

import msgspec

from robustbench_tc.live import Ended, Episode, LiveRow, LiveTool, Step
from robustbench_tc.option import Tell
from robustbench_tc.schema import Json, dumps
from robustbench_tc.worlds.handle import WorldType
from robustbench_tc.worlds.host import Worlds

from ..inputs import Selection
from ..record import Answer, Settings
from ..row_view import described
from . import prompts
from .carrying_out import carried_out
from .conversation import Wanted
from .episode import Place, Stage, bounded
from .replay import replayed
from .show import Shown, shown

HELP = """Type a call:      TOOL {"parameter": "value"}
Type a text:      it goes to the user and ends the turn
tools             lists the tools
help              this
quit              leave without a verdict"""


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


def play(row: LiveRow, world: WorldType, ask: Callable[[str], str | None], say: Tell) -> Shown | str:
    """An episode that a person plays in lines; how it went, or that it was left."""
    with Game(row, world) as game:
        for line in (*HELP.splitlines(), *_listed(game.tools), f"user: {game.says}"):
            say(line)
        while game.ended is None:
            line = ask("> ")
            if line is None or line == "quit":
                return "left before the end: there is no verdict"
            for answer in _answers(game, line):
                say(answer)
        return game.verdict()


def _answers(game: Game, line: str) -> Iterable[str]:
    """What comes of a line that was typed: a word of `HELP`, a call, or a text for the user."""
    offered = [tool.name for tool in game.tools]
    name, _, rest = line.partition(" ")
    if line in ("", "help"):
        yield from HELP.splitlines()
    elif line == "tools":
        yield from _listed(game.tools)
    elif line in offered or rest.lstrip().startswith("{"):
        try:
            yield game.call(name, msgspec.json.decode(rest.strip() or "{}")).text
        except (ValueError, RecursionError) as error:
            yield f"the arguments are not JSON ({error}): nothing was called"
    elif name in offered:
        yield f'write the arguments as a JSON object: {name} {{"parameter": "value"}}'
    else:
        game.say(line)
        if game.ended is None:
            yield from _listed(game.tools[len(offered) :])
            yield f"user: {game.says}"


def _listed(tools: Iterable[LiveTool]) -> Iterable[str]:
    for tool in tools:
        yield described(tool.plain)
        yield from (f"    {name}: {dumps(facts)}" for name, facts in tool.plain.properties.items())
