"""Our rows for a harness that cannot share an environment with us: a process that answers a line with a line.

    python -m robustbench_tc.eval.adapters.serve SETTINGS

SETTINGS are those of `Rows`, as JSON. Requests and answers are JSON, one after the other, over standard input
and output; it ends with its input. What is wrong with a request is the one line under `wrong`.

    {"do": "rows"}                         → rows: [{id, clean_id, type, ask}]
    {"do": "begin", row, model}            → dialogue: n, ask: {messages, tools} or null
    {"do": "reply", dialogue, completion}  → ask: the next, null once it has ended
    {"do": "end", dialogue}                → score: {reward, metrics, record}; it is closed
    {"do": "gold", row}                    → score: that of gold itself

Nothing of what a model said is evaluated.
"""

import asyncio
import os
import sys
from typing import Any, BinaryIO

import msgspec

from robustbench_tc.errors import UserError, unknown
from robustbench_tc.eval.speakers import answer_of
from robustbench_tc.llm import LLMError
from robustbench_tc.llm.messages import completion as read_completion
from robustbench_tc.schema import Json

from .rows import Playing, Rows


class Service:
    """Answers requests; dialogues are numbered from 1."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._playing: dict[int, Playing] = {}
        self._begun = 0
        self._does = {one.__name__: one for one in (self.rows, self.begin, self.reply, self.end, self.gold)}

    async def answer(self, line: bytes) -> bytes:
        """The answer to a request."""
        try:
            given = msgspec.json.decode(line, type=dict[str, Any])
            name = str(given.pop("do"))
            if name not in self._does:
                raise unknown("request", name, self._does)
            return msgspec.json.encode(await self._does[name](**given))
        except (UserError, LLMError) as error:
            wrong = str(error)
        except Exception as error:  # the dialogues of others go on
            wrong = f"not a request: {type(error).__name__}: {' '.join(str(error).split())[:300]}"
        return msgspec.json.encode({"wrong": wrong})

    async def run(self, lines: BinaryIO, out: BinaryIO) -> None:
        """Answers every line, and ends the worlds."""
        async with self._rows.worlds:
            for line in lines:
                out.write(await self.answer(line) + b"\n")
                out.flush()

    async def rows(self) -> dict[str, Json]:
        rows = [
            {"id": row.id, "clean_id": row.clean_id, "type": row.type_code} | _next(self._rows.begin(row.id))
            for row in self._rows.rows.values()
        ]
        return {"rows": rows}

    async def begin(self, row: str, model: str = "") -> dict[str, Json]:
        self._begun += 1
        self._playing[self._begun] = playing = self._rows.begin(row, model)
        return {"dialogue": self._begun, **_next(playing)}

    async def reply(self, dialogue: int, completion: dict[str, Json]) -> dict[str, Json]:
        playing = self._playing[dialogue]
        talk = playing.dialogue
        if talk.ended is not None:
            raise UserError("this dialogue has ended")
        await playing.reply(answer_of(read_completion(completion), talk.base(), talk.env.tools))
        return _next(playing)

    async def end(self, dialogue: int) -> dict[str, Json]:
        return {"score": msgspec.to_builtins(await self._playing.pop(dialogue).score())}

    async def gold(self, row: str) -> dict[str, Json]:
        return {"score": msgspec.to_builtins(await self._rows.gold(row))}


def _next(playing: Playing) -> dict[str, Json]:
    ask = playing.dialogue.ask()
    return {"ask": None if ask is None else {"messages": ask.messages, "tools": ask.tools}}


if __name__ == "__main__":
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a package prints is no answer
    try:
        service = Service(Rows(**msgspec.json.decode(sys.argv[1])))
    except UserError as wrong:
        sys.exit(str(wrong))
    asyncio.run(service.run(sys.stdin.buffer, answers))
