"""A door's journal as predictions: what `rbtc eval` would have written of the same replies."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from robustbench_tc.eval import predictions, wire
from robustbench_tc.eval.dialogue import Dialogue
from robustbench_tc.eval.record import Answer, Settings
from robustbench_tc.eval.scripted import Scripted
from robustbench_tc.eval.speakers import status_of
from robustbench_tc.llm.errors import from_status
from robustbench_tc.schema import Json, Prediction, Sample

from .journal import LLM, Exchange

INCOMPLETE, REFUSED = "incomplete", "refused upstream"
"""Why an attempt has no answer: the agent asked no further, or its server gave none."""
_LEFT = 499


class Attempt(NamedTuple):
    """What one session did with a row."""

    row: Sample
    session: str
    repeat: int
    """The session's."""
    answers: tuple[Answer, ...]
    """As the harness would have had them; the last may be a failure."""

    @property
    def answered(self) -> bool:
        """Whether it can be judged."""
        return self.answers[-1].status != "request_error"

    def prediction(self, settings: Settings, sample_hash: str, repeat: int) -> Prediction:
        """For a run in which it is that repeat of the row."""
        answers = [msgspec.structs.replace(one, repeat=repeat) for one in self.answers]
        return predictions.combine(self.row, sample_hash, settings, *answers)


def attempts(exchanges: Iterable[Exchange], rows: Mapping[str, Sample], settings: Settings) -> list[Attempt]:
    """What each session did with each row that was put to its model, of the lines of this kind of door.

    Of conversations that a session begins again the first with an answer counts; without one, the first.
    """
    conversations: dict[tuple[str, str], list[list[Exchange]]] = {}
    for one in exchanges:
        if one.door == LLM and one.row is not None and one.row in rows:
            found = conversations.setdefault((one.session, one.row), [])
            if one.turn == 0 or not found:  # a conversation begins, or begins again
                found.append([])
            found[-1].append(one)
    made = []
    for (session, row_id), found in conversations.items():
        row, repeat = rows[row_id], found[0][0].repeat
        tries = [Attempt(row, session, repeat, _answers(row, lines, settings)) for lines in found]
        made.append(next((one for one in tries if one.answered), tries[0]))
    return made


def _answers(row: Sample, lines: Sequence[Exchange], settings: Settings) -> tuple[Answer, ...]:
    said: dict[int, Json] = {}
    failed: dict[int, Exchange] = {}
    for one in lines:
        for number, reply in enumerate(one.replies):
            said.setdefault(one.turn + number, reply)
        if one.status >= 400 or not one.replies:
            failed[one.turn + len(one.replies)] = one
    env = Scripted(row, settings)
    dialogue = Dialogue(env, settings, lines[0].repeat)
    while dialogue.ended is None:
        number = dialogue.number - 1
        if number in said:
            dialogue.reply(dialogue.noted(_answer(row, said[number], dialogue.base())))
        else:
            dialogue.reply(_failure(row, failed.get(number), dialogue.base()))
    return tuple(env.answers)


def _answer(row: Sample, reply: Json, base: Answer) -> Answer:
    return msgspec.structs.replace(
        base,
        text=reply.get("text"),
        tool_calls=wire.names_back(row.tools, reply.get("tool_calls")),
        finish_reason=reply.get("finish_reason"),
    )


def _failure(row: Sample, one: Exchange | None, base: Answer) -> Answer:
    """Why there is no reply. A refused length or registry is an answer, as in the harness."""
    base = msgspec.structs.replace(base, status="request_error")
    if one is None or one.status == _LEFT or one.status < 400:
        why = "the agent did not ask on after its call was answered"
        if one is not None:
            why = one.error or "the server's reply cannot be read"
        return msgspec.structs.replace(base, error=f"{INCOMPLETE}: {why}")
    body: Json = {"error": {"message": one.error or ""}}
    error = from_status(one.status, body, {}, with_tools=bool(row.tools), now=0.0)
    status = status_of(error, wire.first(row, "fc"))
    said = str(error) if status != "request_error" else f"{REFUSED}: {error.message}"
    return msgspec.structs.replace(base, status=status, error=said)
