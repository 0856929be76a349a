"""Rows of a live dataset under other harnesses: `dialogue` over the conversation, the world and the scorer of
`rbtc eval`."""

import msgspec

from robustbench_tc import taxonomy
from robustbench_tc.errors import UserError
from robustbench_tc.schema import Json, LiveRow
from robustbench_tc.worlds.handle import WorldType
from robustbench_tc.worlds.host import Worlds

from .. import wire
from ..dialogue import Dialogue
from ..inputs import Names, Selection, names_of
from ..live import inputs, prompts
from ..live.episodes import begin
from ..live.score import LiveScore, score_episodes
from ..live.stage import Stage
from ..live.world_env import World
from ..record import Answer, Settings, mode_of
from ..speakers import ScriptedAgent
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
        """Raises UserError as `rbtc eval` does."""
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
            opening = begin(row, self._settings).ask()
            assert opening is not None
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
        return LiveDialogue(begin(row, settings, repeat), self._worlds, self._types[row.world])

    async def gold(self, row_id: str) -> Score:
        row = msgspec.structs.replace(self.row(row_id), fault=None, label=None, position=None)
        dialogue = LiveDialogue(begin(row, self._settings), self._worlds, self._types[row.world])
        oracle = ScriptedAgent("oracle", self._clean)
        while (ask := dialogue.ask()) is not None:
            await dialogue.reply(await oracle.reply(dialogue.engine, ask, dialogue.base()))
        return await dialogue.score()


class LiveDialogue:
    """An episode in its world."""

    def __init__(self, engine: Dialogue, worlds: Worlds, world: WorldType) -> None:
        assert isinstance(engine.env, World)
        self.engine, self.so_far = engine, engine.env
        self._worlds, self._world = worlds, world
        self.tools = self.so_far.tools
        self._stage = Stage(self.so_far.row, worlds, world)

    def ask(self) -> wire.Ask | None:
        return self.engine.ask()

    def base(self) -> Answer:
        return self.engine.base()

    async def reply(self, answer: Answer) -> None:
        self.engine.reply(self.engine.noted(answer))
        if self.engine.doing is not None:
            self.engine.done(await self._stage.carry_out(self.engine.doing))

    async def scored(self) -> LiveScore:
        """Our scorer's, as `rbtc score` makes it, but for what it cost beyond the clean twin."""
        await self.close()
        row = self.so_far.row
        [found] = await score_episodes(
            [self.so_far.episode(self.engine.repeat)],
            {row.id: row},
            self._worlds,
            world_of=lambda name: self._world,
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
