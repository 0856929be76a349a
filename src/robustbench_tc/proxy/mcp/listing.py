"""The tools of a server as a session's client is shown them."""

import json
from collections.abc import Sequence
from typing import NamedTuple

from robustbench_tc.schema import Json

from ..offer import NOT_EXPRESSIBLE, Meant, NotTheCase, Offer, offer
from ..scene import Scene
from ..scenes import Scenes, tool_of
from ..session import Session

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


def listed(tools: Sequence[Json], scenes: Scenes, session: Session) -> Listing:
    """The tools as the session's type has them; as they are where it cannot be expressed, with the reason."""
    plain = list(tools)
    try:
        entries = [_entry(tool) for tool in tools]
        functions = tuple(map(tool_of, entries))
    except ValueError:
        return Listing(plain, scenes.as_it_came(session, (), (), "tools_cannot_be_read"))
    scene = scenes.of(session, (), functions)
    if scene.skipped is not None:
        return Listing(plain, scene)
    if scene.row.messages != scene.clean.messages:  # the request is not the server's to see
        return Listing(plain, scenes.as_it_came(session, (), functions, NOT_EXPRESSIBLE))
    try:
        offered = offer(entries, scene.clean, scene.row, flat=True)
    except NotTheCase as reason:
        return Listing(plain, scenes.as_it_came(session, (), functions, str(reason)))
    shown = [_shown(entry) for entry in offered.entries]
    if not all(_carried(tool) for tool in shown):
        return Listing(plain, scenes.as_it_came(session, (), functions, NOT_EXPRESSIBLE))
    if shown == plain:
        return Listing(plain, scene)
    return Listing(shown, scene, offered)


def _entry(tool: Json) -> dict[str, Json]:
    """A server's tool as an entry of an offer. Raises ValueError for what is none."""
    if not isinstance(tool, dict) or not isinstance(tool.get("name"), str):
        raise ValueError("a tool without a name")
    entry = {"type": "function", "name": tool["name"], _ITSELF: tool}
    if isinstance(tool.get("description"), str):
        entry["description"] = tool["description"]
    return {**entry, "parameters": tool.get("inputSchema")}


def _shown(entry: Json) -> Json:
    """An entry of an offer as a server lists a tool; what the server says beside is kept."""
    tool: dict[str, Json] = dict(entry.get(_ITSELF) or {})
    tool["name"] = entry["name"]
    if entry.get("description") is not None and (tool.get("description") or "") != entry["description"]:
        tool["description"] = entry["description"]
    if "description" not in entry:
        tool.pop("description", None)
    if tool.get("inputSchema") != entry["parameters"]:
        tool["inputSchema"] = entry["parameters"]
    return tool


def _carried(tool: Json) -> bool:
    """Whether clients take a list with this tool: one whose root is not an object spoils the whole list."""
    schema = tool.get("inputSchema")
    return isinstance(schema, dict) and schema.get("type") == "object"
