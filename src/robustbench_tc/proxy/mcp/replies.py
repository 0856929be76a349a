"""The MCP door's lines as replies of a model: the calls that a client made at once are one reply.

The door does not see what the agent says. A session that stops calling has answered with a text, which is
empty here: cases without a right call are never seen, and stay unasked.
"""

from collections.abc import Iterable, Sequence

import msgspec

from ..journal import LLM, MCP, Exchange


def as_replies(exchanges: Iterable[Exchange]) -> list[Exchange]:
    """The lines of both kinds of doors, those of this one as exchanges with a model; others are left out."""
    found: list[Exchange] = []
    sessions: dict[str, list[list[Exchange]]] = {}
    for one in exchanges:
        if one.door == LLM:
            found.append(one)
        elif one.door == MCP and one.replies:
            runs = sessions.setdefault(one.session, [])
            if not runs or any(line.number == one.number for line in runs[-1]):  # the session began again
                runs.append([])
            runs[-1].append(one)
    for runs in sessions.values():
        for lines in runs:
            found += _replies(lines)
    return found


def _replies(lines: Sequence[Exchange]) -> list[Exchange]:
    """One exchange for each batch of calls, and the end; faults stand where their results were read."""
    batches: dict[int, list[Exchange]] = {}
    for one in sorted(lines, key=lambda one: one.number):
        batches.setdefault(one.turn, []).append(one)
    found: list[Exchange] = []
    before: list[Exchange] = []
    for turn, batch in enumerate([*batches.values(), []]):
        calls = [call for one in batch for reply in one.replies for call in reply.get("tool_calls") or ()]
        said = {"text": "", "tool_calls": calls or None, "finish_reason": "tool_calls" if calls else "stop"}
        found.append(
            msgspec.structs.replace(
                lines[0],
                door=LLM,
                opened=lines[0].opened if turn == 0 else None,
                number=turn + 1,
                turn=turn,
                replies=[said],
                replaced=tuple(fault for one in before for fault in one.replaced),
                spared=tuple(fault for one in before for fault in one.spared),
                held=[call for one in batch for call in one.held],
                executed=None,
                status=200,
                error=None,
            )
        )
        before = batch
    return found
