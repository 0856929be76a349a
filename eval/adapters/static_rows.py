"""Rows of the benchmark under other harnesses: `dialogue` over the requests and the scorer of `rbtc eval`."""

import msgspec

from robustbench_tc.errors import unknown
from robustbench_tc.schema import Json, Sample

from .. import agent_server, passes, wire
from ..agents import AgentContext
from ..record import Answer, Settings
from ..run import with_call_noted
from .bench import Bench
from .dialogue import Score, about, answer_of


class StaticRows:
    """Rows of the benchmark."""

    def __init__(self, dataset: str = "robustbench-tc", **chosen: Json) -> None:
        """`chosen`: as `Bench`. Raises UserError."""
        try:
            self.bench = Bench(dataset, **chosen)
        except TypeError:
            known = ("types", "sources", "samples", "mode", "revision")
            raise unknown("setting", next(name for name in chosen if name not in known), known) from None

    def close(self) -> None:
        pass

    def rows(self) -> list[dict[str, Json]]:
        return [
            about(row.id, row.clean_id, row.type_code, wire.first(row, self.bench.mode))
            for row in self.bench.rows
        ]

    def begin(self, row_id: str, model: str = "", repeat: int = 0) -> "RowDialogue":
        return RowDialogue(self.bench, self.bench.row(row_id), self.bench.settings(model), repeat)

    async def gold(self, row_id: str) -> Score:
        dialogue = self.begin(row_id)
        row, anchor = dialogue.row, self.bench.anchor(row_id)
        while dialogue.ask() is not None:
            seen = dialogue.base().number - 1
            scene = AgentContext(row, anchor, seen > 0, seen)
            said = agent_server.reply("oracle", (self.bench.mode, scene), "")
            await dialogue.reply(answer_of(dialogue, said))
        return await dialogue.score()


class RowDialogue:
    """A row of the benchmark: one request, or more where an injected error answers a call."""

    def __init__(self, bench: Bench, row: Sample, settings: Settings, repeat: int) -> None:
        self.row, self.tools = row, row.tools
        self._bench, self._settings, self._repeat = bench, settings, repeat
        self._answers: list[Answer] = []

    def ask(self) -> wire.Ask | None:
        if self._answers and not passes.goes_on(self.row, self._settings, self._answers):
            return None
        return self._bench.following(self.row, self._settings, self._answers)

    def base(self) -> Answer:
        return Answer(id=self.row.id, repeat=self._repeat, number=len(self._answers) + 1, status="ok")

    async def reply(self, answer: Answer) -> None:
        self._answers.append(with_call_noted(self.row, self._settings, answer))

    async def score(self) -> Score:
        if not self._answers:
            return Score(reward=0.0, metrics={}, record=None)
        found = self._bench.verdict(self._bench.prediction(self.row, self._settings, self._answers))
        return Score(
            reward=float(found.correct),
            metrics={"requests": float(len(self._answers))},
            record=msgspec.to_builtins(found),
        )

    async def close(self) -> None:
        pass
