"""`--callable` and `--command`: which agent of the user's is asked, checked before any work."""

import shlex
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

from robustbench_tc.errors import UserError
from robustbench_tc.llm import Stats
from robustbench_tc.schema import Json

from ..record import Mode
from ..request_settings import RequestOptions, RequestSettings
from ..scripted import Results
from ..session import Opened, OpenSpeaker
from ..speakers import ModelSpeaker
from . import command as commands, function as functions
from .backend import AgentBackend, Runner
from .task import Task

Function: TypeAlias = str | Callable[[Task], Any]
"""`module:function`, `file.py:function`, or the function itself."""


@dataclass(frozen=True, kw_only=True)
class OwnAgent:
    """An agent of the user's that is ready to be asked."""

    name: str
    """As it was given, or where the function stands."""
    backend: str
    """`callable` or `command`, for the run record."""
    settings: RequestSettings
    """The agent, the digest of its code, and the seed: what answers depend on."""
    in_parallel: bool
    """Whether it can be said to bear several requests at once."""
    runner: Callable[[], Runner] = field(repr=False)

    def opened(
        self, results: Mapping[str, Results], mode: Mode, at_once: int, timeout_s: float
    ) -> OpenSpeaker:
        """The backend. `results`: by clean id what the tools answer; `mode` prompt: the tools stand in the
        messages, and the agent's text is read for calls."""

        @asynccontextmanager
        async def backend() -> AsyncIterator[Opened]:
            runner, stats = self.runner(), Stats()
            try:
                seed = self.settings.decoding.get("seed", 0)
                asked = AgentBackend(
                    runner,
                    results,
                    mode=mode,
                    at_once=at_once,
                    seed=seed,
                    timeout_s=timeout_s,
                    stats=stats,
                )
                speaker = ModelSpeaker(asked)
                yield Opened(speaker, f"{self.backend} {self.name}", stats, self.settings)
            finally:
                runner.close()

        return backend


def own_agent(
    function: Function | None, command: str | Sequence[str] | None, options: RequestOptions
) -> OwnAgent:
    """The agent that `function` or `command` names. Raises UserError."""
    if function is not None and command is not None:
        raise UserError("--callable and --command: give one of them")
    which = "callable" if command is None else "command"
    if given := [one for one, value in options.items() if value and one != "seed"]:
        raise UserError(f"--{which}: the agent itself decides about {given[0]}: leave it out")
    runner: Callable[[], Runner]
    if command is not None:
        words = commands.words_of(command)
        shown, digest, in_parallel = shlex.join(words), commands.code_digest(words), True
        runner = partial(commands.Commands, words)
    else:
        found = functions.check(function, "") if callable(function) else functions.find(str(function))
        shown = str(function)
        if callable(function):
            name = getattr(found, "__qualname__", type(found).__name__)
            shown = f"{getattr(found, '__module__', None) or '?'}:{name}"
        digest, in_parallel = functions.code_digest(found), functions.is_async(found)
        runner = partial(functions.Functions, found)
    identity: dict[str, Json] = {"agent": shown, "code": digest}
    if (seed := options.get("seed")) is not None:
        identity["seed"] = seed
    return OwnAgent(
        name=shown,
        backend=which,
        settings=RequestSettings(decoding=identity),
        in_parallel=in_parallel,
        runner=runner,
    )
