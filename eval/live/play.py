"""A person in an agent's place: the same dialogue, the same limits, the same results."""

import asyncio
from collections.abc import Callable, Iterable, Iterator

import msgspec

from robustbench_tc.option import Tell
from robustbench_tc.schema import Call, LiveRow, LiveTool, dumps
from robustbench_tc.worlds.handle import WorldType
from robustbench_tc.worlds.host import Worlds

from ..dialogue import Dialogue
from ..record import Answer, Settings
from ..row_view import described
from ..speakers import in_world
from ..wire import Ask
from . import prompts
from .replay import replayed
from .show import Shown, shown
from .stage import Stage
from .world_env import World

HELP = """Type a call:      TOOL {"parameter": "value"}
Type a text:      it goes to the user and ends the turn
tools             lists the tools
help              this
quit              leave without a verdict"""


def play(row: LiveRow, world: WorldType, ask: Callable[[str], str | None], say: Tell) -> Shown | str:
    """An episode that a person plays; how it went, or that it was left. `ask` returns what is typed after a
    question, None at the end of the input."""
    settings = Settings(
        fingerprint="", model="person", mode="fc", backend="person", decoding={},
        prompt_version=prompts.version(),
    )  # fmt: skip
    env, worlds = World(row, settings), Worlds()
    dialogue, stage = Dialogue(env, settings), Stage(row, worlds, world)
    loop = asyncio.new_event_loop()  # asyncio.run would keep the first Ctrl-C from a person who thinks
    try:
        while (asked := dialogue.ask()) is not None:
            _tell("\n".join(_news(env, asked)), say)
            loop.run_until_complete(stage.reply(dialogue, _typed(env, dialogue.base(), ask, say)))
        return shown(loop.run_until_complete(replayed(row, env.episode(0), worlds, world=world)))
    except EOFError:
        return "left before the end: there is no verdict"
    finally:
        worlds.close()
        loop.close()


def _tell(text: str, say: Tell) -> None:
    for line in text.splitlines():
        say(line)


def _typed(so_far: World, base: Answer, ask: Callable[[str], str | None], say: Tell) -> Answer:
    """The next call, or the next text for the user. Raises EOFError where the person leaves."""
    while (line := ask("> ")) is not None and line != "quit":
        name, _, rest = line.partition(" ")
        if line in ("", "help"):
            _tell(HELP, say)
        elif line == "tools":
            _tell("\n".join(_listed(so_far.offered)), say)
        elif name in [tool.name for tool in so_far.offered] or rest.lstrip().startswith("{"):
            try:
                arguments = msgspec.json.decode(rest.strip() or "{}", type=dict)
                return in_world(base, (Call(name, arguments),), so_far)
            except (ValueError, RecursionError) as error:
                form = f'{name} {{"parameter": "value"}}'
                _tell(f"nothing was called ({error}): write the arguments as a JSON object, {form}", say)
        else:
            return msgspec.structs.replace(base, text=line)
    raise EOFError


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
