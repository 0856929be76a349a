"""The tasks of a world's file as clean rows: gold is carried out, and what the world is then is its hash."""

import msgspec

from robustbench_tc.errors import UserError
from robustbench_tc.schema import Call, LiveRow, LiveTool, Message, Turn
from robustbench_tc.worlds import base, find
from robustbench_tc.worlds.check import check
from robustbench_tc.worlds.handle import Start, WorldType, load_file
from robustbench_tc.worlds.host import Worlds

from .trace import with_gold


async def clean_rows(world: WorldType, worlds: Worlds) -> list[LiveRow]:
    """One row a task. Raises UserError for a world that its author has to correct first (`worlds.check`)."""
    module = load_file(world.file)
    mistakes = check(module)
    if mistakes:
        more = f" (and {len(mistakes) - 1} more)" if len(mistakes) > 1 else ""
        raise UserError(mistakes[0] + more)
    tools = tuple(LiveTool(**tool) for tool in module.WORLD.tools())
    return [await with_gold(worlds, world, _row(task, world, tools)) for task in find.tasks(world)]


def _row(task: base.Task, world: WorldType, tools: tuple[LiveTool, ...]) -> LiveRow:
    return LiveRow(
        id=f"{task.id}::clean",
        clean_id=task.id,
        type_code="clean",
        world=world.name,
        category=world.name,
        turns=tuple(
            Turn(
                (Message("user", turn.says),),
                answers=tuple({f: tuple(values) for f, values in one.items()} for one in turn.answers),
            )
            for turn in task.turns
        ),
        tools=tools,
        initial_state=msgspec.to_builtins(Start(dict(task.state), task.seed)),
        golden_calls=tuple(tuple(Call(c.name, dict(c.arguments)) for c in turn.gold) for turn in task.turns),
        gold_state_sha256="",
        flags=tuple(task.flags),
    )
