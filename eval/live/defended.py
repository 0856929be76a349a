"""What defences show an agent of a live row: the registry turn by turn, the opening messages, results.

The defences are those of `rbtc eval` (`eval.defend`), which know rows of one request. So each moment of an
episode is laid before them as such a row: the tools that are offered, the first turn's messages, and one
result where a result is shown. Calls come back in the words that were shown and are led to the tool of the
registry that stands behind them.
"""

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import msgspec

from robustbench_tc.errors import UserError
from robustbench_tc.schema import Call, Json, LiveRow, LiveTool, Message, Sample, Tool
from robustbench_tc.worlds.faults import meant

from .. import defend
from ..defend.chain import Defence, passed_on, shown
from .carrying_out import looks_failed
from .prompts import QUIET, READ_AS


@lru_cache(maxsize=64)
def parse(words: tuple[str, ...], mode: str) -> tuple[Defence, ...]:
    """The chain of these names, for live episodes in this mode. Raises UserError."""
    chain = defend.parse(words, mode)
    if any(one.code == "offers" for one in chain):
        raise UserError("--defend offers: live rows have no offers to choose among: leave it out")
    # In an episode a forbidden call is answered, as any call is (`world_env`): the model is not asked again.
    return tuple(one._replace(after=passed_on, requests=0) if one.code == "shield" else one for one in chain)


class Target(NamedTuple):
    """What a shown name stands for."""

    name: str
    """Of the registry."""
    place: int | None
    """Of the tool in the registry, where several have that name and it is known which is meant."""


class Offered(NamedTuple):
    """What is offered in a turn."""

    sample: Sample
    """As a row of one request; that a call is answered with "" there says that calls are."""
    messages: tuple[Message, ...]
    """The first turn's: a defence may say something in front of them."""
    tools: tuple[Tool, ...]
    """As they are shown."""
    targets: dict[str, Target]
    """Shown name → what it stands for, for names that are shown once."""

    def target(self, name: str) -> Target:
        """What a called name stands for; one that was never shown stays as it is."""
        return self.targets.get(name) or Target(name, None)

    def name(self, target: Target) -> str:
        """What a tool is called where it is shown."""
        return next((name for name, one in self.targets.items() if one == target), target.name)


class Registry:
    """A row's registry as a chain of defences shows it."""

    def __init__(self, row: LiveRow, chain: Sequence[Defence]) -> None:
        self._row, self._chain = row, tuple(chain)
        self._turns: dict[int, Offered] = {}

    def at(self, turn: int) -> Offered:
        """What is offered in a turn."""
        if turn not in self._turns:
            sample = self._sample(self._row.offered(turn), self._row.turns[0].messages, "")
            seen = shown(self._chain, sample)
            targets = self._targets(sample.tools, seen.tools) if self._chain else {}
            self._turns[turn] = Offered(sample, seen.messages, seen.tools, targets)
        return self._turns[turn]

    def added(self, turn: int) -> list[Tool]:
        """What is shown in a turn, and was not in the one before."""
        before = self.at(turn - 1).tools
        return [tool for tool in self.at(turn).tools if tool not in before]

    def calling(self, turn: int, call: Call) -> Call:
        """A call of the registry's as it is made by an agent that is shown this."""
        offered = self._row.offered(turn)
        tool = meant(offered, call.name, call.parameters)
        if not self._chain or tool is None:
            return call
        place = next(at for at, one in enumerate(offered) if one is tool)
        sample = self._sample(offered, ())
        golden = msgspec.structs.replace(sample, golden_answers=((call,),), gold_tool_index=place)
        return shown(self._chain, golden).golden_answers[0][0]

    def result(self, text: str, noticed: set[str]) -> str:
        """What a call was answered, as it is shown; `noticed` as in `chain.shown`."""
        if not self._chain:
            return text
        if looks_failed(text):
            return shown(self._chain, self._sample((), (), text), noticed).injected_error or ""
        told = (*QUIET, Message("tool", text))
        return shown(self._chain, self._sample((), told)).messages[-1].content

    def _sample(
        self, tools: Sequence[LiveTool], messages: tuple[Message, ...], error: str | None = None
    ) -> Sample:
        """`error`: what a call is answered, as a row of one request has it."""
        row = self._row
        return Sample(
            id=row.id,
            clean_id=row.clean_id,
            type_code=row.type_code,
            source=READ_AS,
            category=row.category,
            messages=messages or QUIET,
            tools=tuple(Tool(tool.name, tool.description, {**tool.parameters}) for tool in tools),
            golden_answers=(),
            output_format="",
            injected_error=error,
        )

    def _targets(self, offered: Sequence[Tool], found: Sequence[Tool]) -> dict[str, Target]:
        everything = self._row.tools
        later = {tool.name for tool in everything} - {tool.name for tool in offered}
        places = [at for at, tool in enumerate(everything) if tool.name not in later]
        own, often = Counter(tool.name for tool in everything), Counter(tool.name for tool in found)
        # Defences keep, drop and rename tools: the object that holds a tool's parameters stays its own.
        stands_for = {
            id(tool.parameters): Target(tool.name, at if own[tool.name] > 1 else None)
            for tool, at in zip(offered, places, strict=True)
        }
        return {tool.name: stands_for[id(tool.parameters)] for tool in found if often[tool.name] == 1}


def plain_call(name: str, arguments: Json) -> Call:
    """A call as defences read it; arguments that are no object are none."""
    return Call(name, arguments if isinstance(arguments, dict) else {})
