"""A door's journal as predictions: what `rbtc eval` would have written of the same replies."""

from collections.abc import Iterable, Mapping

from robustbench_tc import schema
from robustbench_tc.eval import predictions, wire
from robustbench_tc.eval.read_reply import read_reply
from robustbench_tc.eval.record import Answer, Settings
from robustbench_tc.schema import Json, Prediction, Sample

from .journal import Exchange


def of_journal(
    exchanges: Iterable[Exchange], rows: Mapping[str, Sample], settings: Settings
) -> list[Prediction]:
    """One prediction for each session whose row is among `rows` (by id) and was put to the model.

    The scored reply is the one after as many answered calls as the row's type answers, as in the harness.
    What the agent did later counts for nothing, and so does a reply to a conversation that it began again.
    """
    said: dict[str, dict[int, Json]] = {}
    last: dict[str, Exchange] = {}
    for one in exchanges:
        if one.row not in rows:
            continue
        last[one.session] = one
        for number, reply in enumerate(one.replies):
            said.setdefault(one.session, {}).setdefault(one.turn + number, reply)
    found = []
    for session, one in last.items():
        row = rows[str(one.row)]
        answers = []
        for number in range(wire.answered(row) + 1):
            reply = said.get(session, {}).get(number)
            if reply is None:
                break
            answers.append(_answer(row, reply, one, settings, number + 1))
            if not answers[-1].has_call:
                break
        if answers:
            found.append(predictions.combine(row, schema.content_hash(row), settings, *answers))
    return found


def _answer(row: Sample, reply: Json, one: Exchange, settings: Settings, number: int) -> Answer:
    calls = wire.names_back(row.tools, reply.get("tool_calls"))
    parsed = read_reply(
        row,
        reply.get("text"),
        calls,
        model=settings.model,
        mode="fc",
        finish_reason=reply.get("finish_reason"),
    )
    return Answer(
        id=row.id,
        repeat=one.repeat,
        number=number,
        status="ok",
        text=reply.get("text"),
        tool_calls=calls,
        has_call=bool(parsed.calls),
        finish_reason=reply.get("finish_reason"),
    )
