"""The words of a case in a request, and the row's words in their place.

An agent may put its own instructions around the case: what the row changes is changed where the case's own
words stand, the rest stays.
"""

from collections.abc import Mapping, Sequence

from robustbench_tc.eval import prompts, wire
from robustbench_tc.schema import Json, Message, Sample

from .offer import NotTheCase
from .scenes import as_row

Chat = dict[str, Json]


def texts(messages: Sequence[Mapping[str, Json]]) -> list[tuple[str, str]]:
    """Role and text of the messages before the first reply of a model."""
    found = []
    for message in messages:
        role = message.get("role")
        if role not in ("system", "developer", "user"):
            break
        found.append((str(role), text_of(message.get("content")) or ""))
    return found


def text_of(content: Json) -> str | None:
    """A message's text; of several parts the only text among them, else None."""
    if isinstance(content, list):
        parts = [part for part in content if isinstance(part, Mapping) and isinstance(part.get("text"), str)]
        return str(parts[0]["text"]) if len(parts) == 1 else None
    return content if isinstance(content, str) else None


def as_in_row(messages: Sequence[Chat], clean: Sample, row: Sample) -> tuple[list[Chat], int]:
    """The row's words in place of the case's, and how many messages of the request they stand for.

    Raises NotTheCase where the request does not hold what the user says last.
    """
    if clean is row:
        known = [place for place in _places(messages, prompts.own_messages(clean)) if place is not None]
        end = 1 + max(known) if known else len(texts(messages))  # else where a model first replies
        return [dict(one) for one in messages[:end]], end
    asked = wire.first(clean, "fc").messages
    begun = [
        {"role": as_row(str(one.get("role"))), "content": one.get("content")}
        for one in messages[: len(asked)]
    ]
    if begun == asked:
        said = wire.first(row, "fc").messages  # what the API says beside role and text stays, if it can
        if [one["role"] for one in said] == [one["role"] for one in asked]:
            pairs = zip(messages, said, strict=False)
            return [{**own, "content": one["content"]} for own, one in pairs], len(asked)
        return [dict(one) for one in said], len(asked)
    old, new = prompts.own_messages(clean), prompts.own_messages(row)
    native = wire.first(row, "fc").messages  # one for each of `new`, calls and results as providers take them
    places = _places(messages, old)
    last = max((at for at, one in enumerate(old) if one.role == "user"), default=None)
    if last is None or places[last] is None:
        raise NotTheCase("request_is_not_the_cases")
    end = 1 + max(place for place in places if place is not None)
    paired = _pairs(old, new)
    gone = {place for at, place in enumerate(places) if at not in paired.values()}
    found: list[Chat] = []
    at = 0
    for number, message in enumerate(new):
        if number not in paired:
            found.append(dict(native[number]))
            continue
        place = places[paired[number]]
        if place is None:
            continue
        found += [dict(messages[one]) for one in range(at, place) if one not in gone]
        found.append(_edited(messages[place], old[paired[number]].content, message.content))
        at = place + 1
    return [*found, *(dict(messages[one]) for one in range(at, end) if one not in gone)], end


def next_turn(messages: Sequence[Chat], start: int, clean: Sample) -> int | None:
    """Where the words of a further turn, which are `clean`'s, begin in a conversation; None: not yet.

    A reply stands between `start`, the end of the words of the turn before, and them.
    """
    replies = (at for at in range(start, len(messages)) if messages[at].get("role") == "assistant")
    start = next(replies, len(messages))
    wanted = prompts.own_messages(clean)
    places = _places(messages[start:], wanted)
    last = max((at for at, one in enumerate(wanted) if one.role == "user"), default=None)
    if last is None or places[last] is None:
        return None
    return start + min(place for place in places if place is not None)


def _places(messages: Sequence[Chat], wanted: Sequence[Message]) -> list[int | None]:
    """Where each message of the case stands in the request, in order; an assistant's instructions may not."""
    found: list[int | None] = []
    start = 0
    for one in wanted:
        there = (
            at
            for at in range(start, len(messages))
            if as_row(str(messages[at].get("role"))) == one.role
            and one.content in (text_of(messages[at].get("content")) or "")
        )
        place = next(there, None)
        found.append(place)
        start = start if place is None else place + 1
    return found


def _pairs(old: Sequence[Message], new: Sequence[Message]) -> dict[int, int]:
    """For messages of the row the clean one that each is, as it was or edited; from the end."""
    found: dict[int, int] = {}
    end = len(new)
    for at in range(len(old) - 1, -1, -1):
        same = [n for n in range(end) if new[n] == old[at]] or [
            n for n in range(end) if new[n].role == old[at].role and new[n] not in old
        ]
        if same:
            end = same[-1]
            found[end] = at
    return found


def _edited(message: Chat, old: str, new: str) -> Chat:
    content = message.get("content")
    if isinstance(content, str):
        return {**message, "content": content.replace(old, new, 1) if old else new}
    if not old:
        return dict(message)
    parts = [
        {**part, "text": part["text"].replace(old, new, 1)}
        if isinstance(part, Mapping) and isinstance(part.get("text"), str)
        else part
        for part in content or ()
    ]
    return {**message, "content": parts}
