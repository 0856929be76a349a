"""The three verdicts on an episode, each in a column of its own.

success      the world in the end is gold's, or gold's after a registered repair
information  every result of gold's reads was seen
upstream     what the benchmark that the task comes from would say; null where it says nothing
"""

from robustbench_tc.worlds.find import BFCL
from robustbench_tc.worlds.same_state import equal, same

from .bfcl_check import gold_turns, turns_of, upstream_verdict
from .replay import Replay, without_ids


def success(replay: Replay) -> bool | None:
    """Whether the world in the end equals gold's, or gold's with calls that the agent made and undid.
    Generated ids are renamed one to one. Null where that cannot be decided."""
    found = [same(replay.end, one) for one in (replay.gold.turns[-1], *replay.repaired)]
    return True if True in found else None if None in found else False


def turn_is_right(replay: Replay, turn: int) -> bool | None:
    """Whether the world at the end of a turn is gold's then. In the last turn repairs count."""
    if turn == len(replay.gold.turns) - 1:
        return success(replay) if len(replay.turns) == len(replay.gold.turns) else False
    return same(replay.turns[turn], replay.gold.turns[turn])


def information(replay: Replay) -> bool | None:
    """Whether the result of each of gold's reads was shown to the agent by a call of the same tool; a read
    that met a fault counts as seen. Null where gold reads nothing."""
    reads = [one for one in replay.gold.calls if not one.writes]
    if not reads:
        return None
    mine = replay.end.generated
    theirs = replay.gold.turns[-1].generated
    shown = {
        (one.step.name, without_ids(one.step.shown, mine)) for one in replay.steps if one.step.defence is None
    }
    met = [one.step for one in replay.steps if one.step.met]
    return all(
        (read.call.name, without_ids(read.text, theirs)) in shown
        or any(s.name == read.call.name and equal(s.arguments, read.call.parameters) for s in met)
        for read in reads
    )


def upstream(replay: Replay) -> bool | None:
    """What BFCL's multi-turn checker says of the episode; null for the worlds of others."""
    if replay.row.world != BFCL:
        return None
    states = [played.after.state for played in replay.steps]
    results = [
        [call.text for call in replay.gold.calls if call.turn == turn]
        for turn in range(len(replay.gold.turns))
    ]
    gold = gold_turns(results, [snapshot.state for snapshot in replay.gold.turns])
    return upstream_verdict(turns_of(replay.episode.replies, states, replay.start.state), gold).valid
