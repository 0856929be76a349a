"""One live episode: an agent's replies are carried out in a world, turn by turn, and everything is journaled.

Two kinds of records, each on disk before it counts: an answer before its calls are carried out, their results
before the next request. After a kill the episode goes on from its journal: no journaled answer is asked for
again, and journaled calls are repeated in a fresh world only if the episode goes on.
"""

import asyncio
from collections.abc import Sequence
from typing import Protocol, TypeVar

import msgspec

from robustbench_tc.errors import UserError
from robustbench_tc.live import Episode, LiveRow, Step, row_hash
from robustbench_tc.llm import Store
from robustbench_tc.worlds.faults import FaultedWorld
from robustbench_tc.worlds.handle import Snapshot, Start, Worlds, WorldType

from ..record import Answer, Settings
from ..run import keep
from . import prompts
from .conversation import MAX_ARGUMENTS, MAX_TEXT, Conversation, Wanted, answered, encodable
from .journaled import Journaled

MAX_NAME = 256
"""Characters that are kept of the name and the id of a call."""


class Speaker(Protocol):
    """Whoever acts in an episode: a model, a scripted agent, a person."""

    async def reply(self, so_far: Conversation, base: Answer, key: str) -> Answer:
        """The next answer: `base` with what was said, or with a status other than ok."""
        ...


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """What came of the calls of one answer: a line of the journal."""

    id: str
    repeat: int
    number: int
    """Of the answer, from 1."""
    results: tuple[Step, ...]


_Line = TypeVar("_Line", Answer, Results)


class Place(msgspec.Struct, frozen=True):
    """Where the journal has one episode."""

    row: LiveRow
    settings: Settings
    repeat: int
    hash: str

    @classmethod
    def of(cls, row: LiveRow, settings: Settings, repeat: int) -> "Place":
        return cls(row, settings, repeat, row_hash(row))

    def key(self, number: int) -> str:
        """Of the episode's n-th answer; its results are under the same key with `:results`."""
        return self.settings.key(self.hash, self.repeat, number, prompts.version())

    def conversation(self) -> Conversation:
        return Conversation(self.row, self.settings.mode, self.settings.model)

    def answer(self, journal: Store, number: int) -> Answer | None:
        """The journaled answer; a recorded failure to get one is none."""
        found = journal.get(self.key(number))
        return None if found is None else self._read(found, Answer, number)

    def results(self, journal: Store, number: int, wanted: Sequence[Wanted]) -> tuple[Step, ...] | None:
        """What the calls of the n-th answer led to; None where the journal ends before.

        Raises UserError where the journal has results of other calls than the answer made.
        """
        found = journal.get(f"{self.key(number)}:results")
        if found is None:
            return None
        steps = self._read(found, Results, number).results
        made = [msgspec.json.encode((step.name, step.arguments)) for step in steps]
        if made != [msgspec.json.encode((one.name, one.arguments)) for one in wanted]:
            raise self._unreadable(number, "its results are not those of the answer's calls")
        return steps

    def _read(self, found: object, kind: type[_Line], number: int) -> _Line:
        try:
            return msgspec.convert(found, kind)
        except msgspec.ValidationError as error:
            raise self._unreadable(number, str(error)) from None

    def _unreadable(self, number: int, why: str) -> UserError:
        return UserError(
            f"{self.row.id}, repeat {self.repeat}, answer {number}: the journal was changed by hand ({why}); "
            "begin again with --fresh"
        )

    def episode(self, so_far: Conversation, error: str | None, isolation: str) -> Episode:
        """The finished episode."""
        assert so_far.ended is not None
        row, settings = self.row, self.settings
        return Episode(
            id=row.id,
            clean_id=row.clean_id,
            type_code=row.type_code,
            world=row.world,
            model=settings.model,
            mode=settings.mode,
            repeat=self.repeat,
            row_hash=self.hash,
            ended=so_far.ended,
            replies=tuple(so_far.replies),
            isolation=isolation,
            error=error,
        )


def kept(place: Place, journal: Store, isolation: str) -> Episode | None:
    """An episode as far as the journal has it to its end; None where it is not finished. No world runs."""
    so_far, error = place.conversation(), None
    while so_far.ended is None:
        number = len(so_far.replies) + 1
        answer = place.answer(journal, number)
        if answer is None:
            return None
        if answer.status != "ok":
            so_far.fail(answer.status)
            error = answer.error
            break
        wanted = so_far.read(answer)
        steps = place.results(journal, number, wanted) if wanted else ()
        if steps is None:
            return None
        so_far.add(answer, steps)
    return place.episode(so_far, error, isolation)


async def play(
    place: Place,
    journal: Store,
    speaker: Speaker,
    worlds: Worlds,
    world: WorldType,
    asking: asyncio.Semaphore,
) -> tuple[Episode, bool]:
    """Plays an episode to its end, from where its journal stops; and whether anything was asked for it.

    `asking` is held until an answer is on disk: so many requests a kill can cost, and no more. Raises
    UserError where it cannot go on at all.
    """
    so_far, error, asked = place.conversation(), None, False
    stage = Stage(place.row, worlds, world)
    try:
        while so_far.ended is None:
            number = len(so_far.replies) + 1
            answer = place.answer(journal, number)
            if answer is None or answer.status == "request_error":
                asked = True
                base = Answer(id=place.row.id, repeat=place.repeat, number=number, status="ok")
                async with asking:
                    answer = bounded(await speaker.reply(so_far, base, place.key(number)))
                    await keep(journal, place.key(number), msgspec.to_builtins(answer))
            if answer.status != "ok":
                so_far.fail(answer.status)
                error = answer.error
                break
            steps: tuple[Step, ...] = ()
            if wanted := so_far.read(answer):
                known = place.results(journal, number, wanted)
                if known is not None:
                    stage.remember(wanted, known)
                    steps = known
                else:
                    steps = await stage.carry_out(wanted)
                    made = Results(id=place.row.id, repeat=place.repeat, number=number, results=steps)
                    await keep(journal, f"{place.key(number)}:results", msgspec.to_builtins(made))
            so_far.add(answer, steps)
    finally:
        await stage.close()
    return place.episode(so_far, error, worlds.isolation), asked


def bounded(answer: Answer) -> Answer:
    """An answer as it is kept: what is too long is cut, half surrogate pairs are replaced.

    A cut text says so; one call and one character too many stay, so that the agent is answered why.
    """
    most = {"id": MAX_NAME, "name": MAX_NAME, "arguments": MAX_ARGUMENTS + 1}
    calls = [
        {name: encodable(str(call.get(name) or ""))[:size] for name, size in most.items()}
        for call in (answer.tool_calls or ())[: prompts.MAX_CALLS + 1]
    ]
    return msgspec.structs.replace(
        answer,
        text=_cut(answer.text),
        reasoning=_cut(answer.reasoning),
        tool_calls=calls or None,
        logprobs=None,  # nothing here is made of them, and they are longer than all the rest
    )


def _cut(text: str | None) -> str | None:
    if text is not None and len(text) > MAX_TEXT:
        text = f"{text[:MAX_TEXT]}\n[cut by the harness: {len(text)} characters]"
    return None if text is None else encodable(text)


class Stage:
    """The world of one episode: opened with the first call that has to be carried out in it.

    Calls of an earlier session are repeated first, and must be answered as the journal has it.
    """

    def __init__(self, row: LiveRow, worlds: Worlds, world: WorldType) -> None:
        self._row, self._worlds, self._type = row, worlds, world
        self._before: list[tuple[Wanted, Step]] = []
        self._world: FaultedWorld | None = None
        self._handle: Journaled | None = None

    def remember(self, wanted: Sequence[Wanted], steps: Sequence[Step]) -> None:
        """Calls that were carried out by an earlier session."""
        self._before += zip(wanted, steps, strict=True)

    async def carry_out(self, wanted: Sequence[Wanted]) -> tuple[Step, ...]:
        """The calls of one reply, one after the other."""
        world = await self._opened()
        return tuple([await _step(world, one) for one in wanted])

    async def snapshot(self) -> Snapshot:
        """The world's state now; that of a fresh world where nothing was called."""
        return await (await self._opened()).handle.snapshot()

    async def close(self) -> None:
        """Gives the world back."""
        if self._world is not None:
            await self._world.close()

    async def _opened(self) -> FaultedWorld:
        if self._world is None:
            start = msgspec.convert(self._row.initial_state, Start)
            self._handle = Journaled(await self._worlds.open(self._type, start))
            self._world = FaultedWorld(self._handle, self._row.tools, self._row.fault)
            for number, (wanted, known) in enumerate(self._before, 1):
                self._handle.step = known
                found = await _step(self._world, wanted)
                self._handle.step = None
                if msgspec.json.encode(found) != msgspec.json.encode(known):
                    raise UserError(
                        f"{self._row.id}: call {number} ({known.name}) is answered otherwise than in the "
                        "journal: the world has changed since; begin again with --fresh"
                    )
            self._before.clear()
        return self._world


async def _step(world: FaultedWorld, wanted: Wanted) -> Step:
    if wanted.refusal is not None:
        return Step(name=wanted.name, arguments=wanted.arguments, text=wanted.refusal, executed=0)
    return await answered(world, wanted.name, wanted.arguments)
