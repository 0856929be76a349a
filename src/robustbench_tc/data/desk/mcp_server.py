"""The desk's order tools as an MCP server, for `rbtc proxy` (`pip install mcp`).

Three orders in memory; a refund is paid each time that it is asked for, and `get_order` shows it.
"""

import asyncio
import json
from pathlib import Path
from typing import Any

from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

READS = ("find", "get_order")
ORDERS: dict[Any, dict[str, Any]] = {
    number: {"order_id": number, "status": "delivered", "refunds": []} for number in (1041, 1042, 1043)
}


def tools() -> list[types.Tool]:
    listed = json.loads(Path(__file__).with_name("orders.json").read_text(encoding="utf-8"))
    return [
        types.Tool(
            name=one["function"]["name"],
            description=one["function"]["description"],
            input_schema=one["function"]["parameters"],
            annotations=types.ToolAnnotations(read_only_hint=one["function"]["name"] in READS),
        )
        for one in listed
    ]


def answer(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    if name == "find":
        return {"orders": list(ORDERS.values())}
    order = ORDERS.get(arguments.get("order_id"))
    if order is None:
        return {"error": "there is no such order"}
    if name == "refund_order":
        order["refunds"].append(arguments.get("amount", "all"))
        return {"status": "refunded"}
    return order if name == "get_order" else {"status": "ok"}


async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
    return types.ListToolsResult(tools=tools())


async def call_tool(ctx: Any, params: Any) -> types.CallToolResult:
    found = answer(params.name, params.arguments or {})
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=json.dumps(found))], is_error="error" in found
    )


async def main() -> None:
    server: Server[Any] = Server("orders", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (reader, writer):
        await server.run(reader, writer, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(main())
