"""`--callable` and `--command`: which agent of the user's is asked, checked before any work."""

import shlex
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from robustbench_tc.errors import UserError
from robustbench_tc.llm import Stats
from robustbench_tc.schema import Json

from ..passes import Results
from ..record import Mode, mode_of
from ..request_settings import RequestOptions, RequestSettings
from ..session import OpenBackend, Opened
from . import command as commands, function as functions
from .backend import AgentBackend, Runner
from .task import Task

Function: TypeAlias = str | Callable[[Task], Any]
"""`module:function`, `file.py:function`, or the function itself."""


@dataclass(frozen=True, kw_only=True)
class OwnAgent:
    """An agent of the user's that is ready to be asked."""

    name: str
    """The model's, in tables and in the run's folder."""
    mode: Mode
    """`prompt`: the tools stand in the messages, and the agent's text is read for calls."""
    backend: str
    """`callable` or `command`, for the run record."""
    settings: RequestSettings
    """The agent, the digest of its code, and the seed: what answers depend on."""
    at_once: int
    """Requests under way at most: 1 where it cannot be said to bear more."""
    runner: Callable[[], Runner] = field(repr=False)

    def opened(self, results: Mapping[str, Results], timeout_s: float) -> OpenBackend:
        """The backend. `results`: by clean id what the tools answer."""

        @asynccontextmanager
        async def backend() -> AsyncIterator[Opened]:
            runner, stats = self.runner(), Stats()
            try:
                seed = self.settings.decoding.get("seed", 0)
                asked = AgentBackend(
                    runner,
                    results,
                    mode=self.mode,
                    at_once=self.at_once,
                    seed=seed,
                    timeout_s=timeout_s,
                    stats=stats,
                )
                yield Opened(asked, f"{self.backend} {self.name}", stats, self.settings)
            finally:
                runner.close()

        return backend


def own_agent(
    function: Function | None,
    command: str | Sequence[str] | None,
    *,
    name: str | None,
    mode: str | None,
    others: Mapping[str, object],
    options: RequestOptions,
    concurrency: int,
) -> OwnAgent | None:
    """The agent that `function` or `command` names; None where neither is given.

    `name` is `--model`, `mode` is `--mode`; `others`: what else says who is asked, by its option, of which
    nothing may be given. Raises UserError.
    """
    if function is None and command is None:
        return None
    which = "--callable" if function is not None else "--command"
    if function is not None and command is not None:
        raise UserError("--callable and --command: give one of them")
    if clash := [option for option, value in others.items() if value]:
        raise UserError(f"{which} is who is asked: leave {clash[0]} out")
    if given := [one for one, value in options.items() if value and one != "seed"]:
        raise UserError(f"{which}: the agent itself decides about {given[0]}: leave it out")
    identity: dict[str, Json] = {}
    runner: Callable[[], Runner]
    if command is not None:
        words = commands.words_of(command)
        shown, digest, at_once = shlex.join(words), commands.code_digest(words), concurrency
        runner = lambda: commands.Commands(words)  # noqa: E731 - one of two
    else:
        found = functions.find(function) if isinstance(function, str) else functions.check(function, "")
        shown = function if isinstance(function, str) else _name_of(found)
        digest, at_once = functions.code_digest(found), concurrency if functions.is_async(found) else 1
        runner = lambda: functions.Functions(found)  # noqa: E731 - one of two
    identity = {"agent": shown, "code": digest}
    if (seed := options.get("seed")) is not None:
        identity["seed"] = seed
    return OwnAgent(
        name=name or shown,
        mode=mode_of(mode or "fc"),
        backend=which.removeprefix("--"),
        settings=RequestSettings(decoding=identity),
        at_once=at_once,
        runner=runner,
    )


def _name_of(function: Callable[..., Any]) -> str:
    name = getattr(function, "__qualname__", type(function).__name__)
    return f"{getattr(function, '__module__', None) or '?'}:{name}"
