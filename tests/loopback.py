"""A programmable OpenAI-compatible server on the loopback interface, in a thread of the test's process.

    with LoopbackServer(lambda body: "Oslo.") as server:
        Endpoint("tiny", server.url)

The handler gets the body of each chat request and returns a reply: a text, a whole reply (`reply(…)`), or a
`Fault`. It runs in the server's thread, one request at a time, so it may keep state without a lock.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Self

from aiohttp import web
from anyio.from_thread import start_blocking_portal

Json = Any


@dataclass(frozen=True)
class Fault:
    """Anything but a completion. `hang_s` waits first; `drop` closes the connection without a reply."""

    status: int = 500
    body: Json = None
    """An object is sent as JSON, a text as it is."""
    headers: dict[str, str] = field(default_factory=dict)
    hang_s: float = 0.0
    drop: bool = False


def error_body(message: str, code: str | None = None, param: str | None = None) -> dict[str, Json]:
    """The error object of OpenAI's API."""
    return {"error": {"message": message, "type": "invalid_request_error", "param": param, "code": code}}


def rate_limit(retry_after: str | None = None) -> Fault:
    headers = {} if retry_after is None else {"Retry-After": retry_after}
    return Fault(429, error_body("Rate limit reached", "rate_limit_exceeded"), headers)


SERVER_ERROR = Fault(500, error_body("The server had an error"))
UNAVAILABLE = Fault(503, "<html><body>Service Unavailable</body></html>", {"Content-Type": "text/html"})
HANG = Fault(200, "late", hang_s=60.0)
DROP = Fault(drop=True)
HTML = Fault(200, "<html><body>Welcome</body></html>", {"Content-Type": "text/html"})
CUT_OFF = Fault(200, '{"choices": [{"message": {"con', {"Content-Length": "999"})
EMPTY_CHOICES = Fault(200, {"id": "x", "object": "chat.completion", "choices": []})
NO_TEMPERATURE = Fault(
    400,
    error_body(
        "Unsupported value: 'temperature' does not support 0 with this model. Only the default is supported.",
        "unsupported_value",
        "temperature",
    ),
)
NO_MAX_TOKENS = Fault(
    400,
    error_body(
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens'.",
        "unsupported_parameter",
        "max_tokens",
    ),
)
DUPLICATE_TOOLS = Fault(400, error_body("tools: Tool names must be unique."))
BAD_TOOL_NAME = Fault(
    400,
    error_body(
        "Invalid 'tools[0].function.name': string does not match pattern '^[a-zA-Z0-9_-]+$'.",
        "invalid_value",
        "tools[0].function.name",
    ),
)
TOO_LONG = Fault(
    400,
    {
        "object": "error",
        "message": "This model's maximum context length is 64 tokens. However, you requested 99 tokens.",
        "type": "BadRequestError",
        "param": None,
        "code": 400,
    },
)
UNAUTHORISED = Fault(401, error_body("Incorrect API key provided", "invalid_api_key"))
NO_MODEL = Fault(404, error_body("The model does not exist", "model_not_found", "model"))


def reply(
    text: str | None = None,
    tool_calls: Iterable[tuple[str, str]] = (),
    *,
    finish_reason: str | None = None,
    model: str = "tiny",
    usage: tuple[int, int] | None = (10, 5),
    **message: Json,
) -> dict[str, Json]:
    """A chat completion; `tool_calls` are (name, arguments as text)."""
    calls = [
        {"id": f"call_{number}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for number, (name, arguments) in enumerate(tool_calls)
    ]
    said: dict[str, Json] = {"role": "assistant", "content": text, **message}
    if calls:
        said["tool_calls"] = calls
    found: dict[str, Json] = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": model,
        "choices": [
            {
                "index": 0,
                "message": said,
                "finish_reason": finish_reason or ("tool_calls" if calls else "stop"),
            }
        ],
    }
    if usage is not None:
        asked, answered = usage
        found["usage"] = {
            "prompt_tokens": asked,
            "completion_tokens": answered,
            "total_tokens": asked + answered,
        }
    return found


Reply = dict[str, Json] | str | Fault
Handler = Callable[[dict[str, Json]], Reply | Awaitable[Reply]]


def in_order(first: Iterable[Reply], then: Handler) -> Handler:
    """A handler that gives the replies in `first` one by one, then asks `then`."""
    queue = list(first)
    return lambda body: queue.pop(0) if queue else then(body)


class LoopbackServer:
    """`POST /v1/chat/completions` and `GET /v1/models` on a free port; a context manager.

    `key`: requests with another one get 401. `delay_s`: every reply waits that long.
    """

    def __init__(
        self,
        handler: Handler,
        *,
        models: Iterable[str] = ("tiny",),
        key: str | None = None,
        delay_s: float = 0.0,
        port: int = 0,
    ) -> None:
        self.handler = handler
        self.models = tuple(models)
        self.key = key
        self.delay_s = delay_s
        self.port = port
        self.bodies: list[dict[str, Json]] = []
        """The body of every chat request, in order of arrival."""
        self.headers: list[dict[str, str]] = []
        self.at_once = 0
        """The most chat requests that were ever under way together."""
        self._under_way = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def count(self) -> int:
        """Chat requests received."""
        return len(self.bodies)

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            portal = stack.enter_context(start_blocking_portal())
            stack.enter_context(portal.wrap_async_context_manager(self._served()))
            self._open = stack.pop_all()
        return self

    def __exit__(self, *exc: object) -> None:
        self._open.close()

    @asynccontextmanager
    async def _served(self) -> AsyncIterator[None]:
        app = web.Application(client_max_size=64 * 2**20)
        self.add_routes(app)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", self.port).start()
        self.port = runner.addresses[0][1]
        yield
        await runner.cleanup()

    # What a server of another protocol says otherwise (tests/provider_servers.py).

    unauthorised: Fault = UNAUTHORISED

    def add_routes(self, app: web.Application) -> None:
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_get("/v1/models", self._list)

    def allows(self, request: web.Request) -> bool:
        return request.headers.get("Authorization") == f"Bearer {self.key}"

    def said(self, text: str) -> dict[str, Json]:
        """A text as a whole reply."""
        return reply(text)

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.bodies.append(body)
        self.headers.append(dict(request.headers))
        self._under_way += 1
        self.at_once = max(self.at_once, self._under_way)
        try:
            if self.key is not None and not self.allows(request):
                return self._response(request, self.unauthorised)
            found = self.handler(body)
            if not isinstance(found, dict | str | Fault):
                found = await found
            wait = self.delay_s + (found.hang_s if isinstance(found, Fault) else 0.0)
            if wait:
                await asyncio.sleep(wait)
            return self._response(request, found)
        finally:
            self._under_way -= 1

    def _response(self, request: web.Request, found: Reply) -> web.StreamResponse:
        if isinstance(found, str):
            found = self.said(found)
        if isinstance(found, dict):
            return web.json_response(found)
        if found.drop:
            assert request.transport is not None
            request.transport.abort()
            raise web.HTTPInternalServerError
        if isinstance(found.body, str):
            headers = {"Content-Type": "text/plain", **found.headers}
            made = web.Response(status=found.status, body=found.body.encode(), headers=headers)
            if "Content-Length" in headers:  # more than there is: the connection ends in the middle
                made.force_close()
            return made
        return web.json_response(found.body, status=found.status, headers=found.headers)

    async def _list(self, request: web.Request) -> web.StreamResponse:
        listed = [{"id": name, "object": "model"} for name in self.models]
        return web.json_response({"object": "list", "data": listed})
