"""The tools as the model is offered them, and what a call of one of them means to the agent."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from robustbench_tc.eval import wire
from robustbench_tc.own.cases import NO_RESULT
from robustbench_tc.schema import Json, Sample, Tool, dumps
from robustbench_tc.worlds.fit import error, fits

from .scene import arguments_back, loaded, origins

NOT_EXPRESSIBLE = "not_expressible"
"""The provider refuses tools of one name."""


class Offered(NamedTuple):
    """One tool as the model sees it."""

    name: str
    tool: Tool
    own: str | None
    """The name under which the agent registered it; None for a tool of the door's."""
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


def offer(tools: Sequence[Json], clean: Sample, row: Sample, *, flat: bool = False) -> Offer:
    """The agent's tools as the row has them. `flat`: entries of the Responses API.

    Raises NotTheCase where no tool is the case's, and where a tool of the agent's beyond the case has the
    name of one that would come in.
    """
    names, sent = wire.WireNames(clean.tools), wire.WireNames(row.tools)
    found: dict[int, tuple[str, Json]] = {}
    extras: list[Json] = []
    registered: list[str] = []
    known = _places(clean.tools, names)
    for raw in tools:
        name = name_of(raw, flat)
        meant = () if name is None else (*known.get(name, ()), *known.get(names.wire(name), ()))
        place = next((at for at in meant if at not in found), None)
        if name is None or place is None:
            extras.append(raw)
        else:
            registered.append(name)
            found[place] = name, raw
    if not found and clean.tools and clean is not row:
        raise NotTheCase("tools_are_not_the_cases")
    offered = []
    for origin, tool in zip(origins(clean, row), row.tools, strict=True):
        new = sent.wire(tool.name)
        if origin is None:
            entry = wire.function(tool, sent)
            if flat:
                entry = {"type": "function", **entry["function"], "strict": False}
            offered.append(Offered(new, tool, None, None, entry))
        elif origin in found:
            own, raw = found[origin]
            old = clean.tools[origin]
            name = own if old.name == tool.name else new
            raw = _as_in_row(raw, old, tool, name, flat)
            offered.append(Offered(name, tool, own, old, raw))
    beyond = {name_of(raw, flat) for raw in extras}
    if clean is not row and beyond & {one.name for one in offered if one.own != one.name}:
        raise NotTheCase("name_is_taken")
    return Offer(offered, registered, extras)


def _places(tools: Sequence[Tool], names: wire.WireNames) -> dict[str, list[int]]:
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
    if old is new or old == new:
        return raw
    function = raw if flat else raw["function"]
    edited: dict[str, Json] = {}
    for key, value in function.items():
        if key == "description" and old.description != new.description:
            continue
        if key == "parameters" and old.parameters != new.parameters:
            value = new.parameters
        edited[key] = name if key == "name" else value
        if key == "name" and new.description and old.description != new.description:
            edited["description"] = new.description
    if old.parameters != new.parameters:
        edited["parameters"] = new.parameters
    return edited if flat else {**raw, "function": edited}
