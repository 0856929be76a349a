"""`rbtc live play`: a person in an agent's place."""

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from ..schema import dumps
from . import _console
from ._console import styled
from .live_show import DatasetName, WorldPython, Worlds, print_episode

if TYPE_CHECKING:
    from ..eval.live.play import Game
    from ..schema import LiveTool

MOST = 100_000
"""Characters of a line that is read."""

HELP = """Type a call:      TOOL {"parameter": "value"}
Type a text:      it goes to the user and ends the turn
tools             lists the tools
help              this
quit              leave without a verdict"""


def play(
    dataset: DatasetName,
    task: Annotated[str, typer.Argument(metavar="TASK", help="A task (its clean row), or a row id.")],
    world: Worlds = None,
    world_python: WorldPython = None,
) -> None:
    """Be the agent yourself: see what an agent sees, type calls, and get the verdict at the end.

    Example: rbtc live play robustbench-tc-live orders_1::live_silent_no_op
    """
    from ..eval.live import inputs
    from ..eval.live.play import Game
    from ..eval.live.show import find_row

    data = inputs.load(dataset)
    row = find_row(data.rows, task)
    types = inputs.world_types([row], world or (), world_python)
    with _console.keeping("stopped; nothing was kept"), Game(row, types[row.world]) as game:
        _console.out.print(styled(HELP))
        _list(game.tools)
        _user_says(game)
        while game.ended is None:
            line = _read()
            if line is None or line == "quit":
                _console.out.print(styled("left before the end: there is no verdict"))
                return
            _obey(game, line)
        print_episode(game.verdict())


def _read() -> str | None:
    """What is typed; None at the end of the input."""
    _console.out.print(styled("> ", style="bold"), end="")
    sys.stdout.flush()
    line = sys.stdin.readline(MOST)
    return line.strip() if line else None


def _obey(game: "Game", line: str) -> None:
    """One line that was typed: a word of `HELP`, a call, or a text for the user."""
    offered = [tool.name for tool in game.tools]
    name, _, rest = line.partition(" ")
    if not line:
        return
    if line == "help":
        _console.out.print(styled(HELP))
    elif line == "tools":
        _list(game.tools)
    elif rest.lstrip().startswith("{") or (line in offered):
        _call(game, name, rest.strip() or "{}")
    elif name in offered:
        _console.out.print(styled(f'write the arguments as a JSON object: {name} {{"parameter": "value"}}'))
    else:
        turn = game.turn
        game.say(line)
        if game.ended is None:
            if game.turn != turn and (added := game.tools[len(offered) :]):
                _list(added)
            _user_says(game)


def _call(game: "Game", name: str, arguments: str) -> None:
    try:
        given = msgspec.json.decode(arguments)
    except (ValueError, RecursionError) as error:
        _console.out.print(styled(f"the arguments are not JSON ({error}): nothing was called", style="red"))
        return
    step = game.call(name, given)
    _console.out.print(styled(step.text))


def _user_says(game: "Game") -> None:
    _console.out.print(styled("\nuser: ", style="cyan") + styled(game.says))


def _list(tools: "Iterable[LiveTool]") -> None:
    for tool in tools:
        required = tool.plain.required
        names = ", ".join(one if one in required else f"{one}?" for one in tool.plain.properties)
        line = styled(f"{tool.name}({names})", style="green") + styled(f"  {tool.description}")
        _console.out.print(line)
        for name, inner in tool.plain.properties.items():
            about = inner.get("description") if isinstance(inner, dict) else None
            kind = inner.get("enum") or inner.get("type") if isinstance(inner, dict) else None
            shown = kind if isinstance(kind, str) else dumps(kind)
            _console.out.print(styled(f"    {name}: {shown}" + (f", {about}" if about else "")))
