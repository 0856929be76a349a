"""Scripted agents of the pack severity: each fails from a known dose of one series on, and nowhere else."""

from collections.abc import Callable, Mapping

from robustbench_tc import taxonomy
from robustbench_tc.schema import Call

from .base import Agent, AgentContext


def _fails(series: str, dose: Callable[[float], bool]) -> Callable[[AgentContext], bool]:
    """Whether the row is one of the series' doses that the agent fails on."""

    def at(scene: AgentContext) -> bool:
        code = scene.row.type_code
        kind = taxonomy.get(code) if taxonomy.known(code) else None
        return kind is not None and kind.series == series and kind.dose is not None and dose(kind.dose)

    return at


def _lookalikes(scene: AgentContext) -> tuple[Call, ...]:
    """The golden calls at the tools that came in beside the gold ones, with the same parameters."""
    gold = {call.name for call in scene.gold}
    calls = []
    for call in scene.gold:
        meant = next(tool for tool in scene.row.tools if tool.name == call.name)
        others = (t for t in scene.row.tools if t.name not in gold and t.parameters == meant.parameters)
        near = [t.name for t in others if t.name.startswith(call.name) or _cut(t.name, call.name)]
        calls.append(Call(near[0] if near else call.name, call.parameters))
    return tuple(calls)


def _cut(name: str, short: str) -> bool:
    """Whether `short` is `name` with letters left out."""
    letters = iter(name)
    return len(short) < len(name) and all(letter in letters for letter in short)


_slips = _fails("typos", lambda dose: dose >= 3)
_close_prices = _fails("factor", lambda dose: dose < 2)
_few_letters = _fails("abbreviated", lambda dose: dose < 3)

SEVERITY: Mapping[str, Agent] = {
    "stumbles-at-three-slips": Agent(
        "answers with gold, and says nothing to a request with three or more slips made by rule",
        lambda s: "" if _slips(s) else s.gold,
        lambda s: not _slips(s),
    ),
    "ignores-small-savings": Agent(
        "takes the dearer look-alike where it costs less than twice as much",
        lambda s: _lookalikes(s) if _close_prices(s) else s.gold,
        lambda s: not _close_prices(s),
    ),
    "needs-three-letters": Agent(
        "takes the readable look-alike where the right tool's name keeps fewer than three letters of a part",
        lambda s: _lookalikes(s) if _few_letters(s) else s.gold,
        lambda s: not _few_letters(s),
    ),
}
