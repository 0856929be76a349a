"""Scripted agents: what each does about a fault is known beforehand, and so is every figure of its score.

    player = AGENTS["verifying-retrier"](clean_row)
    answer = player.reply(View(turn=0, history=(), asked=False, tools=tools))    # calls, or a text

They play gold of the clean row, with values that gold copies from results taken from the results as shown,
so that a fault has its effect; they do not know the fault. An answer follows from the view alone: an episode
that was cut off goes on as it would have.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from robustbench_tc import schema
from robustbench_tc.schema import Call, LiveRow

from . import controls, policies
from .policies import Policy


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

    def __init__(self, policy: type[Policy], row: LiveRow) -> None:
        self._policy = policy(row)

    def reply(self, view: View) -> tuple[Call, ...] | str:
        """The calls of the next step, or the text that ends the turn or asks."""
        seen, turn = 0, 0
        script: Generator[Call | str, str, None] = self._policy.script()
        said = next(script, None)
        while said is not None:
            if isinstance(said, str):
                questioned = said.endswith("?")
                if turn == view.turn and seen == len(view.history) and not (questioned and view.asked):
                    return said
                turn += not questioned
                said = next(script, None)
            elif seen == len(view.history):
                return (said,)
            else:
                try:
                    said = script.send(view.history[seen][1])
                except StopIteration:
                    said = None
                seen += 1
        return "There is nothing more to do."


class TakesFirst(Scripted):
    """Does as gold, but of several tools of one name it fills in the first as that is declared."""

    def reply(self, view: View) -> tuple[Call, ...] | str:
        said = super().reply(view)
        return said if isinstance(said, str) else tuple(_as_first(call, view.tools) for call in said)


def _as_first(call: Call, tools: Sequence[schema.Tool]) -> Call:
    """The call with those of its parameters that the first tool of its name declares."""
    first = next((tool for tool in tools if tool.name == call.name), None)
    if first is None:
        return call
    return Call(call.name, {name: v for name, v in call.parameters.items() if name in first.properties})


AGENTS: Mapping[str, Callable[[LiveRow], Scripted]] = {
    **{name: partial(Scripted, policy) for name, policy in (policies.POLICIES | controls.CONTROLS).items()},
    "takes-first": partial(TakesFirst, policies.Oracle),
}
"""Name → an agent for a clean row."""
