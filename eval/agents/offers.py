"""Agents for the balanced offers: each takes the wrong tool of a pair in the rows of one design alone.

What sets them apart from `oracle` is what a model may fail to do: read the offers, read which quality is
asked for, convert a unit, look whether the better offer can serve. One more compares numbers without units.
"""

import re
from collections.abc import Callable, Mapping
from functools import partial

from robustbench_tc import taxonomy
from robustbench_tc.schema import Call

from ..score.error_modes import distractors
from .base import Agent, AgentContext

_NUMBER = re.compile(r"(?<![\d.,])\d+(?:\.\d+)?(?= (?:ms|s)\.\Z)|(?<=\$)\d+\.\d+(?=\.\Z)")
"""The number of the offer that a description ends with."""


def _design(scene: AgentContext) -> str:
    code = scene.row.type_code
    return str(taxonomy.get(code).traits.get("design", "")) if taxonomy.known(code) else ""


def _other(scene: AgentContext) -> tuple[Call, ...]:
    """The gold's calls, of the other tool of the pair."""
    (name,) = distractors(scene.row, scene.clean) or {""}
    return tuple(Call(name, call.parameters) for call in scene.gold)


def _fails(design: str, scene: AgentContext) -> bool:
    return _design(scene) == design


def _smaller_number_misleads(scene: AgentContext) -> bool:
    """Whether the other tool of a pair in mixed units has the smaller bare number."""
    if _design(scene) != "unit":
        return False
    gold, (other,) = scene.gold[0].name, distractors(scene.row, scene.clean)
    numbers = {
        tool.name: float(found.group())
        for tool in scene.row.tools
        if tool.name in (gold, other) and (found := _NUMBER.search(tool.description))
    }
    return numbers[other] < numbers[gold]


def _agent(about: str, fails: Callable[[AgentContext], bool]) -> Agent:
    return Agent(about, lambda s: _other(s) if fails(s) else s.gold, lambda s: not fails(s))


OFFERS: Mapping[str, Agent] = {
    "keeps-to-the-core-offer": _agent(
        "answers with gold, and where offers are swapped with the tool that was the better one before",
        partial(_fails, "swap"),
    ),
    "ignores-the-wish": _agent(
        "answers with gold, and where price and time stand against each other with the tool that is better "
        "in what was not asked for",
        partial(_fails, "inv"),
    ),
    "misconverts-units": _agent(
        "answers with gold, and where units are mixed with the tool that is dearer or slower",
        partial(_fails, "unit"),
    ),
    "overlooks-what-is-missing": _agent(
        "answers with gold, and where one of two tools lacks a parameter with the wrong one of the two",
        partial(_fails, "moot"),
    ),
    "compares-bare-numbers": _agent(
        "answers with gold, and where units are mixed with the tool whose number is smaller",
        _smaller_number_misleads,
    ),
}
