"""The bundled worlds: tools do what they declare, and an honest agent can do every task."""

import itertools
import json
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings, strategies as st

from robustbench_tc.schema import LiveTool
from robustbench_tc.worlds import calendar, orders
from robustbench_tc.worlds.base import GoldCall, Task, World
from robustbench_tc.worlds.check import check

BUNDLED = (orders, calendar)
ALL_TASKS = [(module, task) for module in BUNDLED for task in module.TASKS]
IDS = [task.id for _, task in ALL_TASKS]
each_task = pytest.mark.parametrize(("module", "task"), ALL_TASKS, ids=IDS)
each_world = pytest.mark.parametrize("module", BUNDLED, ids=["orders", "calendar"])


class Moment(NamedTuple):
    """A gold call, and the world right before it."""

    world: World
    gold: GoldCall
    tool: LiveTool


def registry(module: ModuleType) -> dict[str, LiveTool]:
    return {tool["name"]: LiveTool(**tool) for tool in module.WORLD.tools()}


def golds(task: Task) -> list[GoldCall]:
    return [gold for turn in task.turns for gold in turn.gold]


def played(module: ModuleType, task: Task, calls: list[GoldCall]) -> World:
    world: World = module.WORLD(task.state, task.seed)
    for gold in calls:
        world.call(gold.name, gold.arguments)
    return world


def moments(module: ModuleType, task: Task) -> Iterator[Moment]:
    tools = registry(module)
    for number, gold in enumerate(golds(task)):
        yield Moment(played(module, task, golds(task)[:number]), gold, tools[gold.name])


def whole(world: World) -> tuple[str, list[str], object]:
    """All that a call could change."""
    return json.dumps(world.data), world.generated(), world.random.getstate()


def leaves(value: Any) -> Iterator[str]:
    """Texts and numbers anywhere in a value, as text."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for inner in value:
            yield from leaves(inner)
    elif value is not None:
        yield str(value)


@each_world
def test_a_bundled_world_has_no_mistake_of_an_author(module: ModuleType) -> None:
    assert check(module) == []
    assert len(module.TASKS) == 20 and 12 <= len(registry(module)) <= 16
    assert {len(task.turns) for task in module.TASKS} == {1, 2, 3, 4}


@each_world
def test_reads_and_writes_of_every_sort_are_there_each_in_one_class(module: ModuleType) -> None:
    tools = registry(module)
    assert sorted(tool for one in module.WORLD.classes for tool in one.tools) == sorted(tools)
    used = {gold.name for task in module.TASKS for gold in golds(task)}
    assert used == set(tools), "a tool that no task needs"
    writes = [tool for tool in tools.values() if tool.writes]
    assert {tool.idempotent for tool in writes} == {True, False}
    assert {tool.undo is None for tool in writes if not tool.idempotent} == {True, False}


@each_task
def test_gold_takes_every_value_from_the_user_or_from_an_earlier_result(
    module: ModuleType, task: Task
) -> None:
    world = module.WORLD(task.state, task.seed)
    heard = ""
    for turn in task.turns:
        heard += f" {turn.says}"
        for gold in turn.gold:
            for value in leaves(dict(gold.arguments)):
                # An answer is a word of its own in the schema: "decline" is said, "declined" is meant.
                said = re.escape(value.removesuffix("ed"))
                edge = r"(?<![0-9])%s(?![0-9])" if value[:1].isdigit() else "%s"
                assert re.search(edge % said, heard, re.IGNORECASE), (gold, value)
            heard += f" {world.call(gold.name, gold.arguments)}"


@each_task
def test_leaving_out_a_write_of_gold_changes_the_end(module: ModuleType, task: Task) -> None:
    calls, tools = golds(task), registry(module)
    end = played(module, task, calls).state()
    for number, gold in enumerate(calls):
        without = played(module, task, calls[:number] + calls[number + 1 :]).state()
        assert (without != end) is tools[gold.name].writes, gold


@each_task
def test_a_second_equal_write_changes_something_unless_it_is_idempotent(
    module: ModuleType, task: Task
) -> None:
    for world, gold, tool in moments(module, task):
        world.call(gold.name, gold.arguments)
        once = json.dumps(world.state())
        world.call(gold.name, gold.arguments)
        assert (json.dumps(world.state()) == once) is tool.idempotent, gold


def without_ids(value: Any, ids: list[str]) -> str:
    """A state as text, made ids the same and records in an order that does not depend on them."""
    if isinstance(value, dict):
        lines = sorted(f"{without_ids(key, ids)}: {without_ids(inner, ids)}" for key, inner in value.items())
        return f"{{{', '.join(lines)}}}"
    if isinstance(value, list):
        return f"[{', '.join(without_ids(inner, ids) for inner in value)}]"
    return "an id" if value in ids else repr(value)


@each_task
def test_two_writes_of_a_turn_can_change_places(module: ModuleType, task: Task) -> None:
    """Where both orders work the end is the same, up to ids: an agent may choose."""

    def end(calls: list[GoldCall]) -> tuple[int, str]:
        world = module.WORLD(task.state, task.seed)
        failures = sum(world.attempt(gold.name, gold.arguments).failed for gold in calls)
        return failures, without_ids(world.state(), world.generated())

    tools, begun = registry(module), 0
    for turn in task.turns:
        turns_end = begun + len(turn.gold)
        writes = [n for n in range(begun, turns_end) if tools[golds(task)[n].name].writes]
        for one, other in itertools.pairwise(writes):
            swapped = golds(task)
            swapped[one], swapped[other] = swapped[other], swapped[one]
            failures, state = end(swapped[:turns_end])
            assert failures or state == end(golds(task)[:turns_end])[1]
        begun = turns_end


@each_task
def test_an_undo_takes_the_effect_back(module: ModuleType, task: Task) -> None:
    """With what the write was called with and what it answered, and nothing else."""
    tools = registry(module)
    for world, gold, tool in moments(module, task):
        if tool.undo is not None:
            before = json.loads(json.dumps(world.state()))
            known = {**gold.arguments, **json.loads(world.call(gold.name, gold.arguments))}
            assert world.state() != before
            needed = tools[tool.undo].parameters["required"]
            world.call(tool.undo, {name: known[name] for name in needed})
            assert world.state() == before, gold


def test_both_sorts_of_undo_are_tried() -> None:
    undone = {moment.gold.name for one in ALL_TASKS for moment in moments(*one) if moment.tool.undo}
    assert undone == {"place_order", "charge_card", "create_event", "invite", "add_reminder"}


@each_world
def test_two_tasks_in_one_process_do_not_touch_each_other(module: ModuleType) -> None:
    """All tasks side by side, a call of each in turn, answer as each alone."""
    before = [json.dumps(dict(task.state)) for task in module.TASKS]
    alone, together = [], [module.WORLD(task.state, task.seed) for task in module.TASKS]
    for task in module.TASKS:
        world = module.WORLD(task.state, task.seed)
        alone.append([world.call(gold.name, gold.arguments) for gold in golds(task)])
    texts: list[list[str]] = [[] for _ in together]
    for number in range(max(len(golds(task)) for task in module.TASKS)):
        for task, world, said in zip(module.TASKS, together, texts, strict=True):
            said += [world.call(one.name, one.arguments) for one in golds(task)[number : number + 1]]
    assert texts == alone
    assert [json.dumps(dict(task.state)) for task in module.TASKS] == before


def test_the_seed_decides_ids() -> None:
    first, again, other = (orders.WORLD(orders.TASKS[0].state, seed) for seed in (4, 4, 5))
    placed = [
        json.loads(
            world.call("place_order", {"customer_id": "C-2019", "product_id": "P-5126", "quantity": 1})
        )
        for world in (first, again, other)
    ]
    assert placed[0] == placed[1] and placed[0]["order_id"] != placed[2]["order_id"]


def test_a_hold_whose_answer_was_lost_can_be_had_again() -> None:
    """No read shows its id, so that the same call has to give it: else nobody could book after a time-out."""
    world = calendar.WORLD(calendar.TASKS[0].state)
    wanted = {"room_id": "R-415", "date": "2026-05-05", "start": "14:00", "end": "15:00"}
    assert world.call("hold_room", wanted) == world.call("hold_room", wanted)
    assert "taken" in world.call("hold_room", {**wanted, "end": "14:30"})


@pytest.mark.parametrize("text", ["bread knife", "Bread knives", "knife", "a knife for bread"])
def test_products_are_found_in_singular_and_plural(text: str) -> None:
    found = json.loads(orders.WORLD(orders.TASKS[0].state).call("search_products", {"text": text}))
    assert found[0]["name"] == "Bread knife"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


PROPERTIES = {
    module: {name: list(tool.parameters["properties"]) for name, tool in registry(module).items()}
    for module in BUNDLED
}


@st.composite
def sequences(draw: st.DrawFn) -> tuple[ModuleType, Task, list[tuple[str, dict[str, Any]]]]:
    """Calls with values that fit now and then: those of gold, of the state, or anything at all."""
    module, task = draw(st.sampled_from(ALL_TASKS))
    known = sorted({*leaves(dict(task.state)), *leaves([dict(one.arguments) for one in golds(task)])})
    value = st.sampled_from(known) | st.integers(-3, 100) | JSON
    calls = []
    for _ in range(draw(st.integers(1, 6))):
        name = draw(st.sampled_from(sorted(PROPERTIES[module])))
        gold = [dict(one.arguments) for one in golds(task) if one.name == name]
        arguments = st.fixed_dictionaries(dict.fromkeys(PROPERTIES[module][name], value))
        calls.append((name, draw(st.sampled_from(gold) | arguments if gold else arguments)))
    return module, task, calls


@settings(max_examples=150, deadline=None)
@given(sequences())
def test_no_argument_breaks_a_world(
    drawn: tuple[ModuleType, Task, list[tuple[str, dict[str, Any]]]],
) -> None:
    module, task, calls = drawn
    world = module.WORLD(task.state, task.seed)
    tools = registry(module)
    for name, arguments in calls:
        given, before = json.dumps(arguments), whole(world)
        outcome = world.attempt(name, arguments)
        assert json.dumps(arguments) == given
        assert outcome.text.encode() and len(outcome.text) < 200_000
        json.loads(outcome.text)
        if outcome.failed or not tools[name].writes:
            assert whole(world) == before
        elif tools[name].idempotent:
            once = json.dumps(world.state())
            world.call(name, arguments)
            assert json.dumps(world.state()) == once
        if outcome.failed:
            assert set(json.loads(outcome.text)) == {"error"}
            assert not json.loads(outcome.text)["error"].startswith(("TypeError", "KeyError", "ValueError"))
    json.dumps(world.state(), allow_nan=False).encode()
