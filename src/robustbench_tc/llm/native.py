"""Anthropic's and Google's own APIs, through any-llm (the extra `providers`).

any-llm translates the request and the reply; what it would change or drop without a word is seen to here: a
tool's whole schema reaches Gemini, and the signature of a thought goes back with the call it belongs to.
"""

import asyncio
import inspect
import re
import time
from typing import Any

from ..errors import need_extra
from ..schema import Json
from .endpoint import Endpoint
from .errors import LLMError, from_status, one_line
from .messages import Completion, call_id, completion, decode
from .transport import MAX_REPLY_BYTES

_DROPPED = {
    "anthropic": ("chat_template_kwargs",),
    "gemini": ("chat_template_kwargs", "logprobs", "top_logprobs", "logit_bias", "user"),
}
"""Parameters that any-llm leaves out without saying so, by provider."""

_KEPT_SIGNATURES = 10_000


def need_any_llm() -> Any:
    """What opens a provider. UserError where the extra is not installed: said before any work."""
    try:
        from any_llm import AnyLLM
    except ImportError:
        raise need_extra("any-llm-sdk", "providers") from None
    return AnyLLM.create


class NativeTransport:
    """One model of a provider as a `Transport`. `timeout_s` bounds each attempt as a whole."""

    def __init__(self, endpoint: Endpoint, timeout_s: float = 300.0) -> None:
        """`endpoint` is resolved."""
        create = need_any_llm()
        self.endpoint = endpoint
        self._timeout_s = timeout_s
        self._is_anthropic = endpoint.provider == "anthropic"
        self._signed: dict[str, tuple[dict[str, Json], list[Json]]] = {}
        """By the id under which a reply's first call is sent back: fields of the message and of each call."""
        headers = (endpoint.address.headers if endpoint.address else {}) | dict(endpoint.headers)
        options: dict[str, Any] = {"http_options": {"headers": headers}}
        try:
            if self._is_anthropic:
                from anthropic import DefaultAsyncHttpxClient

                # Followed, a redirect would take the key to another host.
                client = DefaultAsyncHttpxClient(follow_redirects=False)
                options = {"default_headers": headers, "http_client": client}
            self._model = create(
                endpoint.provider,
                api_key=endpoint.api_key or "none",
                api_base=endpoint.base_url,
                unified_exceptions=True,
                max_retries=0,  # ours, so that they are counted
                **options,
            )
        except ImportError:
            raise need_extra(f"any-llm's part for {endpoint.provider}", "providers") from None
        self._common = inspect.signature(self._model.acompletion).parameters

    async def close(self) -> None:
        client: Any = self._model.client
        await (client.close() if self._is_anthropic else client.aio.aclose())

    async def served_models(self) -> list[str]:
        """As `Transport.served_models`."""
        return [one_line(str(one.id), 100) for one in await self._model.alist_models()]

    async def send(self, body: dict[str, Json]) -> Completion:
        """The model's answer to one request. Raises LLMError."""
        asked = self._arguments(body)
        started = time.perf_counter()
        try:
            async with asyncio.timeout(self._timeout_s):
                # The SDK's own limit comes later: it would fail in words of its own.
                reply = await self._model.acompletion(**asked, timeout=self._timeout_s + 30)
        except TimeoutError:
            raise LLMError("timeout", f"no reply within {self._timeout_s:g} s", retryable=True) from None
        except Exception as error:  # SDKs fail in ways of their own; each is a failed request
            found = _failed(error, with_tools="tools" in body)
            raise found.saying(self.endpoint.scrub(found.message)) from None
        return self._read(reply.model_dump_json(), time.perf_counter() - started)

    def _arguments(self, body: dict[str, Json]) -> dict[str, Any]:
        """The body in any-llm's terms. Raises LLMError for what the provider has no place for."""
        asked = {**body, "messages": [self._sign(message) for message in body["messages"]]}
        for name in _DROPPED[self.endpoint.provider]:
            if name in asked:
                said = f"'{name}' is not supported by the API of {self.endpoint.provider}"
                raise LLMError("bad_request", said, 400, param=name)
        if self._is_anthropic:
            own = {name: asked.pop(name) for name in body if name not in self._common}
            return asked | ({"extra_body": own} if own else {})
        if asked.get("tools"):  # with the schema as it is: any-llm keeps four keys of each parameter
            functions = [tool["function"] for tool in asked["tools"]]
            declared = [
                {
                    "name": function["name"],
                    "description": function.get("description", ""),
                    "parameters_json_schema": function["parameters"],
                }
                for function in functions
            ]
            asked["tools"] = [{"function_declarations": declared}]
        return asked

    def _sign(self, message: dict[str, Json]) -> dict[str, Json]:
        """An earlier reply with what the provider wants to have back beside its calls."""
        calls = message.get("tool_calls") or [{}]
        if (signed := self._signed.get(str(calls[0].get("id")))) is None:
            return message
        fields, extras = signed
        # A defence may have changed how many calls there are.
        of_calls = zip(calls, [*extras, *[None] * len(calls)], strict=False)
        return {**message, **fields, "tool_calls": [{**call, "extra_content": one} for call, one in of_calls]}

    def _read(self, text: str, latency_s: float) -> Completion:
        content = text.encode("utf-8", "replace")
        if len(content) > MAX_REPLY_BYTES:
            raise LLMError("not_a_completion", f"a reply of {len(content)} bytes", 200, True)
        reply = decode(self.endpoint.hide(content))
        for choice in reply["choices"]:
            message = choice["message"]
            if choice.get("finish_reason") == "content_filter":
                message["refusal"] = None  # a sentence of any-llm's, not the model's
            if calls := message.get("tool_calls"):
                if len(self._signed) >= _KEPT_SIGNATURES:
                    self._signed.clear()
                fields = {name: message.get(name) for name in ("reasoning", "extra_content")}
                self._signed[call_id(calls[0]["id"])] = fields, [call.get("extra_content") for call in calls]
        return completion(reply, latency_s)


def _failed(error: Exception, *, with_tools: bool) -> LLMError:
    """What any-llm raised as ours: refusals by their status, the rest by what the SDK calls it."""
    original: Any = getattr(error, "original_exception", None) or error
    said = one_line(str(getattr(error, "message", None) or error) or type(error).__name__)
    status, param = getattr(error, "status_code", None), getattr(error, "parameter_name", None)
    if param is None and getattr(error, "title", None) == "GenerateContentConfig":  # pydantic, before sending
        param = str(original.errors()[0]["loc"][0])
    if param is not None:
        return LLMError("bad_request", said, 400, param=param)
    if status is None and type(error).__name__ == "InvalidRequestError":  # any-llm, before sending
        status = 400
    if status is not None and status >= 300:
        body = getattr(original, "body", None) or getattr(original, "details", None) or said
        headers = {"retry-after": getattr(error, "retry_after", None) or ""}
        headers["location"] = getattr(getattr(original, "response", None), "headers", {}).get("location", "")
        found = from_status(status, body, headers, with_tools=with_tools, now=time.time())
        if status == 400 and re.search(r"api[ _]key", found.message, re.IGNORECASE):  # Gemini's wrong key
            return LLMError("auth", found.message, status)
        return found
    cause = original.__cause__ or original
    name = type(cause).__name__
    if "Timeout" in name:
        return LLMError("timeout", said, retryable=True)
    if isinstance(cause, OSError) or re.search("Connect|Disconnect|Protocol|ReadError", name):
        lost, no_one = one_line(str(cause)) or name, name.startswith(("Connect", "ClientConn"))
        return LLMError("connection", lost, retryable=True, unreachable=no_one)
    return LLMError("not_a_completion", f"{type(error).__name__}: {said}", 200, True)
