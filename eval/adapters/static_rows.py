"""Rows of the benchmark under other harnesses: `dialogue` over the requests and the scorer of `rbtc eval`."""

import msgspec

from robustbench_tc.errors import unknown
from robustbench_tc.schema import Json

from .. import wire
from ..dialogue import Dialogue
from ..record import Answer
from ..scripted import Scripted
from ..speakers import ReferenceAgent
from .bench import Bench
from .dialogue import Score, about


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
        return RowDialogue(self.bench, self.bench.begin(row_id, model, repeat))

    async def gold(self, row_id: str) -> Score:
        dialogue = self.begin(row_id)
        oracle = ReferenceAgent("oracle", {row_id: self.bench.anchor(row_id)})
        while (ask := dialogue.ask()) is not None:
            await dialogue.reply(await oracle.reply(dialogue.engine, ask, dialogue.base()))
        return await dialogue.score()


class RowDialogue:
    """A row of the benchmark: one request, or more where an injected error answers a call."""

    def __init__(self, bench: Bench, engine: Dialogue) -> None:
        self._bench, self.engine = bench, engine
        self.tools = engine.env.tools

    def ask(self) -> wire.Ask | None:
        return self.engine.ask()

    def base(self) -> Answer:
        return self.engine.base()

    async def reply(self, answer: Answer) -> None:
        self.engine.reply(self.engine.noted(answer))

    async def score(self) -> Score:
        env = self.engine.env
        assert isinstance(env, Scripted)
        if not env.answers:
            return Score(reward=0.0, metrics={}, record=None)
        found = self._bench.verdict(self._bench.prediction(self.engine))
        return Score(
            reward=float(found.correct),
            metrics={"requests": float(len(env.answers))},
            record=msgspec.to_builtins(found),
        )

    async def close(self) -> None:
        pass
