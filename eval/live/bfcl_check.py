"""Upstream's verdict on a BFCL multi-turn episode: the state after every turn, and every result of gold.

For parity with published figures only. It requires reads like writes, forgives every call too many that
leaves the state alone, and fails an agent that was kept from a result (docs/live-bfcl.md).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from robustbench_tc.schema import Json, Reply

EMPTY_TURN = "multi_turn:empty_turn_model_response"
STATE = "multi_turn:instance_state_mismatch"
RESPONSE = "multi_turn:execution_response_mismatch"
FEWER_TURNS = "multi_turn:force_terminated"


class PlayedTurn(NamedTuple):
    """What one side did in a turn."""

    steps: Sequence[Sequence[str]]
    """Results by step: a step is one reply and its calls. Gold's are one step."""
    state: Json
    """Public attributes by class when the turn ends: `classes` of the world's state."""

    @property
    def results(self) -> list[str]:
        """The results of the turn."""
        return [text for step in self.steps for text in step]


class Verdict(NamedTuple):
    """What upstream decides."""

    valid: bool
    error_type: str | None = None


def upstream_verdict(model: Sequence[PlayedTurn], gold: Sequence[PlayedTurn]) -> Verdict:
    """The first turn that fails decides; turns in which gold calls nothing are passed over."""
    if len(model) < len(gold):
        return Verdict(False, FEWER_TURNS)
    seen: Counter[str] = Counter()
    for played, wanted in zip(model, gold, strict=False):
        seen.update(played.results)
        if not wanted.results:
            continue
        if not played.steps or (len(played.steps) == 1 and not played.steps[0]):
            return Verdict(False, EMPTY_TURN)
        # As Python compares: mappings regardless of order, and 1 equals 1.0 and True.
        if played.state != wanted.state and _comparable(played.state) != _comparable(wanted.state):
            return Verdict(False, STATE)
        if Counter(wanted.results) - seen:  # matches are not used up: the next turn counts all of them again
            return Verdict(False, RESPONSE)
    return Verdict(True)


def turns_of(replies: Sequence[Reply], states: Sequence[Json], start: Json) -> list[PlayedTurn]:
    """An episode's turns as `upstream_verdict` takes them.

    `states`: the world's state after each call of the episode, in order; `start`: before the first. Replies
    without calls are no steps. Turns that the episode did not reach are not there.
    """
    if not replies:
        return []
    after: list[Json] = [start, *states]
    done, turns = 0, []
    for number in range(replies[-1].turn + 1):
        steps = [
            [step.text for step in reply.steps] for reply in replies if reply.turn == number and reply.steps
        ]
        done += sum(map(len, steps))
        turns.append(PlayedTurn(steps, _classes(after[done])))
    return turns


def gold_turns(results: Sequence[Sequence[str]], states: Sequence[Json]) -> list[PlayedTurn]:
    """Gold's turns: the results of each, and the world's state when each ends."""
    return [
        PlayedTurn([texts] if texts else [], _classes(state))
        for texts, state in zip(results, states, strict=True)
    ]


def _classes(state: Json) -> Json:
    """Without the working directory, which upstream does not compare."""
    return state["classes"] if isinstance(state, Mapping) and "classes" in state else state


def _comparable(state: Json) -> Json:
    """The state with keys that were numbers as numbers again: an order 1.0 is the order 1, upstream too."""
    if isinstance(state, Mapping):
        return {_number(key): _comparable(value) for key, value in state.items()}
    return [_comparable(one) for one in state] if isinstance(state, list | tuple) else state


def _number(key: str) -> str | float:
    try:
        return float({"true": "1", "false": "0"}.get(key, key))
    except ValueError:
        return key
