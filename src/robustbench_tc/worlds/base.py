"""What a world is made of: a class with tools, each a method, over a state that is plain JSON.

    class Purse(World):
        \"\"\"A purse with coins.\"\"\"

        name = "purse"

        @read
        def count_coins(self) -> int:
            \"\"\"How much is in the purse.\"\"\"
            return self.data["coins"]

        @write(undo="take_coins")
        def add_coins(self, amount: Annotated[int, "How many coins to add."]) -> dict[str, int]:
            \"\"\"Puts coins into the purse.\"\"\"
            ...

    TASKS = [Task("purse_1", {"coins": 3}, [Turn("Put two coins in.", [call("add_coins", amount=2)])])]

Schemas come from signatures, descriptions from docstrings. The standard library only: worlds are imported by
processes of their own (`worker`), which start and fork quickly.
"""

import copy
import inspect
import json
import random
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal, TypeVar

Json = Any
F = TypeVar("F", bound=Callable[..., Any])


class Failure(Exception):
    """A call that cannot be carried out; the text is what the agent reads. The world is as it was."""


@dataclass(frozen=True)
class ToolFacts:
    """What is declared of a tool beside its signature."""

    writes: bool
    idempotent: bool
    undo: str | None = None


def read(method: F) -> F:
    """Declares a tool that never changes the world."""
    method.tool_facts = ToolFacts(writes=False, idempotent=True)  # type: ignore[attr-defined]
    return method


def write(*, idempotent: bool = False, undo: str | None = None) -> Callable[[F], F]:
    """Declares a tool that changes the world.

    `idempotent`: a second equal call changes nothing more. `undo`: the tool that takes an effect back.
    """

    def declared(method: F) -> F:
        method.tool_facts = ToolFacts(writes=True, idempotent=idempotent, undo=undo)  # type: ignore[attr-defined]
        return method

    return declared


@dataclass(frozen=True)
class GoldCall:
    """A call of a task's gold."""

    name: str
    arguments: Mapping[str, Json]


def call(name: str, /, **arguments: Json) -> GoldCall:
    """One call of gold: `call("add_coins", amount=2)`."""
    return GoldCall(name, arguments)


@dataclass(frozen=True)
class Turn:
    """What the user says, and what a perfect agent then calls."""

    says: str
    gold: Sequence[GoldCall] = ()


@dataclass(frozen=True)
class Task:
    """A conversation with a world that starts in `state`."""

    id: str
    state: Mapping[str, Json]
    turns: Sequence[Turn]
    seed: int = 0
    flags: Sequence[str] = field(default=())


class World:
    """A world in one episode. Subclasses set `name` and have tools; `data` is the whole state.

    What a tool returns goes to the agent: a text as it is, anything else as JSON. A tool raises Failure for
    what cannot be done, and must not have changed `data` then (a call that fails is undone anyway).
    """

    name: ClassVar[str]

    def __init__(self, state: Mapping[str, Json], seed: int = 0) -> None:
        self.data: dict[str, Json] = copy.deepcopy(dict(state))
        self.random = random.Random(seed)
        self._generated: list[str] = []

    def new_id(self, prefix: str, digits: int = 4) -> str:
        """A fresh id. Two episodes that differ in such ids only, one to one, have reached the same state."""
        taken = json.dumps(self.data)
        while True:
            made = f"{prefix}{self.random.randrange(10 ** (digits - 1), 10**digits)}"
            if made not in taken and made not in self._generated:
                self._generated.append(made)
                return made

    def state(self) -> Json:
        """What is compared at the end: all of `data`. A world with a clock leaves the clock out."""
        return self.data

    def generated(self) -> list[str]:
        """The ids that were made in this episode, in order."""
        return list(self._generated)

    def call(self, name: str, arguments: Mapping[str, Json]) -> str:
        """The result of a call as the agent reads it; never raises.

        Arguments are checked against the declared types first: a wrong one changes nothing.
        """
        method = _tools(type(self)).get(name)
        if method is None:
            return _error(f"there is no tool {name!r}")
        if (wrong := _misfit(method, arguments)) is not None:
            return _error(wrong)
        before = (copy.deepcopy(self.data), self.random.getstate(), list(self._generated))
        try:
            result = method(self, **copy.deepcopy(dict(arguments)))
            return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
        except Failure as failure:
            text = str(failure)
        except Exception as error:  # a bug of the world is the episode's tool error, never its end
            text = f"{type(error).__name__}: {str(error)[:200]}"
        self.data, self._generated = before[0], before[2]
        self.random.setstate(before[1])
        return _error(text)

    @classmethod
    def tools(cls) -> list[dict[str, Json]]:
        """The registry as JSON: name, description, parameters, writes, idempotent, undo."""
        found = []
        for name, method in _tools(cls).items():
            facts: ToolFacts = method.tool_facts  # type: ignore[attr-defined]
            found.append(
                {
                    "name": name,
                    "description": " ".join((inspect.getdoc(method) or "").split()),
                    "parameters": _schema(method),
                    "writes": facts.writes,
                    "idempotent": facts.idempotent,
                    "undo": facts.undo,
                }
            )
        return found


def _error(text: str) -> str:
    return json.dumps({"error": text}, ensure_ascii=False)


_REGISTRIES: dict[type, dict[str, Callable[..., Any]]] = {}


def _tools(cls: type) -> dict[str, Callable[..., Any]]:
    """The tools of a world in the order in which they are written."""
    if cls not in _REGISTRIES:
        found: dict[str, Callable[..., Any]] = {}
        for base in reversed(cls.__mro__):
            found.update({n: m for n, m in vars(base).items() if hasattr(m, "tool_facts")})
        _REGISTRIES[cls] = found
    return _REGISTRIES[cls]


_JSON_TYPES: dict[type, str] = {
    str: "string", int: "integer", float: "number", bool: "boolean", dict: "object", list: "array",
}  # fmt: skip


def _parameters(method: Callable[..., Any]) -> dict[str, tuple[Any, str, Any]]:
    """Parameter → its type, its description, its default (`inspect.Parameter.empty` where required)."""
    hints = typing.get_type_hints(method, include_extras=True)
    found = {}
    for name, parameter in list(inspect.signature(method).parameters.items())[1:]:
        hint, about = hints.get(name, str), ""
        if typing.get_origin(hint) is Annotated:
            hint, about = typing.get_args(hint)[0], str(typing.get_args(hint)[1])
        found[name] = (hint, about, parameter.default)
    return found


def _schema(method: Callable[..., Any]) -> dict[str, Json]:
    properties, required = {}, []
    for name, (hint, about, default) in _parameters(method).items():
        properties[name] = {**_type_schema(hint), **({"description": about} if about else {})}
        if default is inspect.Parameter.empty:
            required.append(name)
        elif default is not None:
            properties[name]["default"] = default
    return {"type": "object", "properties": properties, "required": required}


def _type_schema(hint: Any) -> dict[str, Json]:
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        return {"type": _JSON_TYPES[type(inner[0])], "enum": list(inner)}
    if origin in (types.UnionType, typing.Union):
        return _type_schema(next(one for one in inner if one is not type(None)))
    if origin is list:
        return {"type": "array", "items": _type_schema(inner[0])}
    if origin is dict:
        return {"type": "object"}
    return {"type": _JSON_TYPES[hint]}


def _misfit(method: Callable[..., Any], arguments: Mapping[str, Json]) -> str | None:
    """What is wrong with the arguments, in a few words."""
    declared = _parameters(method)
    for name in arguments:
        if name not in declared:
            return f"unknown parameter {str(name)[:80]!r}"
    for name, (hint, _, default) in declared.items():
        if name not in arguments:
            if default is inspect.Parameter.empty:
                return f"missing parameter {name!r}"
        elif not (arguments[name] is None and default is None) and not _fits(arguments[name], hint):
            return f"parameter {name!r} must be {_said(hint)}"
    return None


def _fits(value: Json, hint: Any) -> bool:
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        return any(type(value) is type(one) and value == one for one in inner)
    if origin in (types.UnionType, typing.Union):
        return any(value is None if one is type(None) else _fits(value, one) for one in inner)
    if origin is list:
        return isinstance(value, list) and all(_fits(one, inner[0]) for one in value)
    if origin is dict or hint is dict:
        return isinstance(value, dict)
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, hint)


def _said(hint: Any) -> str:
    schema = _type_schema(hint)
    if "enum" in schema:
        return f"one of {schema['enum']}"
    return f"of type {schema['type']}"
