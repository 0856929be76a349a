"""The tasks of a world's file as clean rows: gold is carried out, and what the world is then is its hash."""

import msgspec

from robustbench_tc.errors import UserError
from robustbench_tc.live import LiveRow, LiveTool, Turn, state_hash
from robustbench_tc.schema import Call, Message
from robustbench_tc.worlds import base, find
from robustbench_tc.worlds.check_apart import check_apart
from robustbench_tc.worlds.handle import Start, Worlds, WorldType, load_file

from .trace import gold, opened


async def clean_rows(world: WorldType, worlds: Worlds) -> list[LiveRow]:
    """One row a task. Raises UserError for a world that its author has to correct first (`worlds.check`)."""
    mistakes = await check_apart(world.file)  # the file may do anything: it is loaded here once it is sound
    if mistakes:
        more = f" (and {len(mistakes) - 1} more)" if len(mistakes) > 1 else ""
        raise UserError(mistakes[0] + more)
    module = load_file(world.file)
    tools = tuple(LiveTool(**tool) for tool in module.WORLD.tools())
    rows = []
    for task in find.tasks(world):
        row = _row(task, world, tools)
        async with opened(worlds, world, row, len(gold(row))) as handle:
            state = (await handle.snapshot()).state
        rows.append(msgspec.structs.replace(row, gold_state_sha256=state_hash(state)))
    return rows


def _row(task: base.Task, world: WorldType, tools: tuple[LiveTool, ...]) -> LiveRow:
    return LiveRow(
        id=f"{task.id}::clean",
        clean_id=task.id,
        type_code="clean",
        world=world.name,
        category=world.name,
        turns=tuple(Turn((Message("user", turn.says),)) for turn in task.turns),
        tools=tools,
        initial_state=msgspec.to_builtins(Start(dict(task.state), task.seed)),
        golden_calls=tuple(tuple(Call(c.name, dict(c.arguments)) for c in turn.gold) for turn in task.turns),
        gold_state_sha256="",
        flags=tuple(task.flags),
    )
