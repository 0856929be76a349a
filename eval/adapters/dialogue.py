"""A row under another harness: the next request out, the reply in, our score at the end.

    rows = LiveRows("robustbench-tc-live")   # live_rows; or static_rows.StaticRows("robustbench-tc")
    dialogue = rows.begin(row_id, model)
    while (ask := dialogue.ask()) is not None:
        await dialogue.reply(answer to ask)
    score = await dialogue.score()

Whoever asks the model, requests, what calls do and the score are those of `rbtc live run` and `rbtc eval`.
"""

from collections.abc import Mapping
from typing import Protocol

import msgspec

from robustbench_tc.llm.messages import completion
from robustbench_tc.schema import Json, Tool

from .. import wire
from ..record import Answer


class Score(msgspec.Struct, frozen=True, kw_only=True):
    """What a row came to."""

    reward: float
    """1 where it is right, else 0."""
    metrics: dict[str, float]
    record: Json
    """All that our scorer says: a `LiveScore`, or a `Verdict`."""


class Dialogue(Protocol):
    """One row with one model."""

    tools: tuple[Tool, ...]
    """Names in native calls are led back to theirs (`wire.names_back`)."""

    def ask(self) -> wire.Ask | None:
        """The next request; None once it has ended."""
        ...

    async def reply(self, answer: Answer) -> None:
        """Takes the answer to that request."""
        ...

    async def score(self) -> Score:
        """Ends it. A dialogue that a limit of the harness cuts off is scored as it stands."""
        ...

    async def close(self) -> None:
        """Gives everything back; `score` does that too."""
        ...

    def base(self) -> Answer:
        """The answer to the next request, without what was said."""
        ...


class Rows(Protocol):
    """Rows of a dataset, chosen as our commands choose them."""

    def close(self) -> None:
        """Ends the worlds."""
        ...

    def rows(self) -> list[dict[str, Json]]:
        """For each row: id, clean_id, type, and the first request's messages."""
        ...

    def begin(self, row_id: str, model: str = "", repeat: int = 0) -> Dialogue:
        """Raises UserError for a row that was not chosen."""
        ...

    async def gold(self, row_id: str) -> Score:
        """The score of gold itself: 1 for every row, or the dataset is damaged."""
        ...


def answer_of(dialogue: Dialogue, reply: Mapping[str, Json]) -> Answer:
    """The answer in a chat-completions reply. Raises LLMError for one that is none."""
    done = completion(reply)
    return msgspec.structs.replace(
        dialogue.base(),
        text=done.text,
        tool_calls=wire.names_back(dialogue.tools, done.tool_calls),
        finish_reason=done.finish_reason,
        prompt_tokens=done.prompt_tokens,
        completion_tokens=done.completion_tokens,
        reasoning=done.reasoning,
    )


def about(row_id: str, clean_id: str, code: str, ask: wire.Ask) -> dict[str, Json]:
    return {"id": row_id, "clean_id": clean_id, "type": code, "messages": ask.messages}
