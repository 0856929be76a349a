"""JSON-RPC messages as MCP sends them, and answers in the form of their revision of the protocol."""

import json
import re
from collections.abc import Mapping
from typing import TypeAlias

from robustbench_tc.schema import Json

Message: TypeAlias = dict[str, Json]

MOST = 2**25
"""Bytes of a message: 32 MB."""
TOO_LONG = f"a message of more than {MOST:,} bytes"

_HEAD = 2**16
_ID = re.compile(rb'"id"\s*:\s*("(?:[^"\\\x00-\x1f]|\\["\\/bfnrt])*"|-?\d{1,18})')

_REVISION = "io.modelcontextprotocol/protocolVersion"


def read(data: bytes) -> Message | None:
    """A message; None for what is none, a batch among them."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def text(message: Mapping[str, Json]) -> str:
    """A message as one line, without its end; in ASCII, so that half a character stays the escape it was."""
    return json.dumps(message, separators=(",", ":"))


def ids_in(head: bytes) -> list[Json]:
    """What may be the id of a message above the limit, by its beginning, the likeliest first."""
    return [json.loads(one) for one in _ID.findall(head, 0, _HEAD)]


def is_request(message: Mapping[str, Json]) -> bool:
    """Whether an answer is expected."""
    return isinstance(message.get("method"), str) and message.get("id") is not None


def is_response(message: Mapping[str, Json]) -> bool:
    """Whether it answers a request."""
    return "method" not in message and message.get("id") is not None


def params(message: Mapping[str, Json]) -> dict[str, Json]:
    """The parameters of a message; {} where they are not an object."""
    found = message.get("params")
    return found if isinstance(found, dict) else {}


def meta(message: Mapping[str, Json]) -> dict[str, Json]:
    """What a message says about itself."""
    found = params(message).get("_meta")
    return found if isinstance(found, dict) else {}


def result(request: Mapping[str, Json], found: dict[str, Json]) -> Message:
    """An answer. Since revision 2026-07-28 a result says of itself that it is complete."""
    stateless = isinstance(meta(request).get(_REVISION), str)
    body = {"resultType": "complete", **found} if stateless else found
    return {"jsonrpc": "2.0", "id": request["id"], "result": body}


def failure(request: Mapping[str, Json], said: str) -> Message:
    """An answer that there is none."""
    return {"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32603, "message": said}}


def text_result(text: str, *, failed: bool = False) -> dict[str, Json]:
    """The result of a tool call in one text."""
    return {"content": [{"type": "text", "text": text}], "isError": failed}


def key(request_id: Json) -> str:
    """A request's id as a key: 1 and "1" are two."""
    return json.dumps(request_id)


def own_list(request: Mapping[str, Json], own: str, cursor: Json = None) -> Message:
    """A question of the door's own for the tools, in the client's words. `own`: its id."""
    about = {name: value for name, value in meta(request).items() if name != "progressToken"}
    wanted: dict[str, Json] = {"_meta": about} if about else {}
    if cursor is not None:
        wanted["cursor"] = cursor
    asked: Message = {"jsonrpc": "2.0", "id": own, "method": "tools/list"}
    return {**asked, "params": wanted} if wanted else asked


def wants_changes(message: Mapping[str, Json]) -> bool:
    """Whether a request subscribes to changes of the tools (since revision 2026-07-28)."""
    wanted = params(message).get("notifications")
    return (
        message.get("method") == "subscriptions/listen"
        and isinstance(wanted, dict)
        and wanted.get("toolsListChanged") is True
    )


def cancelled(message: Mapping[str, Json]) -> Json:
    """The id of the request that a notification takes back; None for another message."""
    return params(message).get("requestId") if message.get("method") == "notifications/cancelled" else None


def changed(subscription: Json = None) -> Message:
    """The notice that the list of tools is another one."""
    notice: Message = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
    if subscription is not None:
        notice["params"] = {"_meta": {"io.modelcontextprotocol/subscriptionId": subscription}}
    return notice
