"""A world as an episode holds it, wherever it runs: in this process, or in one of its own (`host`)."""

import importlib.util
import json
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Literal, NamedTuple

import msgspec

from ..errors import UserError
from ..schema import Json
from .base import World


class Snapshot(NamedTuple):
    """The state of a world at one moment."""

    state: Json
    generated: tuple[str, ...] = ()
    """Ids that were made in this episode, in order: they are compared one to one, not by value."""


class Answered(NamedTuple):
    """What a world said to a call."""

    text: str
    problem: Literal["timeout", "died"] | None = None
    """The call was cut off, or the world's process died; the text is the tool error. The world is then as it
    was before the call."""


class Start(msgspec.Struct, frozen=True):
    """What a world is opened with."""

    state: Json
    seed: int = 0


class WorldType(NamedTuple):
    """A kind of world: the file that it is written in, and the Python that runs it."""

    name: str
    file: Path
    python: str | None = None
    """None: this one."""


def load_file(path: Path) -> ModuleType:
    """A world's file as a module. Raises UserError for one without a WORLD that inherits from World."""
    spec = importlib.util.spec_from_file_location(f"rbtc_world_{path.stem}", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise UserError(f"{path} is not a world: give a Python file (docs/worlds.md)")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise UserError(f"{path} cannot be imported: {type(error).__name__}: {error}") from None
    world = getattr(module, "WORLD", None)
    if not (isinstance(world, type) and issubclass(world, World)):
        raise UserError(f"{path} has no WORLD that is a class and inherits from World (docs/worlds.md)")
    return module


class LocalHandle:
    """A world in this process."""

    def __init__(self, module: ModuleType, start: Start) -> None:
        self._module, self._start = module, start
        try:
            self._world: World = module.WORLD(start.state, start.seed)
        except (Exception, SystemExit) as error:
            raise _broken(module, "cannot start from this state", error) from None
        self._calls: list[tuple[str, dict[str, Json]]] = []

    async def call(self, name: str, arguments: Mapping[str, Json]) -> Answered:
        self._calls.append((name, dict(arguments)))
        return Answered(self._world.call(name, arguments))

    async def snapshot(self) -> Snapshot:
        try:
            return Snapshot(json.loads(json.dumps(self._world.state())), tuple(self._world.generated()))
        except (Exception, SystemExit) as error:
            raise _broken(self._module, "does not report its state", error) from None

    async def copy(self) -> "LocalHandle":
        made = LocalHandle(self._module, self._start)
        for name, arguments in self._calls:
            await made.call(name, arguments)
        return made

    async def aclose(self) -> None:
        """Nothing is kept of it."""


def _broken(module: ModuleType, what: str, error: BaseException) -> UserError:
    """What an author's own code does, in one line."""
    said = " ".join(str(error).split())
    return UserError(f"world {module.__file__} {what}: {type(error).__name__}: {said[:300]}")
