"""What MCP sends: JSON-RPC messages, answers in the form of their revision of the protocol, and the tools of
a server as a session's client is shown them."""

import json
import re
import secrets
from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from robustbench_tc.schema import Json

from ..plan import Session
from ..rewrite import NOT_EXPRESSIBLE, Meant, NotTheCase, Offer, entry_of, listed_as, offer
from ..scenes import TOOLS_UNREAD, Scene, Scenes, inside, loaded, tool_of
from ..sse import MOST

Message: TypeAlias = dict[str, Json]

TOO_LONG = f"a message of more than {MOST:,} bytes"

_HEAD = 2**16
_ID = re.compile(rb'"id"\s*:\s*("(?:[^"\\\x00-\x1f]|\\["\\/bfnrt])*"|-?\d{1,18})')

_REVISION = "io.modelcontextprotocol/protocolVersion"
_SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"


def parse_message(data: bytes) -> Message:
    """A message; {} for what is none, a batch among them."""
    found = loaded(data)
    return found if isinstance(found, dict) else {}


def text(message: Mapping[str, Json]) -> str:
    """A message as one line, without its end; in ASCII, so that half a character stays the escape it was."""
    return json.dumps(message, separators=(",", ":"))


def ids_in(head: bytes) -> list[Json]:
    """What may be the id of a message above the limit, by its beginning, the likeliest first."""
    return [json.loads(one) for one in _ID.findall(head, 0, _HEAD)]


def key(request_id: Json) -> str:
    """A request's id as a key: 1 and "1" are two. That of None is no request's."""
    return json.dumps(request_id)


def result(request: Mapping[str, Json], found: dict[str, Json]) -> Message:
    """An answer. Since revision 2026-07-28 a result says of itself that it is complete."""
    stateless = isinstance(inside(request, "params", "_meta", _REVISION), str)
    body = {"resultType": "complete", **found} if stateless else found
    return {"jsonrpc": "2.0", "id": request["id"], "result": body}


def failure(request_id: Json, said: str) -> Message:
    """An answer that there is none."""
    return {"jsonrpc": "2.0", "id": request_id, "error": {"code": -32603, "message": said}}


def text_result(text: str, *, failed: bool = False) -> dict[str, Json]:
    """The result of a tool call in one text."""
    return {"content": [{"type": "text", "text": text}], "isError": failed}


def own_list(request: Mapping[str, Json], cursor: Json) -> Message:
    """A question of the door's own for the tools, in the client's words; its id is no client's."""
    about = inside(request, "params", "_meta")
    about = about if isinstance(about, dict) else {}
    wanted: Message = {"_meta": {name: value for name, value in about.items() if name != "progressToken"}}
    if cursor is not None:
        wanted["cursor"] = cursor
    return {"jsonrpc": "2.0", "id": secrets.token_hex(16), "method": "tools/list", "params": wanted}


def wants_changes(message: Mapping[str, Json]) -> bool:
    """Whether a request subscribes to changes of the tools (since revision 2026-07-28)."""
    wanted = inside(message, "params", "notifications", "toolsListChanged")
    return message.get("method") == "subscriptions/listen" and wanted is True


def cancelled(message: Mapping[str, Json]) -> str:
    """The key of the request that a notification takes back; of None for another message."""
    taken_back = message.get("method") == "notifications/cancelled"
    return key(inside(message, "params", "requestId") if taken_back else None)


def changed(subscription: Json = None) -> Message:
    """The notice that the list of tools is another one."""
    about = {} if subscription is None else {"params": {"_meta": {_SUBSCRIPTION: subscription}}}
    return {"jsonrpc": "2.0", "method": "notifications/tools/list_changed", **about}


_SCHEMA = "inputSchema"


class Listing(NamedTuple):
    """What a client was shown."""

    tools: list[Json]
    """Entries of the list."""
    scene: Scene
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
        entries = [entry_of(tool, _SCHEMA) for tool in tools]
        functions = tuple(tool_of(entry["function"]) for entry in entries)
    except ValueError:
        return Listing(tools, scenes.scene_of(session, (), (), TOOLS_UNREAD))
    scene = scenes.scene_of(session, (), functions)
    if scene.skipped is not None:
        return Listing(tools, scene)
    try:
        if scene.row.messages != scene.clean.messages:  # the request is not the server's to see
            raise NotTheCase(NOT_EXPRESSIBLE)
        offered = offer(entries, scene)
        shown = [listed_as(entry, _SCHEMA) for entry in offered.entries]
        if any(inside(tool, _SCHEMA, "type") != "object" for tool in shown):
            raise NotTheCase(NOT_EXPRESSIBLE)  # one such root spoils the whole list for clients
        if shown == tools:
            return Listing(tools, scene)
        if not asked:
            raise NotTheCase("list_not_asked_for")
    except NotTheCase as reason:
        return Listing(tools, scenes.scene_of(session, (), functions, str(reason)))
    return Listing(shown, scene, offered)
