"""What records tell of conversations, put together: a record is seldom a conversation as it is wanted.

A model's step holds the whole conversation up to its reply, so of the steps of one conversation only those
are kept that no later one goes on from; runs of tools fill in the results that no model was given. Other
records are parts of a conversation: a message of it, a request, the reply to one.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any, Literal, TypeAlias

import msgspec

from robustbench_tc.own.files import Unreadable
from robustbench_tc.schema import Json

from .chat import Message, TimedRun, asked, defined, first_of, offered, opened, read_messages, replied

Kind: TypeAlias = Literal["whole", "model", "agent", "tool", "part", "reply"]


class Step(msgspec.Struct, kw_only=True):
    """What one record tells."""

    kind: Kind
    """`whole`: a conversation. `model`, `agent`: one up to the end of this step. `tool`: a call and its
    result. `part`: what one goes on with; `reply`: a part that says nothing without the one before."""
    messages: tuple[Message, ...]
    tools: Json = None
    """The definitions of tools, as they were recorded; None where they were not."""
    group: str = ""
    """Steps of one conversation have the same; without one, those of one file belong together."""
    id: str = ""
    """Of the conversation."""
    start: str = ""
    """When it began, in an order of texts."""
    said: str = ""
    """Of a part: the id of the message that it belongs to, of which others may be."""
    seconds: float | None = None
    """Of a tool's run: how long it took."""
    runs: tuple[TimedRun, ...] = ()
    """Of a conversation: the tools' runs in it that have their times."""
    begins: bool = False
    """Of a part: it goes on from none."""
    log: str = ""
    """The stem of its file."""
    place: tuple[int, int] = (0, 0)
    """The number of its file, and its line."""


def exchange(
    request: Json, reply: Json, kind: Kind = "model", tools: Json = None, system: Json = None, **where: Any
) -> Step:
    """A request and its reply as a step. Raises Unreadable."""
    request = opened(request)
    if isinstance(config := first_of(request, "config"), dict):  # as Gemini's SDK takes system and tools
        request = config | request
    entries = asked(request, system)
    messages = read_messages([one for one in entries if defined(one) is None])
    answer = read_messages(replied(reply))
    if not messages or messages[-1] not in answer:  # an agent's answer may be the whole conversation
        answer = messages + answer
    if not answer:
        raise Unreadable("no messages")
    stated = offered(first_of(request, "tools", "functions"))
    tools = tools or stated or [one for one in map(defined, entries) if one is not None]
    return Step(kind=kind, messages=answer, tools=tools, **where)


GONE_ON = "steps that a later one goes on from"
NO_CALL = "runs of tools whose call is nowhere"
ALONE = "replies whose request is not there: import the file of the requests too"


def conversations(steps: Iterable[Step], left: Counter[str]) -> list[Step]:
    """The conversations of steps; `left` counts the steps that are in none."""
    found: list[Step] = []
    parts: dict[str, list[Step]] = {}
    for step in steps:
        if step.kind in ("part", "reply"):
            parts.setdefault(step.group, []).append(step)
        else:
            found.append(step)
    found += (one for several in parts.values() for one in _stitched(several, left))
    groups: dict[tuple[str, int], list[Step]] = {}
    for number, step in enumerate(found):
        apart = number if step.kind == "whole" else -1 - step.place[0]
        groups.setdefault((step.group, 0 if step.group else apart), []).append(step)
    found = [one for several in groups.values() for one in _of_group(several, left)]
    return sorted(found, key=attrgetter("place"))


def _stitched(parts: list[Step], left: Counter[str]) -> Iterator[Step]:
    """Parts one after the other, as models' steps."""
    found: list[Step] = []
    places: dict[str, int] = {}
    parts.sort(key=attrgetter("start"))
    for before, part in zip((None, *parts), parts, strict=False):
        if part.kind == "reply" and (before is None or before.kind == "reply"):
            left[ALONE] += 1
        elif part.begins or not found:
            found.append(part)
            places = {part.said: 0}
        else:
            messages = list(found[-1].messages)
            first, *later = part.messages
            # What a model says at once may be several records, with results of its first calls between them.
            at = len(messages) - (messages[-1].role == first.role == "assistant")
            at = places.setdefault(part.said, at) if part.said else at
            messages[at : at + 1] = messages[at].then(first) if at < len(messages) else [first]
            found[-1].messages = (*messages, *later)
            found[-1].tools = found[-1].tools or part.tools
    for step in found:
        step.kind, step.group = "model", "" if step.id else step.group
        yield step


def _of_group(steps: list[Step], left: Counter[str]) -> list[Step]:
    steps.sort(key=attrgetter("start"))
    of_kind: dict[str, list[Step]] = {}
    for step in steps:
        of_kind.setdefault(step.kind, []).append(step)
    ran = of_kind.pop("tool", [])
    timed = tuple(
        TimedRun(one.messages[0].calls[0].name, "".join(said.text for said in one.messages[1:]), one.seconds)
        for one in ran
        if one.seconds is not None
    )
    if not of_kind:
        ran[0].runs = timed
        ran[0].messages = tuple(message for step in ran for message in step.messages)
        ran[0].id = ran[0].group
        return ran[:1]
    spoken = next(of_kind[kind] for kind in ("model", "agent", "whole") if kind in of_kind)
    kept = _longest(spoken)
    kept[0].runs = timed
    left[GONE_ON] += len(spoken) - len(kept)
    results = {call.id: step.messages[1:] for step in ran for call in step.messages[0].calls if call.id}
    called = set[str]()
    for number, step in enumerate(kept, 1):
        calls = [call for message in step.messages for call in message.calls]
        called |= {one for call in calls for one in (call.id, call.name)}
        answers = (one for call in step.messages[-1].calls for one in results.get(call.id, ()))
        step.messages = (*step.messages, *answers)
        step.tools = step.tools or next((one.tools for one in steps if one.tools), None)
        if step.group and not step.id:
            step.id = step.group if len(kept) == 1 else f"{step.group}#{number}"
    calls = [step.messages[0].calls[0] for step in ran]
    left[NO_CALL] += sum((call.id or call.name) not in called for call in calls)
    return kept


def _longest(steps: Sequence[Step]) -> list[Step]:
    """The steps whose messages are not the beginning of another's; of equal ones the first."""
    ends, begun = [], set[bytes]()
    for step in steps:
        chain = b""
        for place, message in enumerate(step.messages, 1):
            calls = [(call.id, call.name, call.arguments or call.text) for call in message.calls]
            said = (message.role, message.text.strip(), calls, message.call_id)
            chain = hashlib.sha256(chain + msgspec.json.encode(said, order="sorted")).digest()
            if place < len(step.messages):
                begun.add(chain)
        ends.append(chain)
    kept: list[Step] = []
    for step, end in zip(steps, ends, strict=True):
        if end not in begun:
            begun.add(end)
            kept.append(step)
    return kept
