"""A server of all that the official conformance suite asks for, by the official SDK: `server.py PORTFILE`.

What it lists and says is in server_says.json. Its streams can be polled: an event store keeps what was sent.
"""

import asyncio
import json
import socket
import sys
from pathlib import Path
from typing import Any

import uvicorn
from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.streamable_http import EventCallback, EventMessage, EventStore
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler

SAYS = json.loads(Path(__file__).with_name("server_says.json").read_text())
STEP_S = 0.05
POLLED = b"2025-11-25"
"""The first revision whose streams a server may close to be polled."""


class Events(EventStore):
    """All events of all sessions, in their order; an event's id is its number, from 1."""

    def __init__(self) -> None:
        self._events: list[tuple[str, types.JSONRPCMessage | None]] = []
        self.opened = asyncio.Event()
        """Set when a stream was opened: it begins with an event without a message."""

    async def store_event(self, stream_id: str, message: types.JSONRPCMessage | None) -> str:
        self._events.append((stream_id, message))
        if message is None:
            self.opened.set()
        return str(len(self._events))

    async def replay_events_after(self, last_event_id: str, send_callback: EventCallback) -> str | None:
        seen = int(last_event_id)
        stream = self._events[seen - 1][0]
        for number, (its, message) in enumerate(self._events[seen:], start=seen + 1):
            if its == stream and message is not None:
                await send_callback(EventMessage(message, str(number)))
        return stream


events = Events()


def said(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)])


async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
    return types.ListToolsResult.model_validate({"tools": SAYS["tools"]})


async def call_tool(ctx: Any, params: Any) -> types.CallToolResult:
    name, given = params.name, params.arguments or {}
    if name in SAYS["forms"]:
        message = given.get("message", "Please choose.")
        reply = await ctx.session.elicit_form(message, SAYS["forms"][name], ctx.request_id)
        return said(f"{reply.action}: {json.dumps(reply.content)}")
    if name == "test_sampling":
        prompt = types.TextContent(type="text", text=given["prompt"])
        reply = await ctx.session.create_message(
            [types.SamplingMessage(role="user", content=prompt)],
            max_tokens=100,
            related_request_id=ctx.request_id,
        )
        return said(f"LLM response: {reply.content.text}")
    if name == "test_tool_with_logging":
        for step in ("started", "at work", "ended"):
            await ctx.session.send_log_message("info", step, related_request_id=ctx.request_id)
            await asyncio.sleep(STEP_S)
    if name == "test_tool_with_progress":
        for done in (0, 50, 100):
            await ctx.session.report_progress(done, 100)
            await asyncio.sleep(STEP_S)
    if name == "test_reconnection":
        events.opened.clear()
        await ctx.close_sse_stream()
        await asyncio.wait_for(events.opened.wait(), 10)  # by the client that comes back for the answer
        await asyncio.sleep(4 * STEP_S)  # the SDK routes answers to a stream only after its first event
    return types.CallToolResult.model_validate(SAYS["results"][name])


async def list_prompts(ctx: Any, params: Any) -> types.ListPromptsResult:
    return types.ListPromptsResult.model_validate({"prompts": SAYS["prompts"]})


async def get_prompt(ctx: Any, params: Any) -> types.GetPromptResult:
    content = SAYS["contents"].get(params.name)
    if params.name == "test_prompt_with_arguments":
        content = {"type": "text", "text": " and ".join(params.arguments.values())}
    if params.name == "test_prompt_with_embedded_resource":
        resource = {"uri": params.arguments["resourceUri"], "mimeType": "text/plain", "text": "Embedded."}
        content = {"type": "resource", "resource": resource}
    return types.GetPromptResult.model_validate({"messages": [{"role": "user", "content": content}]})


async def list_resources(ctx: Any, params: Any) -> types.ListResourcesResult:
    return types.ListResourcesResult.model_validate({"resources": SAYS["resources"]})


async def list_templates(ctx: Any, params: Any) -> types.ListResourceTemplatesResult:
    return types.ListResourceTemplatesResult.model_validate({"resourceTemplates": SAYS["templates"]})


async def read_resource(ctx: Any, params: Any) -> types.ReadResourceResult:
    of_template = {"uri": params.uri, "mimeType": "text/plain", "text": f"What lies at {params.uri}."}
    return types.ReadResourceResult.model_validate({"contents": [SAYS["texts"].get(params.uri, of_template)]})


async def subscribe(ctx: Any, params: Any) -> types.EmptyResult:
    await ctx.session.send_resource_updated(params.uri)
    return types.EmptyResult()


async def nothing(ctx: Any, params: Any) -> types.EmptyResult:
    return types.EmptyResult()


async def complete(ctx: Any, params: Any) -> types.CompleteResult:
    return types.CompleteResult(completion=types.Completion(values=[f"{params.argument.value}ed"], total=1))


server: Server[Any] = Server(
    "conformance",
    on_list_tools=list_tools,
    on_call_tool=call_tool,
    on_list_prompts=list_prompts,
    on_get_prompt=get_prompt,
    on_list_resources=list_resources,
    on_list_resource_templates=list_templates,
    on_read_resource=read_resource,
    on_subscribe_resource=subscribe,
    on_unsubscribe_resource=nothing,
    on_set_logging_level=nothing,
    on_completion=complete,
    on_subscriptions_listen=ListenHandler(InMemorySubscriptionBus()),
)
app = server.streamable_http_app(event_store=events, retry_interval=100)


async def polled(scope: Any, receive: Any, send: Any) -> None:
    """The app, which polls by the revision that a request names: the suite agrees on 2025-11-25 and then
    names an older one in the very requests that are to be polled."""
    if scope["type"] == "http":
        older = (b"mcp-protocol-version", b"2025-03-26")
        headers = [(one[0], POLLED) if one == older else one for one in scope["headers"]]
        scope = {**scope, "headers": headers}
    await app(scope, receive, send)


if __name__ == "__main__":
    listening = socket.create_server(("127.0.0.1", 0))
    part = Path(sys.argv[1] + ".part")
    part.write_text(str(listening.getsockname()[1]))
    part.replace(sys.argv[1])
    asyncio.run(uvicorn.Server(uvicorn.Config(polled, log_level="error")).serve([listening]))
