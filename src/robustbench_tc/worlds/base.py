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

Schemas come from signatures (`fit`), descriptions from docstrings; `check` finds an author's mistakes.
"""

import copy
import inspect
import itertools
import json
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple, TypeVar

from msgspec import Meta

from .fit import error, misfit, relaxed, schema, shortened

Json = Any
F = TypeVar("F", bound=Callable[..., Any])

MAX_RESULT_CHARACTERS = 100_000
MAX_ERROR_CHARACTERS = 1_000

NAME = "[A-Za-z0-9_-]{1,64}"
"""A pattern of what a tool, a world and a task can be called: every provider's interface takes such names."""


class Failure(Exception):
    """A call that cannot be carried out; the text is what the agent reads. The world is as it was."""


class ToolFacts(NamedTuple):
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
        method.tool_facts = ToolFacts(True, idempotent, undo)  # type: ignore[attr-defined]
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

    says: Annotated[str, Meta(pattern=r"\S")]
    gold: Sequence[GoldCall] = ()
    answers: Sequence[Mapping[str, Sequence[Json]]] = ()
    """Where the user asks: fields of what gold reads with the values that the reply has to hold, and other
    fields that would do as well."""


@dataclass(frozen=True)
class Task:
    """A conversation with a world that starts in `state`."""

    id: Annotated[str, Meta(pattern=rf"^{NAME}\Z")]
    state: Mapping[str, Json]
    turns: Annotated[Sequence[Turn], Meta(min_length=1)]
    seed: Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)] = 0
    flags: Sequence[str] = ()


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


class Forbidden(NamedTuple):
    """A tool that is offered and must not be called, whatever happens."""

    tool: str
    policy: str
    """What the system text says of it, in the words of a user."""


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

    forbidden: ClassVar[Forbidden | None] = None
    """The tool that rows with the fault `forbidden` say must not be called; tasks whose gold calls it have no
    such row."""

    methods: ClassVar[dict[str, Any]] = {}
    """The tools by name, in the order in which they are written."""

    def __init_subclass__(cls) -> None:
        every = {name: getattr(cls, name, None) for base in reversed(cls.__mro__) for name in vars(base)}
        cls.methods = {name: method for name, method in every.items() if hasattr(method, "tool_facts")}

    def __init__(self, state: Mapping[str, Json], seed: int = 0) -> None:
        self.data: dict[str, Json] = json.loads(_written(dict(state)))
        self.random = random.Random(seed)
        self._generated: list[str] = []

    def new_id(self, prefix: str, digits: int = 4) -> str:
        """A fresh id. Two episodes that differ in such ids only, one to one, have reached the same state."""
        taken = json.dumps([self.data, self._generated], ensure_ascii=False)
        for tries in itertools.count():
            length = digits + tries // 20  # most numbers of a shorter one are taken
            made = f"{prefix}{self.random.randrange(10 ** (length - 1), 10**length)}"
            if made not in taken:
                break
        self._generated.append(made)
        return made

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
        method = self.methods.get(name) if isinstance(name, str) else None
        if method is None:
            return _failed(f"there is no tool {shortened(name)}")
        if not isinstance(arguments, Mapping):
            return _failed("the arguments must be an object")
        declared = schema(method)
        arguments = relaxed(declared, arguments) if self.lax_types else dict(arguments)
        wrong = misfit(declared, arguments)
        if wrong is not None:
            return _failed(wrong)
        before, drawn, made = _written(self.data), self.random.getstate(), len(self._generated)
        try:
            result = method(self, **copy.deepcopy(arguments))
            text = result if isinstance(result, str) else _written(result, ensure_ascii=False)
            text.encode()  # a lone surrogate could be sent to nobody
            after = _written(self.data)
            if method.tool_facts.writes:
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
        return [
            {
                "name": name,
                "description": " ".join((inspect.getdoc(method) or "").split()),
                "parameters": copy.deepcopy(schema(method)),
                **method.tool_facts._asdict(),
            }
            for name, method in cls.methods.items()
        ]


def _written(value: Json, *, ensure_ascii: bool = True) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, allow_nan=False)


def _failed(text: str) -> Outcome:
    if len(text) > MAX_ERROR_CHARACTERS:
        text = f"{text[:MAX_ERROR_CHARACTERS]}…"
    readable = text.encode("utf-8", "backslashreplace").decode()
    return Outcome(error(readable), failed=True)
