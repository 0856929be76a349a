"""A conversation of chat completions: as the agent sends it, and as the model has to see it.

What a door keeps of it that the agent never saw is put back into its next request: found by what the agent
had said and heard until then, so that a conversation that is sent again, whole or from an earlier place, is
completed in the same way.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeAlias

import msgspec
from msgspec.structs import replace

from robustbench_tc import schema
from robustbench_tc.eval.defend import chain as defences
from robustbench_tc.eval.record import Answer
from robustbench_tc.result_faults import Fault
from robustbench_tc.schema import Json

from . import rewrite
from .journal import Called, Kept, Replaced, kept_lines
from .plan import Plan, Session
from .rewrite import Chat, Meant, Offer, text_of
from .scenes import TOOLS_UNREAD, Scene, loaded, of_turn

MOST_BYTES = 2**27
"""Of what is remembered; what was not asked for longest is forgotten."""
OVERHEAD = 1_000
"""Bytes that each reply takes beside its text."""


Place: TypeAlias = tuple[str, str, bytes]
"""A conversation: the session, its type, and the key (`keys_of`)."""


class Held:
    """What the agent never saw, by conversation."""

    def __init__(self, journal: Path | None = None) -> None:
        """`journal`: of the doors of before, whose conversations go on."""
        self._kept: dict[Place, tuple[int, Kept]] = {}
        """With its size; the oldest first."""
        self._bytes = 0
        for line in () if journal is None else kept_lines(journal):
            self.put((line.session, line.type, line.key or b""), line.kept)

    def put(self, place: Place, kept: Kept | None) -> bool:
        """Remembers what belongs before and into the reply to the conversation there; None where it got
        another reply, to which nothing does. Whether there is something new to know."""
        size, before = self._kept.pop(place, (0, None))
        self._bytes -= size
        if kept is not None:
            size = OVERHEAD + len(json.dumps(msgspec.to_builtins(kept)))
            self._kept[place] = size, kept
            self._bytes += size
        while self._bytes > MOST_BYTES:
            self._bytes -= self._kept.pop(next(iter(self._kept)))[0]
        return before is not None or kept is not None

    def get(self, place: Place) -> Kept | None:
        """What belongs to the reply that followed the conversation there."""
        if place in self._kept:
            self._kept[place] = self._kept.pop(place)  # as the newest
        return self._kept.get(place, (0, None))[1]


def keys_of(messages: Sequence[Mapping[str, Json]]) -> Iterator[bytes]:
    """The key of the conversation before each message, and of the whole."""
    digest = hashlib.sha256()
    yield digest.digest()
    for message in messages:
        lasting = json.loads(json.dumps(message), object_hook=_lasting)
        digest.update(b"\n" + json.dumps(lasting, sort_keys=True).encode())
        yield digest.digest()


def _lasting(found: Chat) -> Json:
    """What stays of an object when its message is sent again: agents move cache marks about, and write a text
    as a block where one belongs to it."""
    kept = {name: value for name, value in found.items() if name != "cache_control" and name[:1] != "_"}
    if kept.keys() == {"type", "text"}:
        return kept["text"]
    if isinstance(content := kept.get("content"), list) and len(content) == 1:
        kept["content"] = content[0]
    return kept


@dataclass
class Conversation:
    """What the model sees, growing while the door answers calls itself."""

    messages: list[Chat]
    start: int
    """Where the words of the turn end."""
    place: Place
    """The conversation as the agent sent it."""
    scene: Scene
    offer: Offer
    before: int = 0
    """How many of the agent's own tools were called in earlier turns."""
    refused: frozenset[int] = frozenset()
    """Places of replies that a defence answered, and asked on: their calls are none of the agent's."""

    @property
    def turn(self) -> int:
        """How many replies with calls it holds of its turn."""
        return sum(map(bool, self._calls()))

    @property
    def called(self) -> int:
        """How many of the agent's own tools were called in all."""
        calls = (self._meant(call) for one in self._calls() for call in one)
        return self.before + sum(meant.own is not None for meant in calls)

    def _calls(self) -> list[list[Called]]:
        """The calls of each message of the turn."""
        turn = enumerate(self.messages[self.start :], self.start)
        return [[] if place in self.refused else calls_of(message) for place, message in turn]

    def _meant(self, call: Called) -> Meant:
        return self.offer.meant(call["name"], call["arguments"])

    def faulted(self, plan: Plan, session: Session) -> tuple[list[Chat], list[Replaced], list[Replaced]]:
        """The messages with faults in place of results; which results of the last calls were replaced, and
        which were spared because their tool may write."""
        out, turn = list(self.messages), self.turn
        replaced: list[Replaced] = []
        spared: list[Replaced] = []
        number, batch = self.before, 0
        waiting: dict[str, tuple[Called, str | None, Fault | None]] = {}
        """Of the last calls: the agent's name of the tool, and what the result meets."""
        turns = enumerate(zip(self.messages[self.start :], self._calls(), strict=True), self.start)
        for place, (message, calls) in turns:
            if calls or place in self.refused:
                batch, waiting = batch + bool(calls), {}
            for call in calls:
                meant = self._meant(call)
                number += meant.own is not None
                fault = self.scene.met(plan, session, batch, number, meant[:2])
                waiting.setdefault(call["id"], (call, meant.own, fault))
            if message.get("role") != "tool" or str(message.get("tool_call_id")) not in waiting:
                continue
            call, own, fault = waiting[str(message["tool_call_id"])]
            held_up = fault is not None and fault.kind == "latency"
            spares = own is not None and not held_up and not plan.may_replace(own)
            text = told = text_of(message.get("content"))
            if fault is not None and not spares:
                told = fault.answer(text or "")
            if told is not None:
                told = self.scene.told(told, injected=told is not text)
                out[place] = message if told == text else {**message, "content": told}
            if fault is None:
                continue
            if batch == turn:
                label = "no_effect" if own is None else "after_effect"
                met = Replaced(
                    call=call["id"],
                    tool=own or call["name"],
                    kind=fault.kind,
                    label=label,
                    seconds=fault.waits,
                )
                (spared if spares else replaced).append(met)
        return out, replaced, spared


def calls_of(message: Mapping[str, Json]) -> list[Called]:
    """The calls of an assistant's message that can be read."""
    calls = message.get("tool_calls") if message.get("role") == "assistant" else None
    return [
        Called(id=str(raw.get("id")), name=name, arguments=str(raw["function"].get("arguments") or ""))
        for raw in (calls if isinstance(calls, list) else ())
        if (name := rewrite.name_of(raw)) is not None
    ]


def conversation(
    body: Chat,
    turns: Sequence[tuple[Scene, Offer]],
    session: Session,
    plan: Plan,
    remembered: Held,
    keys: Sequence[bytes],
) -> Conversation:
    """The agent's request as the model has to see it, results of its last turn not yet faulted.

    `turns`: of the case (`rewrite.turns_of`); each begins where the conversation holds its words, and what
    stands before them stays as the model saw it then. `keys`: of the request's messages (`keys_of`). Raises
    NotTheCase.
    """
    messages: list[Chat] = body["messages"]
    places = [(str(session), turns[0][0].code, key) for key in keys]
    begin = 0
    past: list[Chat] = []
    before = 0
    refused = frozenset[int]()
    for number, (scene, offered) in enumerate(turns):
        shown = scene.shown
        clean, row = (scene.clean, shown) if number == 0 else (of_turn(scene.clean), of_turn(shown))
        begun, taken = rewrite.as_in_row(messages[begin:], clean, clean if scene.clean is shown else row)
        start, end = begin + taken, None
        if number + 1 < len(turns):
            end = rewrite.next_turn(messages, start, of_turn(turns[number + 1][0].clean))
        rest, answered = _followed(messages[start:end], places[start:], offered, remembered)
        first = len(past) + len(begun)
        refused |= {first + place for place in answered}
        found = Conversation([*past, *begun, *rest], first, places[-1], scene, offered, before, refused)
        if end is None:
            break
        past, before = found.faulted(plan, session)[0], found.called
        begin = end
    return found


def _followed(
    messages: Sequence[Chat], places: Sequence[Place], offered: Offer, remembered: Held
) -> tuple[list[Chat], set[int]]:
    """What follows the words of a turn, with what the agent never saw of it, and which replies in it a
    defence answered. `places`: before each message."""
    found: list[Chat] = []
    refused: set[int] = set()
    waiting: list[Json] = []
    for message, here in zip(messages, places, strict=False):
        if waiting and message.get("role") != "tool":
            found += waiting
            waiting = []
        kept = remembered.get(here) if message.get("role") == "assistant" else None
        if kept is None:
            found.append(_named(message, offered))
            continue
        refused |= {len(found) + place for place in kept.refused}
        found += kept.before
        same = [call["id"] for call in calls_of(message)] == kept.calls
        found.append(dict(kept.reply) if same else _named(message, offered))
        waiting = kept.answers if same else []
    return [*found, *waiting], refused


def _named(message: Chat, offered: Offer) -> Chat:
    """A message with the model's names of the tools that it calls."""
    calls = message.get("tool_calls")
    if message.get("role") != "assistant" or not isinstance(calls, list):
        return dict(message)
    named = [offered.named(raw) if isinstance(raw, dict) else raw for raw in calls]
    return {**message, "tool_calls": named}


class Split(NamedTuple):
    """A reply taken apart."""

    out: Chat
    """What the agent gets."""
    reply: Chat
    """What the model said, as its next request holds it."""
    answers: list[Chat]
    """The door's answers to calls that do not go out."""
    held: list[dict[str, Json]]
    """Those calls, for the journal."""
    sent: tuple[str, ...]
    """Ids of the calls that go out."""

    @property
    def changed(self) -> bool:
        """Whether the agent's copy is not what the model said."""
        return bool(self.held) or calls_of(self.out) != calls_of(self.reply)


def split(message: Chat, offered: Offer) -> Split:
    """What of a reply goes out, in the agent's names."""
    out, answers, kept, sent = [], [], [], []
    for raw in message.get("tool_calls") or ():
        if (name := rewrite.name_of(raw)) is None:
            out.append(raw)
            continue
        arguments, call_id = raw["function"].get("arguments"), raw.get("id")
        meant = offered.meant(name, arguments if isinstance(arguments, str) else "")
        if meant.own is None:
            answers.append({"role": "tool", "tool_call_id": call_id, "content": meant.answer})
            kept.append({"id": call_id, "name": name, "answer": meant.answer})
            continue
        sent.append(str(call_id))
        new = {"arguments": meant.arguments} if isinstance(arguments, str) else {}
        out.append({**raw, "function": {**raw["function"], "name": meant.own, **new}})
    said = {"role": "assistant", "content": message.get("content") or None}
    said |= {name: value for name, value in message.items() if name.startswith("_")}  # a dialect's items
    shown = {name: value for name, value in message.items() if name != "tool_calls"}
    if message.get("tool_calls"):
        said["tool_calls"] = list(message["tool_calls"])
    if out or (message.get("tool_calls") is not None and not kept):
        shown["tool_calls"] = out
    return Split(shown, said, answers, kept, tuple(sent))


def kept_of(asked: Conversation, began: int, last: Split) -> Kept | None:
    """What the agent does not see of a reply, and of those before it that the door has answered; None for
    nothing. `began`: messages when the agent's request came."""
    before = asked.messages[began:]
    if not before and not last.changed:
        return None
    refused = sorted(place - began for place in asked.refused if place >= began)
    return Kept(before, last.reply, list(last.sent), last.answers, refused)


def asking(scene: Scene, tools: Sequence[Json]) -> defences.Asking | None:
    """The defences at work, where one of them may answer a reply and ask on; else None. `tools`: those of the
    agent's request."""
    if scene.skipped == TOOLS_UNREAD or not any(one.requests for one in scene.defences):
        return None
    # Each sees the tools as those before it leave them.
    offered = rewrite.offer(tools, scene._replace(defences=()))
    row = replace(
        scene.row,
        messages=(schema.Message("user", ""),),  # the tools alone matter
        tools=rewrite.tools_of(offered.entries),
        injected_error=None,
    )
    found = defences.reply(scene.defences, defences.Scene(row, row, (), _calls, noticed=set()))
    next(found)  # the request that the model is asked anyway
    return found


def _calls(row: schema.Sample, answer: Answer) -> tuple[schema.Call, ...]:
    given = ((one["name"], loaded(one["arguments"])) for one in answer.tool_calls or ())
    return tuple(schema.Call(name, said if isinstance(said, dict) else {}) for name, said in given)


def answered(defence: defences.Asking | None, calls: Sequence[Called]) -> Sequence[str] | None:
    """What a defence answers the calls of a reply with, before it asks on; None: the reply goes on."""
    if defence is None or not calls:
        return None
    try:
        said = Answer(id="", repeat=0, number=1, status="ok", tool_calls=list(calls))
        return defence.send(said).turns[-1].results
    except StopIteration:
        return None
