"""A person in an agent's place: the same loop, the same limits, the same results."""

import asyncio
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import msgspec

from robustbench_tc.llm import Store
from robustbench_tc.option import Tell
from robustbench_tc.schema import Call, LiveRow, LiveTool, dumps
from robustbench_tc.worlds.handle import WorldType
from robustbench_tc.worlds.host import Worlds

from ..data import Selection
from ..dialogue import Dialogue
from ..record import JOURNAL, Answer, Settings
from ..row_view import described
from ..run import Runner
from ..speakers import in_world
from ..wire import Ask
from . import prompts
from .replay import replayed
from .show import Shown, shown
from .world_env import World

HELP = """Type a call:      TOOL {"parameter": "value"}
Type a text:      it goes to the user and ends the turn
tools             lists the tools
help              this
quit              leave without a verdict"""


class Person:
    """Acts by what is typed."""

    def __init__(self, ask: Callable[[str], str | None], say: Tell) -> None:
        """`ask` returns what is typed after a question, None at the end of the input."""
        self._ask, self._say = ask, say

    async def reply(self, dialogue: Dialogue, ask: Ask, base: Answer) -> Answer:
        """The next call, or the next text for the user."""
        so_far = dialogue.env
        assert isinstance(so_far, World)
        said: str | Answer = "\n".join(_news(so_far, ask))
        while isinstance(said, str):
            for line in said.splitlines():
                self._say(line)
            said = self._typed(so_far, base)
        return said

    def _typed(self, so_far: World, base: Answer) -> Answer | str:
        """The answer that a line is, else what to say about it. Raises EOFError where the
        person leaves."""
        line = self._ask("> ")
        if line is None or line == "quit":
            raise EOFError
        offered = [tool.name for tool in so_far.offered]
        name, _, rest = line.partition(" ")
        if line in ("", "help"):
            return HELP
        if line == "tools":
            return "\n".join(_listed(so_far.offered))
        if name in offered or rest.lstrip().startswith("{"):
            try:
                arguments = msgspec.json.decode(rest.strip() or "{}", type=dict)
                return in_world(base, (Call(name, arguments),), so_far)
            except (ValueError, RecursionError) as error:
                form = f'{name} {{"parameter": "value"}}'
                return f"nothing was called ({error}): write the arguments as a JSON object, {form}"
        return msgspec.structs.replace(base, text=line)


def play(row: LiveRow, world: WorldType, ask: Callable[[str], str | None], say: Tell) -> Shown | str:
    """An episode that a person plays; how it went, or that it was left."""
    settings = Settings(
        fingerprint="", model="person", mode="fc", backend="person", decoding={},
        prompt_version=prompts.version(), selection=Selection(), repeat=1,
    )  # fmt: skip

    async def playing() -> Shown:
        with Store(Path(folder) / JOURNAL) as journal:
            async with Worlds() as worlds:
                env = World(row, settings)
                runner = Runner(journal, Person(ask, say), workers=1, worlds=worlds, kinds={row.world: world})
                await runner.play(Dialogue(env, settings))
                return shown(await replayed(row, env.episode(0), worlds, world=world))

    loop = asyncio.new_event_loop()  # asyncio.run would keep the first Ctrl-C from a person who thinks
    with tempfile.TemporaryDirectory() as folder:
        try:
            return loop.run_until_complete(playing())
        except EOFError:
            return "left before the end: there is no verdict"
        finally:
            loop.close()


def _news(so_far: World, ask: Ask) -> Iterator[str]:
    """What an agent gets to see now that it has not seen before."""
    last = next(reversed(so_far.replies), None)
    if last is None:
        yield HELP
        yield from _listed(so_far.offered)
    elif last.steps:
        yield from (step.text for step in last.steps)
        return
    elif not last.answered:
        adds = so_far.row.turns[so_far.turn].adds
        yield from _listed(tool for tool in so_far.offered if tool.name in adds)
    yield f"user: {next(one['content'] for one in reversed(ask.messages) if one['role'] == 'user')}"


def _listed(tools: Iterable[LiveTool]) -> Iterator[str]:
    for tool in tools:
        yield described(tool.plain)
        yield from (f"    {name}: {dumps(facts)}" for name, facts in tool.plain.properties.items())
