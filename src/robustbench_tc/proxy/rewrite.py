"""A request in the words and with the tools of a row.

An agent may put its own instructions around the case: what the row changes is changed where the case's own
words stand, the rest stays. Its tools become the row's, and an offer knows what a call of one of them means.
"""

from collections.abc import Collection, Mapping, Sequence
from itertools import takewhile
from types import MappingProxyType
from typing import NamedTuple

from robustbench_tc.eval import prompts, wire
from robustbench_tc.eval.defend.again import is_strict, strict
from robustbench_tc.own.cases import NO_RESULT
from robustbench_tc.schema import Json, Message, Sample, Tool, dumps
from robustbench_tc.worlds.fit import error, fits

from .journal import OTHER_TOOLS
from .scenes import Scene, arguments_back, as_row, inside, loaded, origins, tool_of

NOT_EXPRESSIBLE = "not_expressible"
"""Why a type is not shown: its tools cannot be, or it is more than tools."""


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
        self.offered, self._extras = tuple(offered), extras
        self.entries = [*(one.raw for one in offered), *extras]
        self._registered = frozenset(registered)
        self.in_row = {one.name: one.row for one in offered}
        """By a tool's name, that before any defence."""
        self._forward = {one.own: one.name for one in offered if one.own is not None}
        self.repeats_names = len(self.in_row) < len(self.offered)
        self.is_plain = (
            not self.repeats_names
            and self._registered <= self._forward.keys()
            and all(one.own == one.name for one in offered)
            and all(one.clean is None or one.clean.parameters == one.tool.parameters for one in offered)
        )
        """Whether every call goes out as the model wrote it."""

    def without(self, gone: Collection[str]) -> "Offer":
        """The offer once the agent's tools of these names are there no more."""
        there = [one for one in self.offered if one.own not in gone]
        extras = [raw for raw in self._extras if name_of(raw) not in gone]
        return Offer(there, [*self._registered, *gone], extras) if gone else self

    def named(self, choice: dict[str, Json]) -> dict[str, Json]:
        """A call, or a `tool_choice` of any API (one tool, or several that are allowed), in the model's
        names."""
        found = dict(choice)
        for key in ("function", "allowed_tools"):
            if isinstance(found.get(key), dict):
                found[key] = self.named(found[key])
        if isinstance(found.get("name"), str) and found.get("type", "function") in ("function", "tool"):
            found["name"] = self._forward.get(found["name"], found["name"])
        if isinstance(tools := found.get("tools"), list):
            found["tools"] = [self.named(one) if isinstance(one, dict) else one for one in tools]
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
        if found.clean is None:
            return Meant(None, arguments, dumps(NO_RESULT))
        return Meant(found.own, arguments_back(found.clean, found.tool, arguments))


def offer(tools: Sequence[Json], scene: Scene) -> Offer:
    """The agent's tools as the scene has them.

    Raises NotTheCase where no tool is the case's, and where a tool of the agent's beyond the case has the
    name of one that would come in.
    """
    clean, row, shown = scene.clean, scene.row, scene.shown
    names, before, sent = (wire.WireNames(one.tools) for one in (clean, row, shown))
    found: dict[int, tuple[str, Json]] = {}
    extras: list[Json] = []
    known = _tool_places(clean.tools, names)
    for raw in tools:
        name = name_of(raw)
        meant = () if name is None else (*known.get(name, ()), *known.get(names.wire(name), ()))
        place = next((at for at in meant if at not in found), None)
        if name is None or place is None:
            extras.append(raw)
        else:
            found[place] = name, raw
    if not found and clean.tools and clean is not shown:
        raise NotTheCase(OTHER_TOOLS)
    offered = []
    from_clean = origins(clean, row)
    for place, tool in enumerate(shown.tools):
        # Defences leave tools out, or give them other names.
        at = place if len(shown.tools) == len(row.tools) else row.tools.index(tool)
        origin, new, was = from_clean[at], sent.wire(tool.name), before.wire(row.tools[at].name)
        if origin is None:
            offered.append(Offered(new, tool, None, was, None, wire.function(tool, sent)))
        elif origin in found:
            own, raw = found[origin]
            old = clean.tools[origin]
            name, was = (
                own if old.name == one.name else word for one, word in ((tool, new), (row.tools[at], was))
            )
            offered.append(Offered(name, tool, own, was, old, _as_in_row(raw, old, tool, name)))
    if is_strict(scene.defences):
        marked = strict([one.raw for one in offered])
        offered = [one._replace(raw=raw) for one, raw in zip(offered, marked, strict=True)]
    beyond = {name_of(raw) for raw in extras}
    if clean is not shown and beyond & {one.name for one in offered if one.own != one.name}:
        raise NotTheCase("name_is_taken")
    return Offer(offered, [name for name, _ in found.values()], extras)


def turns_of(tools: Sequence[Json], scenes: Sequence[Scene]) -> list[tuple[Scene, Offer]]:
    """The scenes of a case's turns, with the agent's tools as each has them; a further turn that cannot have
    its type goes without. Raises NotTheCase as `offer` does for the first."""
    found: list[tuple[Scene, Offer]] = []
    for scene in scenes:
        try:
            offered = offer(tools, scene)
        except NotTheCase as error:
            if not found:
                raise
            scene = scene.unperturbed(str(error))
            offered = offer(tools, scene)
        found.append((scene, offered))
    return found


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


def name_of(raw: Json) -> str | None:
    """The name of a function among a request's tools or a message's calls; None for another kind of entry."""
    name = inside(raw, "function", "name")
    return name if isinstance(name, str) else None


_ITSELF = "_tool"
"""Where an entry keeps a tool as its API lists it."""


def entry_of(tool: Json, schema: str) -> Json:
    """A tool that another API lists, its parameters under `schema`, as an entry of an offer, which `tool_of`
    refuses for what is none."""
    function = {"name": inside(tool, "name"), "parameters": inside(tool, schema)}
    if isinstance(inside(tool, "description"), str):
        function["description"] = tool["description"]
    return {"function": function, _ITSELF: tool}


def listed_as(entry: Json, schema: str, new: Mapping[str, Json] = MappingProxyType({})) -> Json:
    """The other way round; what the API says of the tool beside is kept, of one that comes in it is `new`."""
    if name_of(entry) is None:  # no function: as it is
        return entry
    beside = {name: value for name, value in entry.get(_ITSELF, new).items() if name != "description"}
    function = {name: value for name, value in entry["function"].items() if name != "parameters"}
    return {**beside, **function, schema: entry["function"]["parameters"]}


def tools_of(entries: Sequence[Json]) -> tuple[Tool, ...]:
    """The functions among a request's tools. Raises ValueError for one that cannot be read."""
    return tuple(tool_of(raw["function"]) for raw in entries if name_of(raw) is not None)


def _as_in_row(raw: Json, old: Tool, new: Tool, name: str) -> Json:
    """The agent's entry with what the row changes."""
    if old == new:
        return raw
    edited = {**raw["function"], "name": name}
    if old.parameters != new.parameters:
        edited["parameters"] = new.parameters
    if old.description != new.description:
        edited["description"] = new.description
        if not new.description:
            del edited["description"]
    return {**raw, "function": edited}


Chat = dict[str, Json]


def texts(messages: Sequence[Mapping[str, Json]]) -> list[tuple[str, str]]:
    """Role and text of the messages before the first reply of a model."""
    first = takewhile(lambda one: one.get("role") in ("system", "developer", "user"), messages)
    return [(str(one["role"]), text_of(one.get("content")) or "") for one in first]


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
        known = _places(messages, prompts.own_messages(clean)).values()
        end = 1 + max(known) if known else len(texts(messages))  # else where a model first replies
        return [dict(one) for one in messages[:end]], end
    old, new = prompts.own_messages(clean), prompts.own_messages(row)
    places = _places(messages, old)
    last = max((at for at, one in enumerate(old) if one.role == "user"), default=None)
    if last not in places:
        raise NotTheCase("request_is_not_the_cases")
    end = 1 + max(places.values())
    paired = _pairs(old, new)
    gone = {place for at, place in places.items() if at not in paired.values()}
    found: list[Chat] = []
    at = 0
    for number, message in enumerate(new):
        was = paired.get(number)
        if was is None:
            # Native messages are one for each of `new`, with calls and results as providers take them.
            found.append(wire.first(row, "fc").messages[number])
        elif was in places:
            found += [dict(messages[one]) for one in range(at, places[was]) if one not in gone]
            found.append(_edited(messages[places[was]], old[was].content, message.content))
            at = places[was] + 1
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
    return start + min(places.values()) if last in places else None


def _places(messages: Sequence[Chat], wanted: Sequence[Message]) -> dict[int, int]:
    """By its number, where each message of the case stands in the request, in order; an assistant's
    instructions may not."""
    found: dict[int, int] = {}
    start = 0
    for number, one in enumerate(wanted):
        there = (
            at
            for at in range(start, len(messages))
            if as_row(str(messages[at].get("role"))) == one.role
            and one.content in (text_of(messages[at].get("content")) or "")
        )
        if (place := next(there, None)) is not None:
            found[number], start = place, place + 1
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
