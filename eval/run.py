"""The runner: dialogues and a speaker in, a journal of answers and results out (benchmark.md §6).

Every answer, and what came of its calls, is on disk before it counts, so a run may be killed at any moment:
the same command goes on where it stopped, and asks nothing twice that was answered. Real failures of the
endpoint are recorded as `request_error` and asked again by the next session; they are never a model's answer.
"""

import asyncio
import hashlib
import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from types import MappingProxyType
from typing import Literal

import msgspec

from robustbench_tc.errors import UserError
from robustbench_tc.llm import Stats, Store
from robustbench_tc.llm.store import read_lines
from robustbench_tc.schema import ASKED_AGAIN, Call, LiveRow, Sample, dumps
from robustbench_tc.worlds.handle import WorldType
from robustbench_tc.worlds.host import Worlds

from . import journal, wire
from .dialogue import BudgetSpent, Dialogue, Speaker
from .live.carrying_out import CarryingOut
from .live.stage import Stage
from .record import Answer, Settings
from .scripted import parsed

REFUSALS = 20
"""So many ordinary registries refused, and nothing answered: the endpoint is at fault, not the rows."""


class Progress(msgspec.Struct):
    """How far a session is; `done` counts (row, repeat) pairs whose answers are on disk."""

    total: int
    done: int = 0
    request_errors: int = 0
    kept: int = 0
    """Of `done`, those that had all their answers before: nothing was asked."""
    cost: float = 0.0
    """Spent by this session, in the currency of the prices given; 0 without prices."""
    asked: int = 0
    """Requests that were answered or failed now."""
    shared: int = 0
    """Requests that were not sent, as an equal one had its answer."""


class Runner:
    """One session over one journal.

    `workers` dialogues are in hand at a time, and `unwritten` requests at most whose answers are not on disk:
    so many a kill can cost. The backend bounds the requests under way, so that a worker that waits for the
    disk keeps no request waiting. `worlds`: where worlds of live rows are opened, which `kinds` has by the
    name that rows have. `sharing`: equal requests are asked once. `watch` may stop the session.
    """

    def __init__(
        self,
        store: Store,
        speaker: Speaker,
        *,
        workers: int,
        unwritten: int | None = None,
        sharing: "Sharing | None" = None,
        worlds: Worlds | None = None,
        kinds: Mapping[str, WorldType] = MappingProxyType({}),
        watch: "Watch | None" = None,
        progress: Callable[[Progress], None] = lambda _: None,
    ) -> None:
        self._journal, self._speaker, self._worlds, self._kinds = store, speaker, worlds, kinds
        self._workers, self._unwritten = workers, asyncio.Semaphore(unwritten or workers)
        self._sharing, self._watch, self._tell = sharing or Sharing(store), watch or Watch(workers), progress
        self._state = Progress(0)
        self._spent: BudgetSpent | None = None
        self.served_models: set[str] = set()

    async def run(self, dialogues: Iterable[Dialogue], total: int) -> Progress:
        """Asks everything that the journal has no answer to. Raises UserError when it cannot go on."""
        self._state.total = total
        todo = iter(dialogues)
        self._tell(self._state)
        if self._watch.one_alone:
            await self._work(itertools.islice(todo, 1))
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(self._workers, total)):
                    group.create_task(self._work(todo))
        except* UserError as errors:
            raise errors.exceptions[0] from None
        if self._spent is not None:
            raise self._spent
        return self._state

    async def _work(self, todo: Iterator[Dialogue]) -> None:
        state = self._state
        for dialogue in todo:
            try:
                asked = await self.play(dialogue)
            except BudgetSpent as error:  # what other workers have sent is paid for: they wait for it
                self._spent = error
                return
            state.done += 1
            state.kept += not asked
            state.request_errors += dialogue.ended == "request_error"
            self._tell(state)

    async def play(self, dialogue: Dialogue) -> bool:
        """A dialogue to its end, from where the journal stops; whether anything was asked for it."""
        asked, row, stage = False, dialogue.env.row, None
        if isinstance(row, LiveRow) and self._worlds is not None:
            stage = Stage(row, self._worlds, self._kinds[row.world])
        try:
            while dialogue.ended is None:
                if dialogue.doing is not None and stage is not None:
                    await self._carry_out(dialogue, stage, dialogue.doing)
                    continue
                key = dialogue.key()
                answer = journal.answer(self._journal, key)
                if answer is None or answer.status in ASKED_AGAIN:
                    asked, answer = True, await self._ask(dialogue, key)
                dialogue.reply(answer)
        finally:
            if stage is not None:
                await stage.close()
        return asked

    async def _carry_out(self, dialogue: Dialogue, stage: Stage, doing: CarryingOut) -> None:
        """The calls that wait: as the journal has it, or in the world."""
        known = journal.results(self._journal, dialogue)
        if known is not None:
            stage.remember(known)
            dialogue.done(known)
            return
        steps = await stage.carry_out(doing)
        made = journal.Results(
            id=dialogue.env.row.id, repeat=dialogue.repeat, number=dialogue.number, results=steps
        )
        await journal.keep(self._journal, dialogue.key(), made)
        dialogue.done(steps)

    async def _ask(self, dialogue: Dialogue, key: str) -> Answer:
        """The answer to the next request, which is on disk under `key` then: asked, or shared with an equal
        request."""
        ask, base = dialogue.ask(), dialogue.base()
        assert ask is not None
        sharing = self._sharing
        digest = sharing.digest(dialogue, ask)
        # Whoever asks the same waits here.
        async with sharing.alone(digest), self._unwritten:
            answer = sharing.answer(digest, base) or await self._speaker.reply(dialogue, ask, base)
            answer = msgspec.structs.replace(dialogue.noted(answer), request=digest)
            await journal.keep(self._journal, key, answer)
            sharing.keep(digest, key, answer)
        if answer.shared:
            self._state.shared += 1
            return answer
        self._state.asked += 1
        self.served_models |= {answer.served_model} if answer.served_model else set()
        self._watch.see(dialogue, ask, answer)
        return answer


def digest(dialogue: Dialogue, ask: wire.Ask) -> str:
    """Of all that an answer to a request depends on in a run."""
    names = [tool.name for tool in dialogue.env.tools]  # calls are led back to them
    body = dumps((ask.messages, ask.tools, names, dialogue.repeat, ask.draw))
    return hashlib.sha256(body.encode("utf-8", "surrogatepass")).hexdigest()[:32]


class Sharing:
    """Answers by what was asked: at temperature 0 an equal request is not sent again, also while the first is
    under way. Each repeat, and each sample of a vote, is asked for itself."""

    def __init__(self, store: Store, stats: Stats | None = None) -> None:
        """`stats`: of the client, which may find that the endpoint takes no temperature; None: nothing is
        shared."""
        self._journal, self._stats = store, stats
        self._under_way: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._keys: dict[str, str] = {}
        if stats is not None:
            for key, line in read_lines(store.path):
                if line.get("request") and line.get("status") not in ASKED_AGAIN:
                    self._keys.setdefault(line["request"], key)

    def digest(self, dialogue: Dialogue, ask: wire.Ask) -> str | None:
        """Of the request; None where equal ones may have different answers."""
        shares = self._stats is not None and "temperature" not in self._stats.left_out
        return digest(dialogue, ask) if shares else None

    def alone(self, digest: str | None) -> AbstractAsyncContextManager[None]:
        """Held by whoever asks this, until its answer is on disk."""
        return nullcontext() if digest is None else self._under_way[digest]

    def keep(self, digest: str | None, key: str, answer: Answer) -> None:
        """Remembers where the journal has the answer to a request."""
        if digest is not None and answer.status not in ASKED_AGAIN:
            self._keys[digest] = key

    def answer(self, digest: str | None, base: Answer) -> Answer | None:
        """The answer that an equal request had, for that of `base`; it costs nothing."""
        found = journal.answer(self._journal, self._keys.get(digest or "", ""))
        if found is None:
            return None
        return msgspec.structs.replace(
            found,
            id=base.id,
            repeat=base.repeat,
            number=base.number,
            further=base.further,
            has_call=None,
            retries=0,
            reused=False,
            shared=True,
        )


SILENT = 20
"""So many replies without a call, and none with one, stop a session."""

_WHY_SILENT = {
    "fc": "is a tool parser missing on the server (vLLM: --enable-auto-tool-choice --tool-call-parser …), or "
    "is it a prompt-mode model (--mode prompt)?",
    "prompt": "is the model one that calls natively (--mode fc)?",
}

_EXPECTED = {
    "callable": "a Reply, a text, a list of calls, or a dict with text and calls",
    "command": "a text, or JSON with text and calls, on standard output",
}

Asked = Literal["own agent", "model"]
"""Whose first replies are looked at."""


class Watch:
    """Stops a session that makes no sense, whose rows would only be recorded as failures one by one: its
    endpoint has gone, or takes no tools at all.

    The first replies are looked at until one shows that the run works. An own agent is tried on one row
    before the others are asked. A model is stopped after `SILENT` replies without a call to rows whose gold
    is a call: the server has no tool parser, or the model calls otherwise.
    """

    def __init__(self, workers: int, asked: Asked | None = None, *, worked: bool = False) -> None:
        """`asked`: None where no first replies are looked at, as where a run has `worked` before."""
        self._give_up_after = max(20, 2 * workers)
        self._failures_in_a_row = self._refused_outright = self._silent = 0
        self._asked, self._works = asked, asked is None or worked

    @property
    def one_alone(self) -> bool:
        """Whether a row is to be tried before the others are asked."""
        return self._asked == "own agent" and not self._works

    def see(self, dialogue: Dialogue, ask: wire.Ask, made: Answer) -> None:
        """Looks at what came back to the dialogue's next request. Raises UserError where there is no sense in
        going on."""
        if made.status == "ok":
            self._refused_outright = -1
        elif (
            made.status in ("rejected", "agent_error")
            and self._refused_outright >= 0
            and not wire.has_duplicates(ask)
        ):
            self._refused_outright += 1
            if self._refused_outright >= REFUSALS and (made.error or "").startswith("agent:"):
                raise UserError(
                    f"the agent has failed on every row ({made.error}): try it on one request; answers "
                    "are kept, --fresh starts over"
                )
            if self._refused_outright >= REFUSALS:
                raise UserError(
                    f"the endpoint refuses every registry ({made.error}): if it takes no tools, ask with "
                    "--mode prompt; if it was started wrongly, fix that and start over with --fresh"
                )
        # Where a filter answers, somebody is there.
        gone = made.status == "request_error" and made.finish_reason != "content_filter"
        self._failures_in_a_row = self._failures_in_a_row + 1 if gone else 0
        if self._failures_in_a_row >= self._give_up_after:
            raise UserError(
                f"the endpoint stopped answering ({self._failures_in_a_row} failures in a row, the last: "
                f"{made.error}): answers are kept; run the same command again to resume"
            )
        self._works = self._works or _shows(self._asked, made, dialogue.calls(made))
        if not self._works and isinstance(row := dialogue.env.row, Sample):
            self._see_first(dialogue.settings, row, made)

    def _see_first(self, settings: Settings, row: Sample, made: Answer) -> None:
        if made.status == "agent_error":
            said = (made.error or "").removeprefix("agent: ")
            expected = _EXPECTED[settings.backend]
            raise UserError(f"the agent failed on its first row, {row.id}: {said}; expected: {expected}")
        if self._asked == "model" and made.status == "ok" and not made.further and all(row.golden_answers):
            self._silent += 1
        if self._silent >= SILENT:
            why = _WHY_SILENT[settings.mode]
            raise UserError(f"{SILENT} of {SILENT} replies hold no call: {why} --no-early-stop continues")


def has_worked(asked: Asked, settings: Settings, store: Store, rows: Mapping[str, Sample | LiveRow]) -> bool:
    """Whether a journal has an answer to these rows that shows that the run works."""
    lines = (line for _, line in read_lines(store.path) if "status" in line)
    there = (journal.as_answer(store.path, line) for line in lines)
    pairs = ((one, row) for one in there if isinstance(row := rows.get(one.id), Sample))
    return any(_shows(asked, one, parsed(row, settings, one).calls) for one, row in pairs)


def _shows(asked: Asked | None, made: Answer, calls: Sequence[Call]) -> bool:
    return made.status == "ok" and bool(asked == "own agent" or made.tool_calls or calls)
