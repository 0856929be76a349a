"""An agent of the user's as a backend of the harness: each request is a task, its replies are completions.

An agent that makes its calls while it works shows several replies at once: those of later passes are kept for
the requests that ask for them. What it raises, and what is no reply, is a failed row: the request was
refused, which counts as wrong, since a deployed agent that breaks has failed as well.
"""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from robustbench_tc import seeding
from robustbench_tc.llm import Completion, LLMError, Stats
from robustbench_tc.schema import Sample

from .. import wire
from ..scripted import Results, most_replies
from .command import Failed
from .function import Ended
from .invocation import Invocation
from .task import Task, Unreadable, reply_of


class Runner(Protocol):
    """What runs the agent: a function or a command."""

    async def run(self, task: Task, timeout_s: float) -> Any:
        """What the agent gave back."""
        ...

    def close(self) -> None:
        """Ends what the runner started."""
        ...


@dataclass(kw_only=True)
class _Session:
    """One row under way."""

    state: dict[str, Any] = field(default_factory=dict)
    later: list[Completion] = field(default_factory=list)
    """Replies that the last run of the agent gave beyond the one that was asked for."""


class AgentBackend:
    """Asks an agent. `results`: by clean id what the tools answer."""

    def __init__(
        self,
        runner: Runner,
        results: Mapping[str, Results],
        *,
        mode: str,
        at_once: int,
        seed: int,
        timeout_s: float,
        stats: Stats,
    ) -> None:
        self._runner = runner
        self._mode = mode
        self._results = results
        self._slots = asyncio.Semaphore(at_once)
        self._seed = seed
        self._timeout_s = timeout_s
        self._stats = stats
        self._sessions: dict[tuple[str, int], _Session] = {}

    async def ask(self, ask: wire.Ask, repeat: int) -> Completion:
        """As `Backend.ask`. Raises LLMError with the code `agent` where the agent fails."""
        row = ask.row
        if row is None:
            raise ValueError("an agent is asked about a row, and this request names none")
        session = self._sessions.setdefault((row.id, repeat), _Session())
        try:
            if not session.later:
                async with self._slots:  # so that no request's time runs while another is answered
                    session.later = await self._run(row, ask, repeat, session)
            found = session.later.pop(0)
        except BaseException:
            del self._sessions[row.id, repeat]
            raise
        if ask.number >= most_replies(row) or not found.tool_calls:
            del self._sessions[row.id, repeat]
        return found

    async def _run(self, row: Sample, ask: wire.Ask, repeat: int, session: _Session) -> list[Completion]:
        invocation = Invocation(row, ask.number, self._results.get(row.clean_id, {}), mode=self._mode)
        # 16 hex digits that say nothing about the row, and are the same whenever it is asked.
        name = f"{seeding.rng(self._seed, 'session', row.id, str(repeat)).getrandbits(64):016x}"
        seed = seeding.rng(self._seed, "agent", row.clean_id, str(repeat)).getrandbits(31)
        task = task_of(row, ask, invocation, session=name, seed=seed, state=session.state)
        begun = time.monotonic()
        self._stats.requests += 1
        try:
            given = await self._runner.run(task, self._timeout_s)
            found = invocation.completions(reply_of(given), round(time.monotonic() - begun, 6))
        except TimeoutError:
            raise self._failed(f"no answer within {self._timeout_s:g} s") from None
        except (Failed, Ended, Unreadable) as error:
            raise self._failed(str(error)) from None
        except Exception as error:
            said = " ".join(f"{type(error).__name__}: {error}".split())
            raise self._failed(f"it raised {said[:300]}") from None
        finally:
            invocation.close()
        self._stats.answered += 1
        return found

    def _failed(self, said: str) -> LLMError:
        self._stats.errors["agent"] += 1
        return LLMError("agent", said)


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
