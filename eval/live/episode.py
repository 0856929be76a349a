"""One live episode: an agent's replies are carried out in a world, turn by turn, and everything is journaled.

Two kinds of records, each on disk before it counts: an answer before its calls are carried out, their results
before the next request. After a kill the episode goes on from its journal: no journaled answer is asked for
again, and journaled calls are repeated in a fresh world only if the episode goes on.
"""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple, Protocol, TypeVar

import msgspec

from robustbench_tc.errors import UserError
from robustbench_tc.llm import Store
from robustbench_tc.schema import ASKED_AGAIN, Episode, Json, LiveRow, Step, row_hash
from robustbench_tc.worlds.faults import FaultedWorld
from robustbench_tc.worlds.handle import Snapshot, Start, WorldType
from robustbench_tc.worlds.host import Worlds

from ..defend import chain
from ..defend.base import Request, Said
from ..record import Answer, Settings
from ..run import keep
from . import prompts
from .carrying_out import CarryingOut, carried_out
from .conversation import MAX_ARGUMENTS, MAX_TEXT, REFUSALS, Conversation, Wanted, answered, encodable
from .journaled import Journaled

MAX_NAME = 256
"""Characters that are kept of the name and the id of a call."""


class Speaker(Protocol):
    """Whoever acts in an episode: a model, a scripted agent, a person."""

    async def reply(self, so_far: Conversation, base: Answer, request: Request) -> Answer:
        """The next answer: `base` with what was said, or with a status other than ok. `request`: which of
        several that defences make at this moment."""
        ...


class Journal(Protocol):
    """What was written down of a run, by key: a `Store`, or lines that were read into memory."""

    def get(self, key: str) -> dict[str, Json] | None:
        """The record under `key`, or None."""
        ...


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """What came of the calls of one answer: a line of the journal."""

    id: str
    repeat: int
    number: int
    """Of the answer, from 1."""
    results: tuple[Step, ...]


class Replied(NamedTuple):
    """A reply with what it took."""

    answer: Answer
    requests: int


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

    def key(self, number: int, further: int = 0) -> str:
        """Of the episode's n-th answer, and of the further ones that defences asked for; its results are
        under the key of the first with `:results`."""
        return self.settings.key(self.hash, self.repeat, number, prompts.version(), further)

    def conversation(self) -> Conversation:
        return Conversation(self.row, self.settings.mode, self.settings.model, self.settings.defend)

    def answer(self, journal: Journal, number: int, further: int = 0) -> Answer | None:
        """The journaled answer."""
        found = journal.get(self.key(number, further))
        return None if found is None else self._read(found, Answer, number)

    def reply(self, journal: Journal, so_far: Conversation) -> "Replied | None":
        """The next reply as far as the journal has all its answers."""
        number, used = len(so_far.replies) + 1, list[Answer]()

        def kept(further: int) -> Answer | None:
            if (found := self.answer(journal, number, further)) is not None:
                used.append(found)
            return found

        said = chain.replay(so_far.chain, so_far.scene(), kept, repeat=self.repeat)
        return None if said is None else Replied(_own(said, number), len(used))

    def results(
        self, journal: Journal, so_far: Conversation, wanted: Sequence[Wanted]
    ) -> tuple[Step, ...] | None:
        """What the calls of the next reply led to; None where the journal ends before.

        Raises UserError where the journal has results of other calls than the answer and the defences made.
        """
        number = len(so_far.replies) + 1
        found = journal.get(f"{self.key(number)}:results")
        if found is None:
            return None
        steps = self._read(found, Results, number).results
        doing, at = carried_out(so_far, wanted), 0
        try:
            what = next(doing)
            while at < len(steps) and _calls(what.step) == _calls(steps[at]):
                at += 1
                what = doing.send(msgspec.structs.replace(steps[at - 1], told=None))
        except StopIteration as end:
            if end.value == steps:
                return steps
        raise self._unreadable(number, "its results are not those of the answer's calls")

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

    def episode(self, so_far: Conversation, error: str | None) -> Episode:
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
            error=error,
        )


def kept(place: Place, journal: Journal) -> Episode | None:
    """An episode as far as the journal has it to its end; None where it is not finished. No world runs."""
    so_far, error = place.conversation(), None
    while so_far.ended is None:
        found = place.reply(journal, so_far)
        if found is None:
            return None
        answer = found.answer
        if answer.status != "ok":
            so_far.ended = answer.status
            error = answer.error
            break
        wanted = so_far.read(answer)
        steps = place.results(journal, so_far, wanted) if wanted else ()
        if steps is None:
            return None
        so_far.add(answer, steps, found.requests)
    return place.episode(so_far, error)


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
            found, new = await _replied(place, journal, speaker, so_far, asking)
            answer, asked = found.answer, asked or new
            if answer.status != "ok":
                so_far.ended = answer.status
                error = answer.error
                break
            steps: tuple[Step, ...] = ()
            if wanted := so_far.read(answer):
                known = place.results(journal, so_far, wanted)
                if known is not None:
                    stage.remember(known)
                    steps = known
                else:
                    steps = await stage.carry_out(carried_out(so_far, wanted))
                    made = Results(id=place.row.id, repeat=place.repeat, number=number, results=steps)
                    await keep(journal, f"{place.key(number)}:results", msgspec.to_builtins(made))
            so_far.add(answer, steps, found.requests)
    finally:
        await stage.close()
    return place.episode(so_far, error), asked


async def _replied(
    place: Place, journal: Store, speaker: Speaker, so_far: Conversation, asking: asyncio.Semaphore
) -> tuple[Replied, bool]:
    """The next reply with every request that it takes, and whether one was asked now."""
    number, used, new = len(so_far.replies) + 1, list[Answer](), False
    scene = so_far.scene()
    steps = chain.reply(so_far.chain, scene)
    try:
        request = next(steps)
        while True:
            further = len(used)
            answer = place.answer(journal, number, further)
            if answer is None or answer.status in ASKED_AGAIN:
                new, key = True, place.key(number, further)
                base = Answer(
                    id=place.row.id, repeat=place.repeat, number=number, further=further, status="ok"
                )
                async with asking:
                    answer = bounded(await speaker.reply(so_far, base, request))
                    await keep(journal, key, msgspec.to_builtins(answer))
            used.append(answer)
            request = steps.send(answer)
    except StopIteration as end:
        said: Said = end.value
    if so_far.chain:
        said = chain.finished(said, scene, used, repeat=place.repeat, number=number)
    return Replied(_own(said, number), len(used)), new


def _own(said: Said, number: int) -> Answer:
    """The reply that counts in the model's own words, with the tokens and the time of all its requests."""
    own = said
    while own.inner is not None:
        own = own.inner
    return msgspec.structs.replace(
        own.answer,
        number=number,
        prompt_tokens=said.answer.prompt_tokens,
        completion_tokens=said.answer.completion_tokens,
        latency_s=said.answer.latency_s,
    )


def _calls(step: Step) -> bytes:
    """The call, and what it was refused with: a call that was not refused has to be made again."""
    refusal = step.text if step.text in REFUSALS and not step.executed and not step.met else None
    return msgspec.json.encode((step.name, step.arguments, step.tool, step.defence, refusal))


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
        self._before: list[Step] = []
        self._world: FaultedWorld | None = None
        self._handle: Journaled | None = None

    def remember(self, steps: Sequence[Step]) -> None:
        """Calls that were carried out by an earlier session."""
        self._before += steps

    async def carry_out(self, doing: CarryingOut) -> tuple[Step, ...]:
        """The calls of one reply, one after the other."""
        world = await self._opened()
        try:
            what = next(doing)
            while True:
                what = doing.send(await answered(world, what.step))
        except StopIteration as end:
            return tuple(end.value)

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
            for number, known in enumerate(self._before, 1):
                self._handle.step = known
                found = await answered(self._world, known)
                self._handle.step = None
                if msgspec.json.encode(found) != msgspec.json.encode(known):
                    raise UserError(
                        f"{self._row.id}: call {number} ({known.name}) is answered otherwise than in the "
                        "journal: the world has changed since; begin again with --fresh"
                    )
            self._before.clear()
        return self._world
