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

Schemas come from signatures (`signatures`), descriptions from docstrings; `check` finds an author's mistakes.
"""

import copy
import inspect
import json
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeVar, overload

from .fit import error, misfit, relaxed, shortened
from .signatures import schema

Json = Any
F = TypeVar("F", bound=Callable[..., Any])

MAX_RESULT_CHARACTERS = 100_000
MAX_ERROR_CHARACTERS = 1_000


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


@overload
def write(method: F, /) -> F: ...


@overload
def write(*, idempotent: bool = False, undo: str | None = None) -> Callable[[F], F]: ...


def write(method: Any = None, /, *, idempotent: bool = False, undo: str | None = None) -> Any:
    """Declares a tool that changes the world.

    `idempotent`: a second equal call changes nothing more. `undo`: the tool that takes an effect back.
    """

    def declared(tool: Any) -> Any:
        tool.tool_facts = ToolFacts(writes=True, idempotent=idempotent, undo=undo)
        return tool

    if method is not None and not callable(method):
        raise TypeError("give what is declared by name: @write(idempotent=True)")
    return declared if method is None else declared(method)


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
    answers: Sequence[Mapping[str, Sequence[Json]]] = ()
    """Where the user asks: fields of what gold reads with the values that the reply has to hold, and other
    fields that would do as well."""


@dataclass(frozen=True)
class Task:
    """A conversation with a world that starts in `state`."""

    id: str
    state: Mapping[str, Json]
    turns: Sequence[Turn]
    seed: int = 0
    flags: Sequence[str] = field(default=())


def tasks_of(path: Path) -> list[Task]:
    """The tasks of a JSON file: what the world starts with (`state`), of each task its seed and its turns,
    gold's calls as name and arguments. Each value that gold uses stands in the user's words or in an earlier
    result; ids that a task makes follow from its seed."""
    kept = json.loads(path.read_text("utf-8"))
    return [
        Task(
            f"{path.stem}_{number}",
            kept["state"],
            [
                Turn(turn["says"], [GoldCall(*one) for one in turn["gold"]], turn.get("answers", ()))
                for turn in task["turns"]
            ],
            task["seed"],
        )
        for number, task in enumerate(kept["tasks"], 1)
    ]


class ToolClass(NamedTuple):
    """Tools of a world that people speak of with the same words: what a message says was done, or was not."""

    name: str
    words: tuple[str, ...]
    """English nouns and verb forms beside the name, in lower case; plurals in -s and -es are understood."""
    tools: tuple[str, ...]

    @property
    def pattern(self) -> re.Pattern[str]:
        """Finds the class's name and words in a text, whole words only, in capitals or not."""
        words = "|".join(re.escape(word) for word in (self.name, *self.words))
        return re.compile(rf"\b(?:{words})(?:e?s)?\b", re.IGNORECASE)


class Outcome(NamedTuple):
    """What came of a call."""

    text: str
    """What the agent reads."""
    failed: bool = False


class World:
    """A world in one episode. Subclasses set `name` and have tools; `data` is the whole state.

    What a tool returns goes to the agent: a text as it is, anything else as JSON. A tool raises Failure for
    what cannot be done; whatever it had changed by then is restored. After a write `data` is written as JSON
    and read again: it holds nothing else, and no two places in it are the same object.
    """

    name: ClassVar[str]

    lax_types: ClassVar[bool] = False
    """Whether numbers and booleans are also taken where they are written as text ("2", "true"), as many
    services do. The fault `strict_types` is only possible where they are."""

    classes: ClassVar[tuple[ToolClass, ...]] = ()
    """What people call the work of the tools: of two classes whose words stand in a sentence the earlier one
    is meant. A tool that is in none has a class of its own, named after it (`find.classes`)."""

    looks_first: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """Tool → reads that a service could sensibly ask for before it: what the fault `prerequisite` does."""

    def __init__(self, state: Mapping[str, Json], seed: int = 0) -> None:
        self.data: dict[str, Json] = json.loads(_written(dict(state)))
        self.random = random.Random(seed)
        self._generated: list[str] = []

    def new_id(self, prefix: str, digits: int = 4) -> str:
        """A fresh id. Two episodes that differ in such ids only, one to one, have reached the same state."""
        taken = json.dumps([self.data, self._generated], ensure_ascii=False)
        while True:
            for _ in range(20):
                made = f"{prefix}{self.random.randrange(10 ** (digits - 1), 10**digits)}"
                if made not in taken:
                    self._generated.append(made)
                    return made
            digits += 1  # most numbers of this length are taken

    def state(self) -> Json:
        """What is compared at the end: all of `data`. A world with a clock leaves the clock out."""
        return self.data

    def generated(self) -> list[str]:
        """The ids that were made in this episode, in order."""
        return list(self._generated)

    def call(self, name: str, arguments: Mapping[str, Json]) -> str:
        """The result of a call as the agent reads it, or `{"error": text}`; never raises."""
        return self.attempt(name, arguments).text

    def attempt(self, name: str, arguments: Mapping[str, Json]) -> Outcome:
        """As `call`, and whether it failed: then nothing has changed.

        Arguments are checked against the declared types before the tool sees them.
        """
        method = _tools(type(self)).get(name) if isinstance(name, str) else None
        if method is None:
            return _failed(f"there is no tool {shortened(name)}")
        if not isinstance(arguments, Mapping):
            return _failed("the arguments must be an object")
        try:
            declared = schema(method)
            arguments = relaxed(declared, arguments) if self.lax_types else dict(arguments)
            wrong = misfit(declared, arguments)
            before = _written(self.data)
            drawn, made = self.random.getstate(), len(self._generated)
        except Exception as bug:  # a signature that cannot be read, a state that is not JSON
            return _failed(f"the world itself is at fault: {type(bug).__name__}: {bug}")
        if wrong is not None:
            return _failed(wrong)
        facts: ToolFacts = method.tool_facts  # type: ignore[attr-defined]
        try:
            result = method(self, **copy.deepcopy(arguments))
            text = result if isinstance(result, str) else _written(result, ensure_ascii=False)
            text.encode()  # a lone surrogate could be sent to nobody
            after = _written(self.data)
            if facts.writes:
                self.data = json.loads(after)
            elif (after, self.random.getstate()) != (before, drawn):
                raise TypeError("a tool that is declared as a read has changed the world")
            if len(text) > MAX_RESULT_CHARACTERS:
                text = f"{text[:MAX_RESULT_CHARACTERS]}\n[cut: the result has {len(text)} characters]"
            return Outcome(text)
        except Failure as failure:
            said = str(failure) or "the call failed"
        except (Exception, SystemExit) as bug:  # must not end the episode
            said = f"{type(bug).__name__}: {bug}"
        self.data = json.loads(before)
        self.random.setstate(drawn)
        del self._generated[made:]
        return _failed(said)

    @classmethod
    def tools(cls) -> list[dict[str, Json]]:
        """The registry as JSON: name, description, parameters, writes, idempotent, undo.

        Raises TypeError for a tool that cannot be offered.
        """
        found = []
        for name, method in _tools(cls).items():
            facts: ToolFacts = method.tool_facts  # type: ignore[attr-defined]
            found.append(
                {
                    "name": name,
                    "description": " ".join((inspect.getdoc(method) or "").split()),
                    "parameters": copy.deepcopy(schema(method)),
                    "writes": facts.writes,
                    "idempotent": facts.idempotent,
                    "undo": facts.undo,
                }
            )
        return found


def _written(value: Json, *, ensure_ascii: bool = True) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, allow_nan=False)


def _failed(text: str) -> Outcome:
    if len(text) > MAX_ERROR_CHARACTERS:
        text = f"{text[:MAX_ERROR_CHARACTERS]}…"
    readable = text.encode("utf-8", "backslashreplace").decode()
    return Outcome(error(readable), failed=True)


_REGISTRIES: dict[type, dict[str, Callable[..., Any]]] = {}


def _tools(cls: type) -> dict[str, Callable[..., Any]]:
    """The tools of a world in the order in which they are written."""
    if cls not in _REGISTRIES:
        found: dict[str, Callable[..., Any]] = {}
        for base in reversed(cls.__mro__):
            for name, method in vars(base).items():
                if hasattr(method, "tool_facts"):
                    found[name] = method
                else:
                    found.pop(name, None)  # overridden by something that is not offered
        _REGISTRIES[cls] = found
    return _REGISTRIES[cls]
