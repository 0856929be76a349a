"""Scripted agents: what each does about a fault is known beforehand, and so is every figure of its score.

    player = AGENTS["verifying-retrier"](clean_row)
    answer = player.reply(View(turn=0, history=(), asked=False, tools=tools))    # calls, or a text

They play gold of the clean row, with values that gold copies from results taken from the results as shown,
so that a fault has its effect; they do not know the fault. An answer follows from the view alone: an episode
that was cut off goes on as it would have.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import NamedTuple, Protocol

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


class Player(Protocol):
    """One agent in one episode."""

    def reply(self, view: View) -> tuple[Call, ...] | str:
        """The calls of the next step, or the text that ends the turn or asks."""
        ...


class Scripted:
    """A policy, played from the beginning for every answer."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    def reply(self, view: View) -> tuple[Call, ...] | str:
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
                said, seen = _sent(script, view.history[seen][1]), seen + 1
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


def _sent(script: Generator[Call | str, str, None], result: str) -> Call | str | None:
    try:
        return script.send(result)
    except StopIteration:
        return None


def _agent(policy: type[Policy]) -> Callable[[LiveRow], Player]:
    return lambda row: Scripted(policy(row))


AGENTS: Mapping[str, Callable[[LiveRow], Player]] = {
    **{name: _agent(policy) for name, policy in (policies.POLICIES | controls.CONTROLS).items()},
    "takes-first": lambda row: TakesFirst(policies.Oracle(row)),
}
"""Name → an agent for a clean row."""
