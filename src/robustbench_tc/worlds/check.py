"""What an author can get wrong in a world's file, each in one line: where, what, what to do."""

import copy
import difflib
import inspect
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from types import ModuleType
from typing import Any

import msgspec

from ..eval.score.answers import pairs, records
from .base import NAME, Forbidden, Task, ToolClass, World
from .fit import schema, shortened


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
    if not isinstance(name, str) or not re.fullmatch(NAME, name):
        yield f'{world.__name__} needs a name: a line `name = "..."` of letters, digits, _ and -'
    methods = world.methods
    if not methods:
        yield f"{world.__name__} has no tools: put @read or @write above its methods"
    for tool, method in methods.items():
        for problem in _of_tool(tool, method, methods):
            yield f"tool {tool!r}: {problem}"
    classes, looks_first, forbidden = world.classes, world.looks_first, world.forbidden
    writes = [tool for tool, method in methods.items() if method.tool_facts.writes]
    if forbidden is not None and not (isinstance(forbidden, Forbidden) and forbidden.tool in writes):
        yield "forbidden must be a Forbidden(tool, policy) of a tool that writes"
    listed = isinstance(classes, tuple | list) and all(isinstance(one, ToolClass) for one in classes)
    if not listed or not isinstance(looks_first, dict):
        yield "classes must be a tuple of ToolClass(name, words, tools), looks_first a dict of lists of reads"
        return
    classed = [tool for one in classes for tool in one.tools]
    for tool in (*classed, *looks_first):
        if tool not in methods:
            yield f"classes and looks_first name {tool!r}, which is no tool{_near(tool, methods)}"
    if twice := [tool for tool in methods if classed.count(tool) > 1]:
        yield f"tool {twice[0]!r} is in two classes: leave it in one"
    for tool, reads in looks_first.items():
        if wrong := [one for one in reads if one not in methods or methods[one].tool_facts.writes]:
            yield f"looks_first: {wrong[0]!r}, which {tool!r} comes after, is not a tool that reads"


def _of_tool(name: str, method: Any, methods: Mapping[str, Any]) -> Iterator[str]:
    if hasattr(World, name) or name in ("data", "random", "name"):
        yield "World itself uses this name: choose another"
    if not re.fullmatch(NAME, name):
        yield "its name must be at most 64 letters, digits and _"
    if not inspect.isfunction(method) or inspect.iscoroutinefunction(method):
        yield "it must be an ordinary method: not static, not async"
        return
    if not (inspect.getdoc(method) or "").strip():
        yield "it has no docstring: agents read it as the tool's description"
    try:
        properties = schema(method)["properties"]
        wrong = [name for name, said in properties.items() if not _is_json(said.get("default"))]
        yield from (f"the default of parameter {name!r} must be JSON" for name in wrong)
    except TypeError as error:
        yield str(error)
    undo: str | None = methods[name].tool_facts.undo
    if undo is not None and (undo not in methods or not methods[undo].tool_facts.writes):
        yield f"undo names {undo!r}, which is not a tool that writes{_near(undo, methods)}"


def _of_tasks(world: type[World], tasks: Sequence[Any]) -> Iterator[str]:
    ids = [getattr(task, "id", None) for task in tasks]
    for number, task in enumerate(tasks, 1):
        if not isinstance(task, Task):
            yield f"entry {number} of TASKS is not a Task"
            continue
        if task.id in ids[: number - 1]:
            yield f"two tasks are called {task.id!r}: give each an id of its own"
        try:
            msgspec.convert(asdict(task), Task)  # types say what a task can be
            problem = next(_of_gold(world, task), None)
        except msgspec.ValidationError as error:
            problem = str(error)
        except (Exception, SystemExit) as error:  # of the world, which is an author's
            problem = f"replaying gold raises {type(error).__name__}: {' '.join(str(error).split())[:300]}"
        if problem is not None:
            yield f"task {shortened(task.id)}: {problem}"


def _of_gold(world: type[World], task: Task) -> Iterator[str]:
    """What goes wrong when gold's calls are made, twice over."""
    if not all(map(_is_json, (task.state, *(one for turn in task.turns for one in turn.answers)))):
        yield "its state and answers must be JSON: texts, numbers, True, False, None, lists and dicts"
    if not any(turn.gold for turn in task.turns):
        yield "no turn has gold: at least one call must be right"
    first, second = (world(task.state, task.seed) for _ in range(2))
    methods = world.methods
    results: list[str] = []
    for turn_number, turn in enumerate(task.turns, 1):
        for number, gold in enumerate(turn.gold, 1):
            where = f"turn {turn_number}, call {number} ({gold.name})"
            if gold.name not in methods:
                yield f"{where}: there is no such tool{_near(gold.name, methods)}"
            outcome = first.attempt(gold.name, gold.arguments)
            if outcome.failed:
                reason = str(json.loads(outcome.text)["error"])[:300]
                made = first.generated()  # gold has to name ids that the seed decides
                ids = f" (ids made before it: {', '.join(made)})" if made else ""
                yield f"{where} fails: {reason}{ids}: correct the call or the state"
            results.append(outcome.text)
            if (text := second.call(gold.name, gold.arguments)) != outcome.text:
                yield (
                    f"{where} answers {shortened(text)} when it is replayed, and {shortened(outcome.text)} "
                    "before: use self.random, no clock, and keep everything in self.data"
                )
            state = copy.deepcopy(first.state())
            if not _is_json(state):
                yield f"{where} leaves a state that is not JSON: state() must return JSON, as data is"
            if state != second.state():
                yield f"{where} leaves another state when it is replayed: keep everything in self.data"
            if methods[gold.name].tool_facts[:2] == (True, True):  # it writes, and is idempotent
                again = copy.deepcopy(first)
                again.call(gold.name, gold.arguments)
                if again.state() != state:
                    yield f"{where}: a second equal call changes the state: the tool is not idempotent"
        shown = [pair for text in results for record in records(text) for pair in pairs(record)]
        stated = [(field, v) for one in turn.answers for field, values in one.items() for v in values]
        if unread := [pair for pair in stated if pair not in shown]:
            field, value = unread[0]
            yield f"turn {turn_number}: answers: no result of gold's by then has {value!r} as {field!r}"


def _is_json(value: Any) -> bool:
    """Whether a value is JSON as it is: written and read again, it is the same."""
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False)
        return bool(json.loads(text.encode()) == value)
    except (TypeError, ValueError, RecursionError):
        return False


def _near(name: str, methods: Mapping[str, Any]) -> str:
    near = difflib.get_close_matches(str(name), methods, n=1)
    return f"; did you mean {near[0]!r}?" if near else f" (tools: {', '.join(methods)})"
