"""The tools of a server as a session's client is shown them."""

import json
from typing import NamedTuple

from robustbench_tc.schema import Json

from ..plan import Session
from ..rewrite import NOT_EXPRESSIBLE, Meant, NotTheCase, Offer, offer
from ..scenes import TOOLS_UNREAD, Scene, Scenes, inside, tool_of

_ITSELF = "_mcp"
"""Where the entry that goes through the offer keeps the server's own."""


class Listing(NamedTuple):
    """What a client was shown."""

    tools: list[Json]
    """Entries of the list."""
    scene: Scene | None = None
    offer: Offer | None = None
    """None: the server's tools as they are."""

    def meant(self, name: str, arguments: dict[str, Json]) -> Meant:
        """What a call means: the server's tool and arguments, or None and the door's own answer."""
        text = json.dumps(arguments)
        return Meant(name, text) if self.offer is None else self.offer.meant(name, text)


def listed(tools: list[Json], scenes: Scenes, session: Session, *, asked: bool) -> Listing:
    """The tools as the session's type has them; as they are where it cannot be expressed, with the reason.
    `asked`: whether it is the client that wants the list."""
    try:
        entries = [_entry(tool) for tool in tools]
        functions = tuple(tool_of(entry["function"]) for entry in entries)
    except ValueError:
        return Listing(tools, scenes.of(session, (), (), TOOLS_UNREAD))
    scene = scenes.of(session, (), functions)
    if scene.skipped is not None:
        return Listing(tools, scene)
    try:
        if scene.row.messages != scene.clean.messages:  # the request is not the server's to see
            raise NotTheCase(NOT_EXPRESSIBLE)
        offered = offer(entries, scene)
        shown = [_shown(entry) for entry in offered.entries]
        if any(inside(tool, "inputSchema", "type") != "object" for tool in shown):
            raise NotTheCase(NOT_EXPRESSIBLE)  # one such root spoils the whole list for clients
        if shown == tools:
            return Listing(tools, scene)
        if not asked:
            raise NotTheCase("list_not_asked_for")
    except NotTheCase as reason:
        return Listing(tools, scenes.of(session, (), functions, str(reason)))
    return Listing(shown, scene, offered)


def _entry(tool: Json) -> dict[str, Json]:
    """A server's tool as an entry of an offer, which `tool_of` refuses for what is none."""
    function = {"name": inside(tool, "name"), "parameters": inside(tool, "inputSchema")}
    if isinstance(inside(tool, "description"), str):
        function["description"] = tool["description"]
    return {"function": function, _ITSELF: tool}


def _shown(entry: Json) -> Json:
    """An entry of an offer as a server lists a tool; what the server says beside is kept."""
    function = entry["function"]
    tool = {**entry.get(_ITSELF, {}), "name": function["name"], "inputSchema": function["parameters"]}
    if function.get("description"):
        tool["description"] = function["description"]
    elif "description" not in function:
        tool.pop("description", None)
    return tool
