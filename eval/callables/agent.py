"""An agent of the user's, checked before any work, and as who answers in a run."""

import asyncio
import shlex
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

import msgspec

from robustbench_tc import seeding
from robustbench_tc.errors import UserError
from robustbench_tc.llm import Completion, Stats
from robustbench_tc.schema import Json, Sample

from .. import wire
from ..dialogue import Dialogue
from ..record import Answer
from ..request_settings import RequestOptions, RequestSettings
from ..scripted import Scripted
from ..speakers import answer_of
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


class AgentSpeaker:
    """Asks an agent: each request is a task, its replies are answers.

    One that makes its calls while it works shows several replies at once: those of later requests are kept
    for them. What it raises, and what is no reply, is a failed row, which counts as wrong: a deployed agent
    that breaks has failed as well.
    """

    def __init__(self, agent: OwnAgent, at_once: int, timeout_s: float) -> None:
        self._agent, self._timeout_s = agent, timeout_s
        self._slots = asyncio.Semaphore(at_once)
        self._sessions = WeakKeyDictionary[Dialogue, tuple[dict[str, Any], list[Completion]]]()
        """Of every row under way: the agent's own state, and replies of its last run for later requests."""
        self.stats = Stats()

    async def reply(self, dialogue: Dialogue, ask: wire.Ask, base: Answer) -> Answer:
        """As `dialogue.Speaker`."""
        env, repeat = dialogue.env, str(base.repeat)
        assert isinstance(env, Scripted), "live rows are played by models and scripted agents"
        state, later = self._sessions.setdefault(dialogue, ({}, []))
        if not later:
            invocation = Invocation(env.row, base.number, env.results, mode=dialogue.settings.mode)
            drawn = self._agent.settings.decoding.get("seed", 0)
            # 16 hex digits that say nothing about the row, and are the same whenever it is asked.
            session = f"{seeding.rng(drawn, 'session', env.row.id, repeat).getrandbits(64):016x}"
            seed = seeding.rng(drawn, "agent", env.row.clean_id, repeat).getrandbits(31)
            task = task_of(env.row, ask, invocation, session=session, seed=seed, state=state)
            self.stats.requests += 1
            try:
                async with self._slots:  # so that no request's time runs while another is answered
                    later += await self._run(invocation, task)
            except Failed as failed:
                self.stats.errors["agent"] += 1
                return msgspec.structs.replace(base, status="agent_error", error=f"agent: {failed}")
            finally:
                invocation.close()
            self.stats.answered += 1
        return answer_of(later.pop(0), base, env.tools)

    async def _run(self, invocation: Invocation, task: Task) -> list[Completion]:
        """Raises Failed."""
        begun = time.monotonic()
        try:
            given = await self._agent.run(task, self._timeout_s)
        except Failed:
            raise
        except TimeoutError:
            raise Failed(f"no answer within {self._timeout_s:g} s") from None
        except Exception as error:  # whatever a user's agent raises costs its row alone
            said = " ".join(f"{type(error).__name__}: {error}".split())
            raise Failed(f"it raised {said[:300]}") from None
        try:
            reply = reply_of(given)
        except (TypeError, ValueError) as error:
            raise Failed(str(error)) from None
        return invocation.completions(reply, round(time.monotonic() - begun, 6))


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
