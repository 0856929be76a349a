"""A request in the words and with the tools of a row.

An agent may put its own instructions around the case: what the row changes is changed where the case's own
words stand, the rest stays. Its tools become the row's, and an offer knows what a call of one of them means.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from robustbench_tc.eval import prompts, wire
from robustbench_tc.eval.defend.again import is_strict, strict
from robustbench_tc.own.cases import NO_RESULT
from robustbench_tc.schema import Json, Message, Sample, Tool, dumps
from robustbench_tc.worlds.fit import error, fits

from .scenes import Scene, arguments_back, as_row, loaded, origins

NOT_EXPRESSIBLE = "not_expressible"
"""The provider refuses tools of one name."""


class Offered(NamedTuple):
    """One tool as the model sees it."""

    name: str
    tool: Tool
    own: str | None
    """The name under which the agent registered it; None for a tool of the door's."""
    row: str
    """Its name in a request with the row's tools, before any defence."""
    clean: Tool | None
    raw: Json
    """Its entry of the request."""


class Meant(NamedTuple):
    """What a call of the model's means."""

    own: str | None
    """The agent's name of the tool; None: the call does not go out."""
    arguments: str
    answer: str = ""
    """What the door answers a call that does not go out."""


class NotTheCase(ValueError):
    """A request is not about the case that its session names; a reason in a word."""


class Offer:
    """The tools of one request."""

    def __init__(self, offered: Sequence[Offered], registered: Sequence[str], extras: Sequence[Json]) -> None:
        """`registered`: the agent's names. `extras`: entries that are not functions of the case."""
        self.offered = tuple(offered)
        self.entries = [*(one.raw for one in offered), *extras]
        self._registered = frozenset(registered)
        self.in_row = {one.name: one.row for one in offered}
        """By a tool's name, that before any defence."""
        self._forward = {one.own: one.name for one in offered if one.own is not None}
        names = Counter(one.name for one in offered)
        self.repeats_names = any(number > 1 for number in names.values())
        self.is_plain = not self.repeats_names and self._registered <= self._forward.keys()
        """Whether every call goes out as the model wrote it."""
        for one in offered:
            same = one.clean is None or one.clean.parameters == one.tool.parameters
            self.is_plain &= one.own == one.name and same

    def forward(self, own: str) -> str:
        """The model's name for a tool of the agent's."""
        return self._forward.get(own, own)

    def chosen(self, choice: dict[str, Json]) -> dict[str, Json]:
        """A `tool_choice` in the model's names, of either API: one tool, or several that are allowed."""
        found = dict(choice)
        for key in ("function", "allowed_tools"):
            if isinstance(found.get(key), dict):
                found[key] = self.chosen(found[key])
        if isinstance(found.get("name"), str) and found.get("type", "function") == "function":
            found["name"] = self.forward(found["name"])
        if isinstance(tools := found.get("tools"), list):
            found["tools"] = [self.chosen(one) if isinstance(one, dict) else one for one in tools]
        return found

    def meant(self, name: str, arguments: str) -> Meant:
        """What a call means. Of several tools of one name it goes to the first whose schema the arguments
        fit, else to the agent's own."""
        named = [one for one in self.offered if one.name == name]
        if not named:
            if name in self._registered:  # the row took it away, or gave it another name
                return Meant(None, arguments, error(f"there is no tool {name}"))
            return Meant(name, arguments)
        found = min(named, key=lambda one: one.own is None)
        if len(named) > 1:
            given = loaded(arguments)
            fitting = (one for one in named if isinstance(given, dict) and fits(one.tool.parameters, given))
            found = next(fitting, found)
        if found.own is None:
            return Meant(None, arguments, dumps(NO_RESULT))
        if found.clean is None:
            return Meant(found.own, arguments)
        return Meant(found.own, arguments_back(found.clean, found.tool, arguments))


def offer(tools: Sequence[Json], scene: Scene, *, flat: bool = False) -> Offer:
    """The agent's tools as the scene has them. `flat`: entries of the Responses API.

    Raises NotTheCase where no tool is the case's, and where a tool of the agent's beyond the case has the
    name of one that would come in.
    """
    clean, row, shown = scene.clean, scene.row, scene.shown
    names, before, sent = (wire.WireNames(one.tools) for one in (clean, row, shown))
    found: dict[int, tuple[str, Json]] = {}
    extras: list[Json] = []
    registered: list[str] = []
    known = _tool_places(clean.tools, names)
    for raw in tools:
        name = name_of(raw, flat)
        meant = () if name is None else (*known.get(name, ()), *known.get(names.wire(name), ()))
        place = next((at for at in meant if at not in found), None)
        if name is None or place is None:
            extras.append(raw)
        else:
            registered.append(name)
            found[place] = name, raw
    if not found and clean.tools and clean is not shown:
        raise NotTheCase("tools_are_not_the_cases")
    offered = []
    from_clean = origins(clean, row)
    for place, tool in enumerate(shown.tools):
        # Defences leave tools out, or give them other names.
        at = place if len(shown.tools) == len(row.tools) else row.tools.index(tool)
        origin, new, was = from_clean[at], sent.wire(tool.name), before.wire(row.tools[at].name)
        if origin is None:
            entry = wire.function(tool, sent)
            if flat:
                entry = {"type": "function", **entry["function"], "strict": False}
            offered.append(Offered(new, tool, None, was, None, entry))
        elif origin in found:
            own, raw = found[origin]
            old = clean.tools[origin]
            name, was = (
                own if old.name == one.name else word for one, word in ((tool, new), (row.tools[at], was))
            )
            raw = _as_in_row(raw, old, tool, name, flat)
            offered.append(Offered(name, tool, own, was, old, raw))
    if is_strict(scene.defences):
        offered = [one._replace(raw=_strict(one.raw, flat)) for one in offered]
    beyond = {name_of(raw, flat) for raw in extras}
    if clean is not shown and beyond & {one.name for one in offered if one.own != one.name}:
        raise NotTheCase("name_is_taken")
    return Offer(offered, registered, extras)


def _strict(raw: Json, flat: bool) -> Json:
    [found] = strict([{"function": raw} if flat else raw])
    return found["function"] if flat else found


def _tool_places(tools: Sequence[Tool], names: wire.WireNames) -> dict[str, list[int]]:
    """The places of the case's tools by the names that an agent may register them under."""
    found: dict[str, list[int]] = {}
    for at, tool in enumerate(tools):
        found.setdefault(names.wire(tool.name), []).append(at)
    for at, tool in enumerate(tools):
        # Listed as `crm:find`, because another server has a `find` too: the agent may know it as `find`.
        prefix, _, short = tool.name.partition(":")
        if prefix and short:
            found.setdefault(short, []).append(at)
    return found


def name_of(raw: Json, flat: bool) -> str | None:
    """The name of a function among a request's tools; None for another kind of entry."""
    if not isinstance(raw, dict) or raw.get("type", "function") != "function":
        return None
    function = raw if flat else raw.get("function")
    name = function.get("name") if isinstance(function, dict) else None
    return name if isinstance(name, str) else None


def _as_in_row(raw: Json, old: Tool, new: Tool, name: str, flat: bool) -> Json:
    """The agent's entry with what the row changes."""
    if old == new:
        return raw
    edited = {**(raw if flat else raw["function"]), "name": name}
    if old.parameters != new.parameters:
        edited["parameters"] = new.parameters
    if old.description != new.description:
        edited["description"] = new.description
        if not new.description:
            del edited["description"]
    return edited if flat else {**raw, "function": edited}


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
