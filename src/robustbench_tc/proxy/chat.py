"""A conversation of chat completions: as the agent sends it, and as the model has to see it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from robustbench_tc.schema import Json

from . import held, rewrite
from .held import Held, Kept
from .journal import Replaced
from .plan import Fault, Plan
from .rewrite import NotTheCase, Offer, offer
from .scenes import Scene, of_turn
from .session import Session

Chat = dict[str, Json]


class Call(NamedTuple):
    """A call of the model's."""

    id: str
    name: str
    arguments: str


@dataclass
class Conversation:
    """What the model sees, growing while the door answers calls itself."""

    messages: list[Chat]
    start: int
    """Where the words of the turn end."""
    key: bytes
    """Of the conversation as the agent sent it."""
    scene: Scene
    offer: Offer
    before: Sequence[str] = ()
    """The tools that were called in earlier turns."""

    @property
    def turn(self) -> int:
        """How many replies with calls it holds of its turn."""
        return sum(bool(calls_of(message)) for message in self.messages[self.start :])

    @property
    def called(self) -> list[str]:
        """The tools of all its calls, by the agent's names where it has one."""
        calls = (call for message in self.messages[self.start :] for call in calls_of(message))
        return [*self.before, *(self._own(call) or call.name for call in calls)]

    def _own(self, call: Call) -> str | None:
        return self.offer.meant(call.name, call.arguments).own

    def faulted(self, plan: Plan, session: Session) -> tuple[list[Chat], list[Replaced], list[Replaced]]:
        """The messages with faults in place of results; which results of the last calls were replaced, and
        which were spared because their tool may write."""
        out, turn = list(self.messages), self.turn
        replaced: list[Replaced] = []
        spared: list[Replaced] = []
        number, batch = len(self.before), 0
        waiting: dict[str, tuple[Call, str | None, Fault | None]] = {}
        """Of the last calls: the agent's name of the tool, and what the result meets."""
        for place, message in enumerate(out[self.start :], self.start):
            if calls := calls_of(message):
                batch, waiting = batch + 1, {}
            for call in calls:
                own, number = self._own(call), number + 1
                fault = self.scene.met(plan, session, batch, number, own or call.name)
                waiting.setdefault(call.id, (call, own, fault))
            if message.get("role") != "tool" or str(message.get("tool_call_id")) not in waiting:
                continue
            call, own, fault = waiting[str(message["tool_call_id"])]
            if fault is None:
                continue
            spares = own is not None and not plan.may_replace(own)
            if not spares:
                out[place] = {**message, "content": fault.answer}
            if batch == turn:
                label = "no_effect" if own is None else "after_effect"
                met = Replaced(call=call.id, tool=own or call.name, kind=fault.kind, label=label)
                (spared if spares else replaced).append(met)
        return out, replaced, spared


def calls_of(message: Mapping[str, Json]) -> list[Call]:
    """The calls of an assistant's message that can be read."""
    if message.get("role") != "assistant":
        return []
    found = []
    calls = message.get("tool_calls")
    for raw in calls if isinstance(calls, list) else ():
        function = raw.get("function") if isinstance(raw, Mapping) else None
        if isinstance(function, Mapping) and isinstance(function.get("name"), str):
            found.append(Call(str(raw.get("id")), function["name"], str(function.get("arguments") or "")))
    return found


def conversation(
    body: Chat,
    scenes: Sequence[Scene],
    session: Session,
    plan: Plan,
    remembered: Held,
    *,
    flat: bool = False,
) -> Conversation:
    """The agent's request as the model has to see it, results of its last turn not yet faulted.

    `scenes`: of the case's turns; each begins where the conversation holds its words, and what stands before
    them stays as the model saw it then. Raises NotTheCase and Lost.
    """
    messages: list[Chat] = body["messages"]
    tools = body.get("tools") or ()
    keys = list(held.keys(f"{session} {scenes[0].code}", messages))
    begin = 0
    past: list[Chat] = []
    before: list[str] = []
    for number, scene in enumerate(scenes):
        try:
            offered = offer(tools, scene.clean, scene.row, flat=flat)
        except NotTheCase as error:
            if number == 0:
                raise
            scene = scene._replace(row=scene.clean, skipped=str(error))
            offered = offer(tools, scene.clean, scene.row, flat=flat)
        words = (scene.clean, scene.row) if number == 0 else (of_turn(scene.clean), of_turn(scene.row))
        words = (words[0], words[0]) if scene.clean is scene.row else words
        begun, taken = rewrite.as_in_row(messages[begin:], *words)
        start, end = begin + taken, None
        if number + 1 < len(scenes):
            end = rewrite.next_turn(messages, start, of_turn(scenes[number + 1].clean))
        rest = _followed(messages[start:end], keys[start:], offered, remembered)
        found = Conversation([*past, *begun, *rest], len(past) + len(begun), keys[-1], scene, offered, before)
        if end is None:
            break
        past, before = found.faulted(plan, session)[0], found.called
        begin = end
    return found


def _followed(
    messages: Sequence[Chat], keys: Sequence[bytes], offered: Offer, remembered: Held
) -> list[Chat]:
    """What follows the words of a turn, with what the agent never saw of it. `keys`: before each message."""
    found: list[Chat] = []
    waiting: tuple[Json, ...] = ()
    for message, here in zip(messages, keys, strict=False):
        if waiting and message.get("role") != "tool":
            found += waiting
            waiting = ()
        kept = remembered.get(here) if message.get("role") == "assistant" else None
        if kept is None:
            found.append(_named(message, offered))
            continue
        found += kept.before
        same = kept.reply is not None and tuple(call.id for call in calls_of(message)) == kept.calls
        found.append(dict(kept.reply) if same else _named(message, offered))
        waiting = kept.answers if same else ()
    return [*found, *waiting]


def _named(message: Chat, offered: Offer) -> Chat:
    """A message with the model's names of the tools that it calls."""
    calls = message.get("tool_calls")
    if message.get("role") != "assistant" or not isinstance(calls, list):
        return dict(message)
    return {**message, "tool_calls": [_renamed(raw, offered) for raw in calls]}


def _renamed(raw: Json, offered: Offer) -> Json:
    function = raw.get("function") if isinstance(raw, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        return raw
    return {**raw, "function": {**function, "name": offered.forward(function["name"])}}


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
        function = raw.get("function") if isinstance(raw, Mapping) else None
        if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
            out.append(raw)
            continue
        name, arguments = function["name"], function.get("arguments")
        meant = offered.meant(name, arguments if isinstance(arguments, str) else "")
        call_id = raw.get("id")
        if meant.own is None:
            answers.append({"role": "tool", "tool_call_id": call_id, "content": meant.answer})
            kept.append({"id": call_id, "name": name, "answer": meant.answer})
            continue
        sent.append(str(call_id))
        new = {**function, "name": meant.own}
        if isinstance(arguments, str):
            new["arguments"] = meant.arguments
        out.append({**raw, "function": new})
    said = {"role": "assistant", "content": message.get("content") or None}
    if message.get("tool_calls"):
        said["tool_calls"] = list(message["tool_calls"])
    said |= {name: value for name, value in message.items() if name.startswith("_")}  # a dialect's items
    shown = {name: value for name, value in message.items() if name != "tool_calls"}
    if out or (message.get("tool_calls") is not None and not kept):
        shown["tool_calls"] = out
    return Split(shown, said, answers, kept, tuple(sent))


def keep(remembered: Held, asked: Conversation, began: int, last: Split) -> tuple[bytes, Kept | None] | None:
    """Remembers what the agent does not see of a reply, or that there is no such thing any more; returned is
    what a journal has to hold of it. `began`: messages when the agent's request came."""
    before = tuple(asked.messages[began:])
    if before or last.changed:
        kept = Kept(
            before=before,
            reply=last.reply if last.changed else None,
            calls=last.sent,
            answers=tuple(last.answers),
        )
        remembered.put(asked.key, kept)
        return asked.key, kept
    return (asked.key, None) if remembered.forget(asked.key) else None
