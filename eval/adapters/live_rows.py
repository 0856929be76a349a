"""Rows of a live dataset under other harnesses: `dialogue` over the conversation, the world and the scorer of
`rbtc live run`."""

import msgspec

from robustbench_tc import taxonomy
from robustbench_tc.errors import UserError
from robustbench_tc.schema import Episode, Json, LiveRow
from robustbench_tc.worlds.handle import WorldType
from robustbench_tc.worlds.host import Worlds

from .. import wire
from ..defend.base import Request
from ..inputs import Names, Selection, names_of
from ..live import inputs, prompts
from ..live.carrying_out import carried_out
from ..live.episode import Place, Stage, bounded
from ..live.score import LiveScore, score_episodes
from ..live.speakers import ScriptedSpeaker
from ..record import Answer, Settings, mode_of
from .dialogue import Score, about


class LiveRows:
    """Rows of a live dataset."""

    def __init__(
        self,
        dataset: str = "robustbench-tc-live",
        *,
        types: Names = (),
        ids: Names = (),
        limit: int | None = None,
        mode: str = "fc",
        worlds: Names = (),
        world_python: str | None = None,
        revision: str | None = None,
    ) -> None:
        """Raises UserError as `rbtc live run` does."""
        data = inputs.load(dataset, revision=revision)
        selection = Selection(
            types=inputs.codes(taxonomy.split(types)), ids=tuple(dict.fromkeys(names_of(ids))), limit=limit
        )
        self._rows = {row.id: row for row in inputs.select(data, selection)}
        self._clean = data.clean()
        self._types = inputs.world_types(self._rows.values(), names_of(worlds), world_python)
        self._worlds = Worlds()
        self.mode = mode_of(mode)
        self._settings = Settings(
            fingerprint=data.fingerprint(),
            model="",
            mode=self.mode,
            backend="import",
            decoding={},
            prompt_version=prompts.version(),
            selection=selection,
            repeat=1,
        )

    def close(self) -> None:
        """Ends the worlds."""
        self._worlds.close()

    def rows(self) -> list[dict[str, Json]]:
        found = []
        for row in self._rows.values():
            opening = Place.of(row, self._settings, 0).conversation().request()
            found.append(about(row.id, row.clean_id, row.type_code, opening))
        return found

    def row(self, row_id: str) -> LiveRow:
        """The row of that id. Raises UserError."""
        if row_id not in self._rows:
            raise UserError(f"{row_id!r} is not among the rows that were chosen")
        return self._rows[row_id]

    def begin(self, row_id: str, model: str = "", repeat: int = 0) -> "LiveDialogue":
        row = self.row(row_id)
        settings = msgspec.structs.replace(self._settings, model=model)
        return LiveDialogue(Place.of(row, settings, repeat), self._worlds, self._types[row.world])

    async def gold(self, row_id: str) -> Score:
        row = msgspec.structs.replace(self.row(row_id), fault=None, label=None, position=None)
        place = Place.of(row, self._settings, 0)
        dialogue = LiveDialogue(place, self._worlds, self._types[row.world])
        oracle = ScriptedSpeaker("oracle", self._clean)
        while dialogue.ask() is not None:
            request = Request(dialogue.so_far.scene().shown, ())
            await dialogue.reply(await oracle.reply(dialogue.so_far, dialogue.base(), request))
        return await dialogue.score()


class LiveDialogue:
    """An episode in its world."""

    def __init__(self, place: Place, worlds: Worlds, world: WorldType) -> None:
        self._place, self._worlds, self._world = place, worlds, world
        self.so_far = place.conversation()
        self.tools = tuple(tool.plain for tool in place.row.tools)
        self._stage = Stage(place.row, worlds, world)
        self._error: str | None = None

    def ask(self) -> wire.Ask | None:
        return None if self.so_far.ended is not None else self.so_far.request()

    def base(self) -> Answer:
        number = len(self.so_far.replies) + 1
        return Answer(id=self._place.row.id, repeat=self._place.repeat, number=number, status="ok")

    async def reply(self, answer: Answer) -> None:
        answer = bounded(answer)
        if answer.status != "ok":
            self.so_far.ended = answer.status
            self._error = answer.error
            return
        wanted = self.so_far.read(answer)
        self.so_far.add(
            answer, await self._stage.carry_out(carried_out(self.so_far, wanted)) if wanted else ()
        )

    def episode(self) -> Episode:
        """The episode, as the run's parquet has it."""
        if self.so_far.ended is None:
            self.so_far.ended = "too_many_steps"
        return self._place.episode(self.so_far, self._error)

    async def scored(self) -> LiveScore:
        """Our scorer's, as `rbtc live score` makes it, but for what it cost beyond the clean twin."""
        await self.close()
        row = self._place.row
        [found] = await score_episodes(
            [self.episode()], {row.id: row}, self._worlds, world_of=lambda name: self._world
        )
        return found

    async def score(self) -> Score:
        found = await self.scored()
        plain = msgspec.to_builtins(found)
        counted = {name: float(value) for name, value in plain.items() if isinstance(value, bool | int)}
        counted.pop("repeat", None)
        return Score(reward=float(found.success is True), metrics=counted, record=plain)

    async def close(self) -> None:
        await self._stage.close()
