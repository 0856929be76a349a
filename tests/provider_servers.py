"""Servers on the loopback interface that speak Anthropic's Messages API and Gemini's generateContent.

The shapes are those of the providers' public API references. A handler gets the request's body as it came and
returns a text, a whole reply, or a `Fault`.
"""

from collections.abc import Iterable
from typing import Any

from aiohttp import web

from .loopback import Fault, Json, LoopbackServer


def anthropic_error(status: int, kind: str, message: str, **headers: str) -> Fault:
    body = {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}
    return Fault(status, body, headers)


def gemini_error(status: int, word: str, message: str) -> Fault:
    return Fault(status, {"error": {"code": status, "message": message, "status": word}})


def anthropic_reply(
    *blocks: dict[str, Json], stop_reason: str = "end_turn", model: str = "claude-tiny"
) -> dict[str, Json]:
    """A message of content blocks."""
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": list(blocks),
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 5},
    }


def gemini_reply(*parts: dict[str, Json], finish: str = "STOP") -> dict[str, Json]:
    """One candidate of parts."""
    return {
        "candidates": [
            {"content": {"role": "model", "parts": list(parts)}, "finishReason": finish, "index": 0}
        ],
        "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15},
        "modelVersion": "gemini-tiny-001",
        "responseId": "r1",
    }


class AnthropicServer(LoopbackServer):
    """`POST /v1/messages` and `GET /v1/models`, with the key in `x-api-key`."""

    unauthorised = anthropic_error(401, "authentication_error", "invalid x-api-key")

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def add_routes(self, app: web.Application) -> None:
        app.router.add_post("/v1/messages", self._chat)
        app.router.add_get("/v1/models", self._models)

    def allows(self, request: web.Request) -> bool:
        return request.headers.get("x-api-key") == self.key and "anthropic-version" in request.headers

    def said(self, text: str) -> dict[str, Json]:
        return anthropic_reply({"type": "text", "text": text})

    async def _models(self, request: web.Request) -> web.StreamResponse:
        listed = [
            {"type": "model", "id": name, "display_name": name, "created_at": "2026-01-01T00:00:00Z"}
            for name in self.models
        ]
        return web.json_response({"data": listed, "has_more": False, "first_id": None, "last_id": None})


class GeminiServer(LoopbackServer):
    """`POST /v1beta/models/MODEL:generateContent`, with the key in `x-goog-api-key`."""

    unauthorised = gemini_error(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.")

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def add_routes(self, app: web.Application) -> None:
        app.router.add_post("/{version}/models/{call}", self._chat)
        app.router.add_get("/{version}/models", self._models)

    def allows(self, request: web.Request) -> bool:
        return request.headers.get("x-goog-api-key") == self.key

    def said(self, text: str) -> dict[str, Json]:
        return gemini_reply({"text": text})

    async def _models(self, request: web.Request) -> web.StreamResponse:
        listed = [{"name": f"models/{name}", "displayName": name} for name in self.models]
        return web.json_response({"models": listed})


def blocks_of(body: dict[str, Any], role: str) -> Iterable[dict[str, Any]]:
    """The content blocks of an Anthropic request's messages of that role."""
    for message in body["messages"]:
        if message["role"] == role and isinstance(message["content"], list):
            yield from message["content"]
