"""MCP servers for the tests, each a program: `python mcp_server.py MODE`.

`sdk` and `http PORT` are the official SDK's; the others write the protocol of the handshake era by hand, and
do what no server should.
"""

import json
import os
import subprocess
import sys
import time
from typing import Any

TOOLS: list[dict[str, Any]] = [
    {
        "name": f"tool_{number}",
        "title": "A tool",
        "description": f"Does thing number {number}.",
        "inputSchema": {
            "type": "object",
            "properties": {"count": {"type": "integer", "description": "How often."}},
            "required": ["count"],
        },
        "outputSchema": {"type": "object", "properties": {"done": {"type": "boolean"}}},
        "annotations": {"readOnlyHint": number == 0},
    }
    for number in range(5)
]
NAME = "My: shop"


def sdk(port: int | None) -> None:
    import anyio
    from mcp import types
    from mcp.server.lowlevel import Server
    from mcp.server.stdio import stdio_server

    async def listed(context: Any, params: Any) -> types.ListToolsResult:
        at = int(params.cursor) if params and params.cursor else 0
        tools = [types.Tool.model_validate(one) for one in TOOLS[at : at + 2]]
        return types.ListToolsResult(tools=tools, next_cursor=str(at + 2) if at + 2 < len(TOOLS) else None)

    server: Any = Server(NAME, on_list_tools=listed)
    if port is not None:
        import uvicorn

        uvicorn.run(server.streamable_http_app(), host="127.0.0.1", port=port, log_level="error")
        return

    async def main() -> None:
        async with stdio_server() as (read, send):
            await server.run(read, send, server.create_initialization_options())

    sys.stderr.write("starting\n")
    anyio.run(main)


def write(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def say(answer: dict[str, Any]) -> None:
    write(json.dumps({"jsonrpc": "2.0", **answer}))


def page(mode: str, cursor: str | None) -> dict[str, Any]:
    """What `tools/list` says."""
    named = {**TOOLS[0], "name": "evil\u001b[2J\nname", "description": "\u202ereversed"}
    rootless = {**TOOLS[1], "inputSchema": {"properties": {}}}
    pages: dict[str, dict[str, Any]] = {
        "rootless": {"tools": [TOOLS[0], rootless]},
        "endless": {"tools": TOOLS[:1], "nextCursor": f"{cursor or ''}x"},
        "circle": {"tools": TOOLS[:1], "nextCursor": "again"},
        "many": {"tools": [{**TOOLS[0], "name": f"t{i}"} for i in range(10_001)]},
        "evil": {"tools": [named]},
        "nothing": {"tools": []},
        "odd": {"tools": "none"},
        "no-object": {"tools": [TOOLS[0], 7], "nextCursor": None},
    }
    return pages.get(mode, {"tools": TOOLS})


def by_hand(mode: str) -> None:
    if mode == "dies":
        sys.exit("no database\nat all")
    if mode == "orphan":  # what it starts has to end with it
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        with open(os.environ["ORPHAN"], "w") as file:  # noqa: PTH123
            file.write(f"{os.getpid()} {child.pid}")
    if mode in ("silent", "orphan"):
        time.sleep(600)
    if mode == "large":
        write("x" * 10_000_000)
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" not in asked:
            continue
        method, number = asked["method"], asked["id"]
        if mode == "garbage":
            write("Listening on standard output!\n{}\n[1")
        if method == "initialize":
            if mode == "dies-later":
                sys.exit(3)
            who = {"name": "" if mode == "nameless" else "by/hand", "version": "1"}
            result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": who}
            say({"id": number, "result": result})
        elif method == "tools/list" and mode == "refuses":
            say({"id": number, "error": {"code": -32603, "message": "Internal\nerror"}})
        elif method == "tools/list":
            say({"id": number, "result": page(mode, (asked.get("params") or {}).get("cursor"))})
        else:
            say({"id": number, "error": {"code": -32601, "message": "Method not found"}})


if __name__ == "__main__":
    if sys.argv[1] in ("sdk", "http"):
        sdk(int(sys.argv[2]) if len(sys.argv) > 2 else None)
    else:
        by_hand(sys.argv[1])
