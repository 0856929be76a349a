"""What an author can get wrong in a world's file, each in one line: where, what, what to do."""

import difflib
import inspect
import json
import re
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

from .answers import pairs, records
from .base import GoldCall, Task, ToolClass, ToolFacts, Turn, World
from .fit import shortened
from .signatures import schema

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""What a tool, a world and a task can be called: names that every provider's interface takes."""


def check(module: ModuleType) -> list[str]:
    """The mistakes in a world's file, in the order of the file; [] where it can be built and run.

    Gold is replayed, each of its calls repeated: so a call that fails, a tool that is wrongly declared as
    idempotent and a world that reads a clock are found here. The file's code runs in this process.
    """
    world: type[World] = module.WORLD
    found = list(_of_world(world))
    tasks = getattr(module, "TASKS", None)
    if not isinstance(tasks, list | tuple) or not tasks:
        found.append("TASKS must be a list with at least one Task")
    elif not found:  # gold cannot be replayed with tools that cannot be offered
        found += _of_tasks(world, tasks)
    return [f"{module.__file__}: {one}" for one in found]


def _of_world(world: type[World]) -> Iterator[str]:
    name = getattr(world, "name", None)
    if not isinstance(name, str) or not NAME.fullmatch(name):
        yield f'{world.__name__} needs a name: a line `name = "..."` of letters, digits, _ and -'
    methods = _declared(world)
    if not methods:
        yield f"{world.__name__} has no tools: put @read or @write above its methods"
    for tool, method in methods.items():
        for problem in _of_tool(tool, method, methods):
            yield f"tool {tool!r}: {problem}"
    if not all(isinstance(one, ToolClass) for one in world.classes):
        yield "classes must be a tuple of ToolClass(name, words, tools)"
        return
    if not isinstance(world.looks_first, Mapping):
        yield "looks_first must be a dict: a tool's name to the names of reads"
        return
    classed = [tool for one in world.classes for tool in one.tools]
    for tool in (*classed, *world.looks_first):
        if tool not in methods:
            yield f"classes and looks_first name {tool!r}, which is no tool{_near(tool, methods)}"
    if twice := [tool for tool in methods if classed.count(tool) > 1]:
        yield f"tool {twice[0]!r} is in two classes: leave it in one"
    for tool, reads in world.looks_first.items():
        if wrong := [one for one in reads if one not in methods or methods[one].tool_facts.writes]:
            yield f"looks_first: {wrong[0]!r}, which {tool!r} comes after, is not a tool that reads"


def _declared(world: type[World]) -> dict[str, Any]:
    return {name: one for name in dir(world) if hasattr(one := getattr(world, name), "tool_facts")}


def _of_tool(name: str, method: Any, methods: Mapping[str, Any]) -> Iterator[str]:
    facts: ToolFacts = method.tool_facts
    if hasattr(World, name) or name in ("data", "random", "name"):
        yield "World itself uses this name: choose another"
    if not NAME.fullmatch(name):
        yield "its name must be at most 64 letters, digits and _"
    if not inspect.isfunction(method) or inspect.iscoroutinefunction(method):
        yield "it must be an ordinary method: not static, not async"
        return
    if not (inspect.getdoc(method) or "").strip():
        yield "it has no docstring: agents read it as the tool's description"
    try:
        for parameter, said in schema(method)["properties"].items():
            if not _is_json(said.get("default")):
                yield f"the default of parameter {parameter!r} must be JSON"
    except TypeError as error:
        yield str(error)
    if facts.undo is not None and (facts.undo not in methods or not methods[facts.undo].tool_facts.writes):
        yield f"undo names {facts.undo!r}, which is not a tool that writes{_near(facts.undo, methods)}"


def _of_tasks(world: type[World], tasks: list[Any] | tuple[Any, ...]) -> Iterator[str]:
    seen: set[str] = set()
    for number, task in enumerate(tasks, 1):
        if not isinstance(task, Task) or not isinstance(task.id, str):
            yield f"entry {number} of TASKS is not a Task with a text as its id"
            continue
        if task.id in seen:
            yield f"two tasks are called {task.id!r}: give each an id of its own"
        seen.add(task.id)
        if not NAME.fullmatch(task.id):
            yield f"task {shortened(task.id)}: its id must be at most 64 letters, digits, _ and -"
        try:
            problem = _shape(task) or _replay(world, task)
        except Exception as error:  # of state() or generated(), which an author may override
            problem = f"replaying gold raises {_raised(error)}"
        if problem is not None:
            yield f"task {shortened(task.id)}: {problem}"


def _shape(task: Task) -> str | None:
    """What is wrong in how a task is written."""
    if not isinstance(task.state, Mapping) or not _is_json(dict(task.state)):
        return "its state must be JSON: a dict of texts, numbers, True, False, None, lists and dicts"
    if not isinstance(task.seed, int) or isinstance(task.seed, bool) or not -(2**63) <= task.seed < 2**63:
        return "its seed must be a whole number"
    if isinstance(task.flags, str) or not all(isinstance(flag, str) for flag in task.flags):
        return "its flags must be a list of texts"
    if not isinstance(task.turns, list | tuple) or not task.turns:
        return "it needs a list with at least one Turn"
    for number, turn in enumerate(task.turns, 1):
        if not isinstance(turn, Turn) or not isinstance(turn.says, str) or not turn.says.strip():
            return f"turn {number} must be a Turn with what the user says"
        if not isinstance(turn.gold, list | tuple) or not all(isinstance(c, GoldCall) for c in turn.gold):
            return f"turn {number}: gold must be a list of call(...)"
        if not isinstance(turn.answers, list | tuple) or not all(map(_is_answer, turn.answers)):
            return f"turn {number}: answers must be a list of dicts, a field's name to a list of values"
    if not any(turn.gold for turn in task.turns):
        return "no turn has gold: at least one call must be right"
    return None


def _is_answer(one: Any) -> bool:
    lists = isinstance(one, Mapping) and all(isinstance(values, list | tuple) for values in one.values())
    return lists and _is_json(dict(one))


def _replay(world: type[World], task: Task) -> str | None:
    """What goes wrong when gold's calls are made, twice over."""
    try:
        first, second = (world(task.state, task.seed) for _ in range(2))
    except Exception as error:
        return f"the world does not start in its state: {_raised(error)}"
    methods = _declared(world)
    results: list[str] = []
    for turn_number, turn in enumerate(task.turns, 1):
        for number, gold in enumerate(turn.gold, 1):
            where = f"turn {turn_number}, call {number} ({gold.name})"
            if gold.name not in methods:
                return f"{where}: there is no such tool{_near(gold.name, methods)}"
            outcome = first.attempt(gold.name, gold.arguments)
            if outcome.failed:
                reason = str(json.loads(outcome.text)["error"])[:300]
                made = first.generated()  # gold has to name ids that the seed decides
                ids = f" (ids made before it: {', '.join(made)})" if made else ""
                return f"{where} fails: {reason}{ids}: correct the call or the state"
            results.append(outcome.text)
            if (text := second.call(gold.name, gold.arguments)) != outcome.text:
                return (
                    f"{where} answers {shortened(text)} when it is replayed, and {shortened(outcome.text)} "
                    "before: use self.random, no clock, and keep everything in self.data"
                )
            if not _is_json(state := first.state()):
                return f"{where} leaves a state that is not JSON: state() must return JSON, as data is"
            if state != second.state():
                return f"{where} leaves another state when it is replayed: keep everything in self.data"
            facts: ToolFacts = methods[gold.name].tool_facts
            if facts.writes and facts.idempotent and _changes_again(world, task, turn_number, number):
                return f"{where}: a second equal call changes the state: the tool is not idempotent"
        shown = [pair for text in results for record in records(text) for pair in pairs(record)]
        stated = [(field, v) for one in turn.answers for field, values in one.items() for v in values]
        if unread := [pair for pair in stated if pair not in shown]:
            field, value = unread[0]
            return f"turn {turn_number}: answers: no result of gold's by then has {value!r} as {field!r}"
    return None


def _changes_again(world: type[World], task: Task, turn: int, number: int) -> bool:
    """Whether a call of gold changes the state once more, made twice in a row."""
    played = world(task.state, task.seed)
    calls = [gold for one in task.turns[: turn - 1] for gold in one.gold]
    calls += task.turns[turn - 1].gold[:number]
    for gold in calls:
        played.call(gold.name, gold.arguments)
    before = json.dumps(played.state(), sort_keys=True)
    played.call(calls[-1].name, calls[-1].arguments)
    return json.dumps(played.state(), sort_keys=True) != before


def _is_json(value: Any) -> bool:
    """Whether a value is JSON as it is: written and read again, it is the same, with lists for tuples."""
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False)
        text.encode()
        return _keys_are_texts(value)
    except (TypeError, ValueError, RecursionError):
        return False


def _keys_are_texts(value: Any) -> bool:
    if isinstance(value, dict):
        return all(isinstance(key, str) and _keys_are_texts(inner) for key, inner in value.items())
    return not isinstance(value, list | tuple) or all(map(_keys_are_texts, value))


def _raised(error: Exception) -> str:
    said = " ".join(str(error).split())
    return f"{type(error).__name__}: {said[:300]}"


def _near(name: str, methods: Mapping[str, Any]) -> str:
    near = difflib.get_close_matches(str(name), methods, n=1)
    return f"; did you mean {near[0]!r}?" if near else f" (tools: {', '.join(methods)})"
