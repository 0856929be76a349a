"""Scripted agents: what each does about a fault is known beforehand, and so is every figure of its score.

    player = AGENTS["verifying-retrier"](clean_row)
    answer = player.reply(View(turn=0, history=(), asked=False, tools=tools))    # calls, or a text

They play gold of the clean row, with values that gold copies from results taken from the results as shown,
so that a fault has its effect; they do not know the fault. An answer follows from the view alone: an episode
that was cut off goes on as it would have.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

from robustbench_tc import schema
from robustbench_tc.schema import Call, LiveRow

from .policies import CONTROLS, POLICIES, Player, Policy


class View(NamedTuple):
    """What an agent knows when it is to answer."""

    turn: int
    """Of the user, from 0."""
    history: tuple[tuple[Call, str], ...]
    """This episode's calls with their results as shown, over all turns."""
    asked: bool = False
    """The user has just said `live.PLEASE_DECIDE`."""
    tools: tuple[schema.Tool, ...] = ()


class Scripted:
    """One agent in one episode: a policy, played from the beginning for every answer."""

    def __init__(self, policy: Policy, row: LiveRow) -> None:
        self._policy, self._row = policy, row

    def reply(self, view: View) -> tuple[Call, ...] | str:
        """The calls of the next step, or the text that ends the turn or asks."""
        script = Player(self._policy, self._row).script()
        seen = turn = 0
        said = next(script, None)
        while said is not None:
            now = seen == len(view.history)
            if isinstance(said, Call):
                if now:
                    return (self._as_offered(said, view),)
                said = script.send(view.history[seen][1])
                seen += 1
            else:
                questioned = said.endswith("?")
                if now and turn == view.turn and not (questioned and view.asked):
                    return said
                turn += not questioned
                said = next(script, None)
        return "There is nothing more to do."

    def _as_offered(self, call: Call, view: View) -> Call:
        """The call; of one that takes the first tool of a name, with the parameters that this declares."""
        first = next((tool for tool in view.tools if tool.name == call.name), None)
        if first is None or not self._policy.takes_first:
            return call
        return Call(call.name, {name: v for name, v in call.parameters.items() if name in first.properties})


AGENTS: Mapping[str, Callable[[LiveRow], Scripted]] = {
    name: partial(Scripted, policy)
    for name, policy in {
        **POLICIES,
        **CONTROLS,
        "takes-first": Policy(literal=True, takes_first=True),
    }.items()
}
"""Name → an agent for a clean row."""
