"""A row of the benchmark as a dialogue has it: its first calls are answered with its own text.

It is asked once; again after a call that its text answers; and, where a case of one's own wants its calls in
order, again after each reply with calls until there are as many as gold has, each answered with its result.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from types import MappingProxyType

import msgspec

from robustbench_tc import sources
from robustbench_tc.eval.score.category import read_category
from robustbench_tc.own.cases import NO_RESULT
from robustbench_tc.schema import Call, Ended, Json, Sample, Tool, asked_hash, dumps

from . import defend, wire
from .defend.again import is_strict, strict
from .defend.chain import Request, Said, Scene, Turn, shown
from .parse import Parsed
from .prompts import OURS, Prompts, wording
from .read_reply import read_reply
from .record import Answer, Settings

Results = Mapping[str, Sequence[Json]]
"""By tool name: what it answers, used in turn, the last repeats."""

_chain = lru_cache(maxsize=64)(defend.parse)


class Scripted:
    """One row with one speaker; an `Env`. `results`: what the tools of own cases answer; `words`: of prompt
    mode."""

    def __init__(
        self, row: Sample, settings: Settings, results: Results = MappingProxyType({}), words: Prompts = OURS
    ) -> None:
        self.row, self.chain = row, _chain(settings.defend)
        self.asks, self.wording = asked_hash(row), wording(row)
        self.turns: list[Turn] = []
        """The replies that count, and what their calls were answered with."""
        self.ended: Ended | None = None
        self.noticed: set[str] = set()
        """Codes of the defences that said that something is wrong."""
        self._settings, self.results, self._words = settings, results, words
        self._answered, self._ordered = wire.answered(row), in_order(row)
        self._calls = 0
        """Of replies that count, in a case that wants its calls in order."""
        self._used: Counter[str] = Counter()

    @property
    def answers(self) -> list[Answer]:
        """The replies that count; the last is the scored one."""
        return [turn.said.answer for turn in self.turns]

    @cached_property
    def tools(self) -> tuple[Tool, ...]:
        """The tools as the defences show them."""
        return shown(self.chain, self.row).tools

    def scene(self) -> Scene:
        """This moment, for defences."""
        return Scene(self.row, self.row, tuple(self.turns), self._read, self.noticed)

    def ask(self, request: Request) -> wire.Ask:
        """The row as it is shown, its replies and what their calls were answered with."""
        replies = [(turn.said.answer.text, turn.said.answer.tool_calls) for turn in request.turns]
        texts = [turn.results for turn in request.turns]
        asked = wire.following(request.row, self._settings.mode, replies, texts, self._words)
        if is_strict(self.chain):
            asked = msgspec.structs.replace(asked, tools=strict(asked.tools or ()))
        return asked

    def noted(self, answer: Answer, request: Request) -> Answer:
        """The answer with `has_call`, where a call in it would be answered with the row's text."""
        if answer.status != "ok" or answer.number > self._answered:
            return answer
        return msgspec.structs.replace(answer, has_call=bool(self._read(request.row, answer)))

    def take(self, said: Said, asked: Sequence[Answer]) -> None:
        """The reply counts; it is the last one where nothing answers a call of it."""
        answer, results = said.answer, None
        if answer.status != "ok":
            self.ended = answer.status
        elif len(self.turns) >= self._answered:
            self.ended = "done"
            calls = self._read(self.row, answer) if self._ordered else ()
            self._calls += len(calls)
            if calls and self._calls < self._ordered:
                self.ended, results = None, self._texts(answer, calls)
        elif not answer.has_call:
            self.ended = "done"
        self.turns.append(Turn(said, results))

    def _read(self, row: Sample, answer: Answer) -> tuple[Call, ...]:
        return parsed(row, self._settings, answer).calls

    def _texts(self, answer: Answer, calls: Sequence[Call]) -> tuple[str, ...]:
        """What a reply's calls are answered with, in their order."""
        names = [str(call["name"]) for call in answer.tool_calls or ()] or [call.name for call in calls]
        texts = []
        for name in names:
            texts.append(result_text(self.results, name, self._used[name]))
            self._used[name] += 1
        return tuple(texts)


def in_order(row: Sample) -> int:
    """As many calls as are waited for, over several replies; 0 where only one reply counts."""
    if row.source != sources.OWN or not read_category(row.category).ordered:
        return 0
    return max((len(golden) for golden in row.golden_answers), default=0)


def most_replies(row: Sample) -> int:
    """The most replies that can count for a row."""
    return wire.answered(row) + max(1, in_order(row))


def parsed(row: Sample, settings: Settings, answer: Answer) -> Parsed:
    """One answer, as the run's replies are read."""
    return read_reply(
        answer.text,
        answer.tool_calls,
        source=row.source,
        tools=row.tools,
        model=settings.model,
        mode=settings.mode,
        finish_reason=answer.finish_reason,
        reasoning=answer.reasoning,
    )


def result_text(results: Results, name: str, number: int) -> str:
    """What a tool answers to its `number`th call, from 0: results in turn, the last repeats."""
    stated = results.get(name, ())
    found = stated[min(number, len(stated) - 1)] if stated else NO_RESULT
    return found if isinstance(found, str) else dumps(found)
