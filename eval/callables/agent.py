"""An agent of the user's as a backend of the harness: each request is a task, its replies are completions.

An agent that makes its calls while it works shows several replies at once: those of later passes are kept for
the requests that ask for them. What it raises, and what is no reply, is a failed row: the request was
refused, which counts as wrong, since a deployed agent that breaks has failed as well.
"""

import asyncio
import shlex
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

from robustbench_tc import seeding
from robustbench_tc.errors import UserError
from robustbench_tc.llm import Completion, LLMError, Stats
from robustbench_tc.schema import Json, Sample

from .. import wire
from ..record import Mode
from ..request_settings import RequestOptions, RequestSettings
from ..scripted import Results, most_replies
from ..session import Opened, OpenSpeaker
from ..speakers import ModelSpeaker
from . import command as commands, function as functions
from .invocation import Invocation
from .task import Failed, Task, reply_of

Function: TypeAlias = str | Callable[[Task], Any]
"""`module:function`, `file.py:function`, or the function itself."""

Run: TypeAlias = Callable[[Task, float], Awaitable[Any]]
"""Asks the agent, for so many seconds at most; what it gave back."""


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
    run: Run = field(repr=False)

    def opened(
        self, results: Mapping[str, Results], mode: Mode, at_once: int, timeout_s: float
    ) -> OpenSpeaker:
        """The backend. `results`: by clean id what the tools answer; `mode` prompt: the tools stand in the
        messages, and the agent's text is read for calls."""

        @asynccontextmanager
        async def backend() -> AsyncIterator[Opened]:
            asked = AgentBackend(self, results, mode=mode, at_once=at_once, timeout_s=timeout_s)
            yield Opened(ModelSpeaker(asked), f"{self.backend} {self.name}", asked.stats, self.settings)

        return backend


def own_agent(
    function: Function | None, command: str | Sequence[str] | None, options: RequestOptions
) -> OwnAgent:
    """The agent that `function` or `command` names. Raises UserError."""
    if function is not None and command is not None:
        raise UserError("--callable and --command: give one of them")
    which = "callable" if command is None else "command"
    if given := [one for one in options.__struct_fields__ if one != "seed" and getattr(options, one)]:
        raise UserError(f"--{which}: the agent itself decides about {given[0]}: leave it out")
    run: Run
    if command is not None:
        words = commands.words_of(command)
        shown, digest, in_parallel = shlex.join(words), commands.code_digest(words), True
        run = partial(commands.run, words)
    else:
        found = functions.check(function, "") if callable(function) else functions.find(str(function))
        shown = str(function)
        if callable(function):
            name = getattr(found, "__qualname__", type(found).__name__)
            shown = f"{getattr(found, '__module__', None) or '?'}:{name}"
        digest, in_parallel = functions.code_digest(found), functions.is_async(found)
        run = partial(functions.run, found)
    identity: dict[str, Json] = {"agent": shown, "code": digest}
    if options.seed is not None:
        identity["seed"] = options.seed
    settings = RequestSettings(decoding=identity)
    return OwnAgent(name=shown, backend=which, settings=settings, in_parallel=in_parallel, run=run)


class AgentBackend:
    """Asks an agent. `results`: by clean id what the tools answer."""

    def __init__(
        self, agent: OwnAgent, results: Mapping[str, Results], *, mode: str, at_once: int, timeout_s: float
    ) -> None:
        self._agent, self._results, self._mode, self._timeout_s = agent, results, mode, timeout_s
        self._slots = asyncio.Semaphore(at_once)
        self._sessions: dict[tuple[str, int], tuple[dict[str, Any], list[Completion]]] = {}
        """Of every row under way: the agent's own state, and replies of its last run for later requests."""
        self.stats = Stats()

    async def ask(self, ask: wire.Ask, repeat: int) -> Completion:
        """As `Backend.ask`. Raises LLMError with the code `agent` where the agent fails."""
        row = ask.row
        assert row is not None, "an agent is asked about a row"
        state, later = self._sessions.setdefault((row.id, repeat), ({}, []))
        try:
            if not later:
                async with self._slots:  # so that no request's time runs while another is answered
                    later += await self._run(row, ask, repeat, state)
            found = later.pop(0)
        except BaseException:
            del self._sessions[row.id, repeat]
            raise
        if ask.number >= most_replies(row) or not found.tool_calls:
            del self._sessions[row.id, repeat]
        return found

    async def _run(self, row: Sample, ask: wire.Ask, repeat: int, state: dict[str, Any]) -> list[Completion]:
        invocation = Invocation(row, ask.number, self._results.get(row.clean_id, {}), mode=self._mode)
        drawn = self._agent.settings.decoding.get("seed", 0)
        # 16 hex digits that say nothing about the row, and are the same whenever it is asked.
        name = f"{seeding.rng(drawn, 'session', row.id, str(repeat)).getrandbits(64):016x}"
        seed = seeding.rng(drawn, "agent", row.clean_id, str(repeat)).getrandbits(31)
        task = task_of(row, ask, invocation, session=name, seed=seed, state=state)
        begun = time.monotonic()
        self.stats.requests += 1
        try:
            given = await self._agent.run(task, self._timeout_s)
            try:
                reply = reply_of(given)
            except (TypeError, ValueError) as error:
                raise Failed(str(error)) from None
            found = invocation.completions(reply, round(time.monotonic() - begun, 6))
        except Exception as error:
            self.stats.errors["agent"] += 1
            said = str(error)
            if isinstance(error, TimeoutError):
                said = f"no answer within {self._timeout_s:g} s"
            elif not isinstance(error, Failed):
                said = f"it raised {' '.join(f'{type(error).__name__}: {error}'.split())[:300]}"
            raise LLMError("agent", said) from None
        finally:
            invocation.close()
        self.stats.answered += 1
        return found


def task_of(
    row: Sample,
    ask: wire.Ask,
    invocation: Invocation,
    *,
    session: str,
    seed: int,
    state: dict[str, Any] | None = None,
) -> Task:
    """What an agent gets for a request about a row: its calls are answered by `invocation`."""
    return Task(
        session=session,
        turn=sum(message.role == "user" for message in row.messages) or 1,
        messages=ask.messages,
        tools=ask.tools or [],
        seed=seed,
        state={} if state is None else state,
        call=invocation.call,
        acall=invocation.acall,
    )
