"""The harness: rows and a backend in, a journal of answers out (benchmark.md §6).

A row is asked once, or as often as `passes` says.

Every answer is on disk before its row counts as done, so a run may be killed at any moment: the same command
goes on where it stopped, and asks nothing twice that was answered. Real failures of the endpoint are recorded
as `request_error` and asked again by the next session; they are never a model's answer.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

import msgspec

from robustbench_tc.errors import UserError
from robustbench_tc.llm import Completion, LLMError, Store
from robustbench_tc.schema import Json, Sample, Tool

from . import passes, wire
from .predictions import answer
from .prompts import OURS, Prompts, wording
from .read_reply import read_reply
from .record import Answer, Settings, Status

REFUSALS = 20
"""So many ordinary registries refused, and nothing answered: the endpoint is at fault, not the rows."""


class Backend(Protocol):
    """Something that answers one request. Raises LLMError when there is no answer."""

    async def ask(self, ask: wire.Ask, repeat: int) -> Completion:
        """The completion of one request; `repeat` counts from 0."""
        ...


class Progress(msgspec.Struct):
    """How far a session is; `done` counts (row, repeat) pairs whose answers are on disk."""

    total: int
    done: int = 0
    request_errors: int = 0
    kept: int = 0
    """Of `done`, those that had all their answers before: nothing was asked."""
    cost: float = 0.0
    """Spent by this session, in the currency of the prices given; 0 without prices."""


class Harness:
    """One session over one journal.

    `workers` pairs are in hand at a time; the backend bounds the requests under way, so that a worker that
    waits for the disk keeps no request waiting. `results`: by clean id what the tools of own cases answer;
    `words`: of prompt mode.
    """

    def __init__(
        self,
        settings: Settings,
        hashes: dict[str, str],
        journal: Store,
        backend: Backend,
        *,
        workers: int,
        results: Mapping[str, passes.Results] | None = None,
        words: Prompts = OURS,
        progress: Callable[[Progress], None] = lambda _: None,
    ) -> None:
        self._settings = settings
        self._results = results or {}
        self._words = words
        self._hashes = hashes
        self._journal = journal
        self._backend = backend
        self._workers = workers
        self._tell = progress
        self._watch = Watch(workers)
        self.served_models: set[str] = set()

    async def run(self, rows: Sequence[Sample]) -> Progress:
        """Asks everything that the journal has no answer to. Raises UserError when it cannot go on."""
        state = Progress(len(rows) * self._settings.repeat)
        todo = ((row, repeat) for repeat in range(self._settings.repeat) for row in rows)
        self._tell(state)
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(self._workers):
                    group.create_task(self._work(todo, state))
        except* UserError as errors:
            raise first(errors) from None
        return state

    async def _work(self, todo: Iterator[tuple[Sample, int]], state: Progress) -> None:
        for row, repeat in todo:
            last, asked = await self._row(row, repeat)
            state.done += 1
            state.kept += not asked
            state.request_errors += last.status == "request_error"
            self._tell(state)

    async def _row(self, row: Sample, repeat: int) -> tuple[Answer, bool]:
        """All passes of one row: the answer that is scored, and whether anything was asked for it."""
        answers: list[Answer] = []
        asked = False
        while not answers or passes.goes_on(row, self._settings, answers):
            number = len(answers) + 1
            found = self._kept(row, repeat, number)
            if found is None:
                asked = True
                replies = [(one.text, one.tool_calls) for one in answers]
                results = self._results.get(row.clean_id, {})
                texts = passes.result_texts(row, self._settings, answers, results)
                ask = wire.following(row, self._settings.mode, replies, texts, self._words)
                found = await self._ask(row, repeat, number, ask)
            answers.append(found)
        return answers[-1], asked

    def _key(self, row: Sample, repeat: int, number: int) -> str:
        return self._settings.key(self._hashes[row.id], repeat, number, wording(row))

    def _kept(self, row: Sample, repeat: int, number: int) -> Answer | None:
        """The answer of an earlier session; a recorded failure is none."""
        found = answer(self._journal, self._key(row, repeat, number))
        return None if found is None or found.status == "request_error" else found

    async def _ask(self, row: Sample, repeat: int, number: int, ask: wire.Ask) -> Answer:
        key = self._key(row, repeat, number)
        base = Answer(id=row.id, repeat=repeat, number=number, status="ok")
        ask = msgspec.structs.replace(ask, key=key, row=row, number=number)
        made = await received(self._backend, ask, base, row.tools)
        self.served_models |= {made.served_model} if made.served_model else set()
        made = with_call_noted(row, self._settings, made)
        await keep(self._journal, key, msgspec.to_builtins(made))
        self._watch.see(made, ask)
        return made


async def received(backend: Backend, ask: wire.Ask, base: Answer, tools: tuple[Tool, ...]) -> Answer:
    """What came back: `base` with the reply, or with the reason why there is none; names mapped to `tools`'.

    Raises UserError where the limit of cost is reached.
    """
    try:
        done = await backend.ask(ask, base.repeat)
    except LLMError as error:
        if error.code == "budget":
            raise UserError(f"stopped: {error.message}; what was answered is kept") from None
        filtered = "content_filter" if error.code == "content_filter" else None
        return msgspec.structs.replace(
            base, status=status_of(error, ask), error=str(error), finish_reason=filtered
        )
    return msgspec.structs.replace(
        base,
        text=done.text,
        tool_calls=wire.names_back(tools, done.tool_calls),
        finish_reason=done.finish_reason,
        prompt_tokens=done.prompt_tokens,
        completion_tokens=done.completion_tokens,
        latency_s=round(done.latency_s, 6),
        retries=done.retries,
        logprobs=done.logprobs,
        reasoning=done.reasoning,
        served_model=done.model,
    )


def with_call_noted(row: Sample, settings: Settings, made: Answer) -> Answer:
    """The answer with `has_call`, where a call in it would be answered with the row's text."""
    if made.status != "ok" or made.number > wire.answered(row):
        return made
    found = read_reply(
        row,
        made.text,
        made.tool_calls,
        model=settings.model,
        mode=settings.mode,
        finish_reason=made.finish_reason,
        reasoning=made.reasoning,
    )
    return msgspec.structs.replace(made, has_call=bool(found.calls))


async def keep(journal: Store, key: str, record: dict[str, Json]) -> None:
    """Writes a record, whatever ends the session meanwhile: an answer that came was paid for."""
    writing = asyncio.ensure_future(journal.put(key, record))
    try:
        await asyncio.shield(writing)
    except asyncio.CancelledError:
        await writing
        raise


class Watch:
    """Stops a session whose endpoint has gone, or takes no tools at all: its rows would only be recorded as
    failures one by one."""

    def __init__(self, workers: int) -> None:
        self._give_up_after = max(20, 2 * workers)
        self._failures_in_a_row = 0
        self._refused_outright = 0

    def see(self, made: Answer, ask: wire.Ask) -> None:
        """Looks at what came back to `ask`. Raises UserError where there is no sense in going on."""
        if made.status == "ok":
            self._refused_outright = -1
        elif made.status == "rejected" and self._refused_outright >= 0 and not _has_duplicates(ask):
            self._refused_outright += 1
            if self._refused_outright >= REFUSALS and (made.error or "").startswith("agent:"):
                raise UserError(
                    f"the agent has failed on every row ({made.error}): try it on one request; what was "
                    "tried is kept, --fresh begins again"
                )
            if self._refused_outright >= REFUSALS:
                raise UserError(
                    f"the endpoint refuses every registry ({made.error}): if it takes no tools, ask with "
                    "--mode prompt; if it was started wrongly, fix that and begin again with --fresh"
                )
        if made.status != "request_error" or made.finish_reason == "content_filter":
            self._failures_in_a_row = 0  # where a filter answers, somebody is there
            return
        self._failures_in_a_row += 1
        if self._failures_in_a_row >= self._give_up_after:
            raise UserError(
                f"the endpoint has stopped answering ({self._failures_in_a_row} failures in a row, the last: "
                f"{made.error}): what was answered is kept, the same command goes on"
            )


def status_of(error: LLMError, ask: wire.Ask) -> Status:
    """How a request without a completion is recorded."""
    if error.code == "too_long":
        return "too_long"
    if error.code in ("rejected", "duplicate_tools", "agent"):
        return "rejected"
    # A refusal in unknown words of a registry that servers are known to refuse.
    if error.code == "bad_request" and _has_duplicates(ask):
        return "rejected"
    return "request_error"


def _has_duplicates(ask: wire.Ask) -> bool:
    names = [tool["function"]["name"] for tool in ask.tools or ()]
    return len(set(names)) < len(names)


def first(errors: BaseExceptionGroup[UserError]) -> UserError:
    """The first error of a group of tasks: what a user is shown."""
    found: BaseException = errors
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    assert isinstance(found, UserError)
    return found
