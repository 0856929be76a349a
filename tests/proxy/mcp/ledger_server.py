"""A real MCP server, by the official SDK, that writes a line for each call that it carries out.

python ledger_server.py LEDGER                 on standard input and output
python ledger_server.py LEDGER http PORTFILE   streamable HTTP on loopback
"""

import asyncio
import json
import socket
import sys
from pathlib import Path
from typing import Any

from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.lowlevel.server import NotificationOptions
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler

LEDGER = Path(sys.argv[1])
TOOLS = [
    types.Tool.model_validate(one)
    for one in json.loads(Path(__file__).with_name("ledger_tools.json").read_text())["tools"]
]
paid = 0


async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
    """Two pages."""
    if params is not None and params.cursor == "2":
        return types.ListToolsResult(tools=TOOLS[2:])
    return types.ListToolsResult(tools=TOOLS[:2], next_cursor="2")


async def call_tool(ctx: Any, params: Any) -> types.CallToolResult:
    global paid
    with LEDGER.open("a") as file:
        file.write(json.dumps({"name": params.name, "arguments": params.arguments}) + "\n")
    if params.name == "set_note":
        return types.CallToolResult(
            content=[types.TextContent(type="text", text='{"saved": true}')],
            structured_content={"saved": True},
        )
    if params.name == "pay_order":
        paid += 1
        return types.CallToolResult(content=[types.TextContent(type="text", text='{"paid": true}')])
    if params.name == "get_order":
        return types.CallToolResult(
            content=[
                types.TextContent(type="text", text=json.dumps({"payments": paid, "of": "Zoë"})),
                types.ImageContent(type="image", data="AAAA", mime_type="image/png"),
            ]
        )
    return types.CallToolResult(content=[types.TextContent(type="text", text="no such tool")], is_error=True)


async def list_prompts(ctx: Any, params: Any) -> types.ListPromptsResult:
    return types.ListPromptsResult(prompts=[types.Prompt(name="greet", description="Greets.")])


server: Server[Any] = Server(
    "desk",
    on_list_tools=list_tools,
    on_call_tool=call_tool,
    on_list_prompts=list_prompts,
    on_subscriptions_listen=ListenHandler(InMemorySubscriptionBus()),
)


async def main() -> None:
    if sys.argv[2:3] == ["http"]:
        import uvicorn

        listening = socket.create_server(("127.0.0.1", 0))
        part = Path(sys.argv[3] + ".part")
        part.write_text(str(listening.getsockname()[1]))
        part.replace(sys.argv[3])
        config = uvicorn.Config(server.streamable_http_app(), log_level="error")
        await uvicorn.Server(config).serve([listening])
        return
    async with stdio_server() as (reader, writer):
        options = server.create_initialization_options(NotificationOptions(tools_changed=True))
        await server.run(reader, writer, options)


if __name__ == "__main__":
    asyncio.run(main())
