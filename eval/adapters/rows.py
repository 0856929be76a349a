"""Rows of a dataset under other harnesses: requests, what calls do and the score are those of `rbtc eval`.

rows = Rows("robustbench-tc")                          # or a live dataset
playing = rows.begin(row_id, model)
while (ask := playing.dialogue.ask()) is not None:
    await playing.reply(answer to ask)
score = await playing.score()
"""

from collections.abc import Mapping

import msgspec

from robustbench_tc.errors import UserError
from robustbench_tc.eval import inputs, predictions, prompts
from robustbench_tc.eval.dialogue import Dialogue, Speaker, begin
from robustbench_tc.eval.inputs import Names, names_of, selection_of
from robustbench_tc.eval.live import prompts as live_prompts
from robustbench_tc.eval.live.inputs import LiveData, world_types
from robustbench_tc.eval.live.score import score_episodes
from robustbench_tc.eval.live.stage import Stage
from robustbench_tc.eval.live.world_env import World
from robustbench_tc.eval.record import Answer, Settings, mode_of
from robustbench_tc.eval.score import judge
from robustbench_tc.eval.scripted import Results, Scripted
from robustbench_tc.eval.speakers import ReferenceAgent, ScriptedAgent
from robustbench_tc.schema import Json, LiveRow, Prediction, Sample
from robustbench_tc.worlds.host import Worlds

from .foreign import Origin


class Score(msgspec.Struct, frozen=True, kw_only=True):
    """What a row came to."""

    reward: float
    """1 where it is right, else 0."""
    metrics: dict[str, float] = {}
    record: Json = None
    """All that our scorer says: a `LiveScore`, or a `Verdict`."""
    met: bool = True
    """Of a live row: it met its fault, or has none."""
    prediction: Prediction | None = None
    """Of a static row: what was judged."""


class Rows:
    """Rows of a dataset, chosen and asked as `rbtc eval` does."""

    def __init__(
        self,
        dataset: str,
        *,
        revision: str | None = None,
        types: Names = (),
        sources: Names = (),
        ids: Names = (),
        limit: int | None = None,
        samples: int | None = None,
        mode: str = "fc",
        worlds: Names = (),
        world_python: str | None = None,
    ) -> None:
        """Raises UserError as `rbtc eval` does: for a folder that is no dataset, an unknown name, no row."""
        self.data = inputs.load(dataset, revision=revision)
        self.live = isinstance(self.data, LiveData)
        chosen = selection_of(types, sources, names_of(ids), limit, samples, live=self.live)
        self.rows: dict[str, Sample | LiveRow] = {row.id: row for row in self.data.select(chosen)}
        self.settings = Settings(
            fingerprint=self.data.fingerprint(),
            model="",
            mode=mode_of(mode),
            backend="import",
            decoding={},
            prompt_version=live_prompts.version() if self.live else prompts.prompt_version(),
            selection=chosen,
            repeat=1,
        )
        self.worlds = Worlds()
        self.oracle: Speaker
        self.results: Mapping[str, Results] = {}
        if isinstance(self.data, LiveData):
            self.world_types = world_types(self.data.rows, names_of(worlds), world_python)
            self.oracle = ScriptedAgent("oracle", self.data.clean())
        else:
            self.anchors, self.results = self.data.anchors(), self.data.results
            self.oracle = ReferenceAgent("oracle", self.anchors)

    @property
    def origin(self) -> Origin:
        """For the log."""
        return Origin(
            dataset=self.data.name,
            dataset_version=self.data.version,
            dataset_revision=self.data.revision,
            fingerprint=self.settings.fingerprint,
            mode=self.settings.mode,
            prompt_version=self.settings.prompt_version,
            selection=self.settings.selection,
        )

    def identity(self, row: Sample | LiveRow) -> dict[str, Json]:
        """The row's columns of a prediction in the words of a log, where `clean_id` and `type` are the pair
        key; a live row pairs by its id."""
        if isinstance(row, LiveRow):
            return {"task": row.clean_id, "kind": row.type_code}
        return {
            "clean_id": row.clean_id,
            "type": row.type_code,
            "component": row.component,
            "source": row.source,
            "category": row.category,
            "sample_hash": self.data.hashes[row.id],
        }

    def begin(self, row_id: str, model: str = "", repeat: int = 0, *, faults: bool = True) -> "Playing":
        """A row before its first request; a live one also without its fault. Raises UserError for a row that
        was not chosen."""
        row = self.rows.get(row_id)
        if row is None:
            raise UserError(f"{row_id!r} is not among the rows of {self.data.name} that were chosen")
        if isinstance(row, LiveRow) and not faults:
            row = msgspec.structs.replace(row, fault=None, label=None, position=None)
        settings = msgspec.structs.replace(self.settings, model=model)
        return Playing(self, begin(row, settings, repeat, self.results.get(row.clean_id, {})))

    async def gold(self, row_id: str) -> Score:
        """The score of gold itself: 1 for every row, or the dataset is damaged."""
        playing = self.begin(row_id, faults=False)
        dialogue = playing.dialogue
        while (ask := dialogue.ask()) is not None:
            await playing.reply(await self.oracle.reply(dialogue, ask, dialogue.base()))
        return await playing.score()

    def judged(self, dialogue: Dialogue) -> Score:
        """The score of a static row as far as it was answered."""
        env = dialogue.env
        assert isinstance(env, Scripted)
        if not env.answers:
            return Score(reward=0.0)
        sample_hash = self.data.hashes[env.row.id]
        found = predictions.combine(
            env.row, sample_hash, dialogue.settings, *env.answers, noticed=env.noticed
        )
        verdict = judge(found, env.row, self.anchors[env.row.id])
        return Score(
            reward=float(verdict.correct),
            metrics={"requests": float(len(env.answers))},
            record=msgspec.to_builtins(verdict),
            prediction=found,
        )


class Playing:
    """A row with one model, in its world where it has one."""

    def __init__(self, rows: Rows, dialogue: Dialogue) -> None:
        self._rows, self.dialogue = rows, dialogue
        row = dialogue.env.row
        self._stage: Stage | None = None
        if isinstance(row, LiveRow):
            self._stage = Stage(row, rows.worlds, rows.world_types[row.world])

    async def reply(self, answer: Answer) -> None:
        """Takes the answer to the next request; its calls are carried out."""
        if self._stage is None:
            self.dialogue.reply(self.dialogue.noted(answer))
        else:
            await self._stage.reply(self.dialogue, answer)

    async def score(self) -> Score:
        """Ends it; what a limit of the harness cuts off is scored as it stands."""
        await self.close()
        env = self.dialogue.env
        if not isinstance(env, World):
            return self._rows.judged(self.dialogue)
        [found] = await score_episodes(
            [env.episode(self.dialogue.repeat)],
            {env.row.id: env.row},
            self._rows.worlds,
            world_of=self._rows.world_types.__getitem__,
        )
        plain = msgspec.to_builtins(found)
        metrics = {name: float(value) for name, value in plain.items() if isinstance(value, bool | int)}
        del metrics["repeat"]
        return Score(reward=float(found.success is True), metrics=metrics, record=plain, met=found.counts)

    async def close(self) -> None:
        """Gives the world back."""
        if self._stage is not None:
            await self._stage.close()
