"""JSON-RPC messages as MCP sends them, and answers in the form of their revision of the protocol."""

import json
from collections.abc import Mapping
from typing import TypeAlias

from robustbench_tc.schema import Json

Message: TypeAlias = dict[str, Json]

MOST = 2**25
"""Bytes of a message: 32 MB."""

_REVISION = "io.modelcontextprotocol/protocolVersion"


def read(data: bytes) -> Message | None:
    """A message; None for what is none, a batch among them."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def written(message: Mapping[str, Json]) -> bytes:
    """A message as one line, without its end."""
    try:
        return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:  # half a character: as the escape that it came as
        return json.dumps(message, separators=(",", ":")).encode()


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


def tool_result(request: Mapping[str, Json], text: str, *, failed: bool = False) -> Message:
    """The answer to a tool call in one text."""
    return result(request, {"content": [{"type": "text", "text": text}], "isError": failed})


def own_list(request: Mapping[str, Json], own: str, cursor: Json = None) -> Message:
    """A question of the door's own for the tools, in the client's words. `own`: its id."""
    about = {name: value for name, value in meta(request).items() if name != "progressToken"}
    wanted: dict[str, Json] = {"_meta": about} if about else {}
    if cursor is not None:
        wanted["cursor"] = cursor
    asked: Message = {"jsonrpc": "2.0", "id": own, "method": "tools/list"}
    return {**asked, "params": wanted} if wanted else asked


def changed(subscription: Json = None) -> Message:
    """The notice that the list of tools is another one."""
    notice: Message = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
    if subscription is not None:
        notice["params"] = {"_meta": {"io.modelcontextprotocol/subscriptionId": subscription}}
    return notice
