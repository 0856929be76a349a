"""Upstream's verdict on a BFCL multi-turn episode: the state after every turn, and every result of gold.

For parity with published figures only. It requires reads like writes, forgives every call too many that
leaves the state alone, and fails an agent that was kept from a result (docs/live-data.md).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from robustbench_tc.schema import Json

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


def upstream_error(model: Sequence[PlayedTurn], gold: Sequence[PlayedTurn]) -> str | None:
    """Why upstream holds an episode for wrong, None where it is right. The first turn that fails decides;
    turns in which gold calls nothing are passed over."""
    if len(model) < len(gold):
        return FEWER_TURNS
    seen: Counter[str] = Counter()
    for played, wanted in zip(model, gold, strict=False):
        seen.update(played.results)
        if not wanted.results:
            continue
        if not played.steps or (len(played.steps) == 1 and not played.steps[0]):
            return EMPTY_TURN
        # As Python compares: mappings regardless of order, and 1 equals 1.0 and True.
        if played.state != wanted.state and _comparable(played.state) != _comparable(wanted.state):
            return STATE
        if Counter(wanted.results) - seen:  # matches are not used up: the next turn counts all of them again
            return RESPONSE
    return None


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
