"""The tasks of a world's file as clean rows: gold is carried out, and what the world is then is its hash."""

import msgspec

from robustbench_tc import schema
from robustbench_tc.errors import UserError
from robustbench_tc.live import LiveRow, LiveTool, Turn, state_hash
from robustbench_tc.schema import Call, Message
from robustbench_tc.worlds import base, find
from robustbench_tc.worlds.fit import failed
from robustbench_tc.worlds.handle import Start, Worlds, WorldType, load_file

from .trace import opened


async def clean_rows(world: WorldType, worlds: Worlds) -> list[LiveRow]:
    """One row a task. Raises UserError for a world without tasks, and for a task whose gold fails."""
    tasks = find.tasks(world)
    if not tasks:
        raise UserError(f"{world.file} has no TASKS: a world that is built from lists them (docs/worlds.md)")
    tools = tuple(LiveTool(**tool) for tool in load_file(world.file).WORLD.tools())
    seen: set[str] = set()
    rows = []
    for task in tasks:
        if task.id in seen:
            raise UserError(f"{world.file}: two tasks are called {task.id!r}: give each an id of its own")
        seen.add(task.id)
        rows.append(await _gold_hash(_row(task, world, tools), world, worlds))
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


async def _gold_hash(row: LiveRow, world: WorldType, worlds: Worlds) -> LiveRow:
    """The row with the hash of its gold state. Raises UserError where gold names no tool, or fails."""
    known = {tool.name for tool in row.tools}
    async with opened(worlds, world, row) as handle:
        for calls in row.golden_calls:
            for call in calls:
                said = f"{world.file}: task {row.clean_id!r}: gold's call {call.name}"
                if call.name not in known:
                    raise UserError(f"{said} names no tool of the world: correct its name")
                answered = await handle.call(call.name, call.parameters)
                if answered.problem or failed(answered.text):
                    arguments = schema.dumps(call.parameters)[:200]
                    raise UserError(f"{said} with {arguments} fails: {answered.text[:200]}")
        state = (await handle.snapshot()).state
    return msgspec.structs.replace(row, gold_state_sha256=state_hash(state))
