"""The harness: rows and a backend in, a journal of answers out (benchmark.md §6).

A row is asked once, or as often as `passes` says.

Every answer is on disk before its row counts as done, so a run may be killed at any moment: the same command
goes on where it stopped, and asks nothing twice that was answered. Real failures of the endpoint are recorded
as `request_error` and asked again by the next session; they are never a model's answer.
"""

import asyncio
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

import msgspec

from robustbench_tc.errors import UserError
from robustbench_tc.llm import Completion, LLMError, Store
from robustbench_tc.schema import ASKED_AGAIN, Json, Sample, Status, Tool, asked_hash

from . import defend, passes, wire
from .defend import chain
from .defend.again import is_strict, strict
from .defend.base import Request, Said
from .first_replies import FirstReplies
from .predictions import answer
from .prompts import OURS, Prompts, wording
from .record import Answer, Settings

SAMPLES = 1_000
"""Between the seeds of two samples of one request: more than there are repeats."""

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
    `words`: of prompt mode; `first` may stop the session after its first replies.
    """

    def __init__(
        self,
        settings: Settings,
        journal: Store,
        backend: Backend,
        *,
        workers: int,
        results: Mapping[str, passes.Results] | None = None,
        words: Prompts = OURS,
        first: FirstReplies | None = None,
        progress: Callable[[Progress], None] = lambda _: None,
    ) -> None:
        self._settings = settings
        self._results = results or {}
        self._words = words
        self._chain = defend.parse(settings.defend)
        self._journal = journal
        self._backend = backend
        self._workers = workers
        self._tell = progress
        self._watch = Watch(workers)
        self._first = first
        self.served_models: set[str] = set()

    async def run(self, rows: Sequence[Sample]) -> Progress:
        """Asks everything that the journal has no answer to. Raises UserError when it cannot go on."""
        state = Progress(len(rows) * self._settings.repeat)
        todo = ((row, repeat) for repeat in range(self._settings.repeat) for row in rows)
        self._tell(state)
        if self._first is not None and self._first.one_alone:
            await self._work(itertools.islice(todo, 1), state)
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(self._workers):
                    group.create_task(self._work(todo, state))
        except* UserError as errors:
            raise errors.exceptions[0] from None
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
        said: list[Said] = []
        asked = False
        while not said or passes.goes_on(row, self._settings, [one.answer for one in said]):
            found, new = await self._pass(row, repeat, said)
            asked |= new
            said.append(found)
        return said[-1].answer, asked

    async def _pass(self, row: Sample, repeat: int, before: Sequence[Said]) -> tuple[Said, bool]:
        """One pass: every request that it takes, and whether one was asked now."""
        results = self._results.get(row.clean_id, {})
        texts = passes.result_texts(row, self._settings, [one.answer for one in before], results)
        scene = passes.scene(row, self._settings, before, texts)
        steps = chain.reply(self._chain, scene)
        number, asked, new = len(before) + 1, list[Answer](), False
        try:
            request = next(steps)
            while True:
                found = self._kept(row, repeat, number, len(asked))
                if found is None:
                    new, found = True, await self._ask(row, request, repeat, number, len(asked))
                asked.append(found)
                request = steps.send(found)
        except StopIteration as end:
            said: Said = end.value
        if self._chain:
            said = chain.finished(said, scene, asked, repeat=repeat, number=number)
        return said, new

    def _key(self, row: Sample, repeat: int, number: int, further: int) -> str:
        return self._settings.key(asked_hash(row), repeat, number, wording(row), further)

    def _kept(self, row: Sample, repeat: int, number: int, further: int) -> Answer | None:
        """The answer of an earlier session; a recorded failure is none."""
        found = answer(self._journal, self._key(row, repeat, number, further))
        return None if found is None or found.status in ASKED_AGAIN else found

    def _asking(self, request: Request) -> wire.Ask:
        """A request as it goes over the wire."""
        replies = [(turn.said.answer.text, turn.said.answer.tool_calls) for turn in request.turns]
        texts = [turn.results for turn in request.turns]
        asked = wire.following(request.row, self._settings.mode, replies, texts, self._words)
        if is_strict(self._chain):
            asked = msgspec.structs.replace(asked, tools=strict(asked.tools or ()))
        return msgspec.structs.replace(asked, row=request.row)

    async def _ask(self, row: Sample, request: Request, repeat: int, number: int, further: int) -> Answer:
        key = self._key(row, repeat, number, further)
        base = Answer(id=row.id, repeat=repeat, number=number, further=further, status="ok")
        ask = msgspec.structs.replace(self._asking(request), number=number)
        draw = repeat + request.draw * SAMPLES  # a seed of its own for every sample
        made = await received(self._backend, ask, base, request.row.tools, draw)
        self.served_models |= {made.served_model} if made.served_model else set()
        made = with_call_noted(request.row, self._settings, made)
        await keep(self._journal, key, msgspec.to_builtins(made))
        self._watch.see(made, ask)
        if self._first is not None:
            self._first.see(row, request.row, made)
        return made


async def received(
    backend: Backend, ask: wire.Ask, base: Answer, tools: tuple[Tool, ...], draw: int | None = None
) -> Answer:
    """What came back: `base` with the reply, or with the reason why there is none; names mapped to `tools`'.

    `draw`: which sample of the request it is, by default that of the repeat. Raises UserError where the limit
    of cost is reached.
    """
    try:
        done = await backend.ask(ask, base.repeat if draw is None else draw)
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
    return msgspec.structs.replace(made, has_call=bool(passes.calls_of(row, settings, made)))


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
        elif (
            made.status in ("rejected", "agent_error")
            and self._refused_outright >= 0
            and not _has_duplicates(ask)
        ):
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
    if error.code == "agent":
        return "agent_error"
    if error.code in ("rejected", "duplicate_tools"):
        return "rejected"
    # A refusal in unknown words of a registry that servers are known to refuse.
    if error.code == "bad_request" and _has_duplicates(ask):
        return "rejected"
    return "request_error"


def _has_duplicates(ask: wire.Ask) -> bool:
    names = [tool["function"]["name"] for tool in ask.tools or ()]
    return len(set(names)) < len(names)
