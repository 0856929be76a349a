"""Anthropic's and Google's own APIs, through any-llm (the extra `providers`).

any-llm translates the request and the reply; what it would change or drop without a word is seen to here: a
tool's whole schema reaches Gemini, and the signature of a thought goes back with the call it belongs to.
"""

import asyncio
import os
import re
import time
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

from ..errors import UserError, need_extra
from ..schema import Json
from .address import parse_address
from .errors import LLMError, from_status, one_line
from .messages import Completion, completion, decode
from .transport import MAX_REPLY_BYTES, Endpoint, hide, scrub

Provider: TypeAlias = Literal["anthropic", "gemini"]
"""Whose API is spoken."""


class _Facts(NamedTuple):
    url: str
    keys: tuple[str, ...]
    """Environment variables with a key, the first that is set counts."""
    url_variable: str
    version: str
    """What people put at the end of the address, and the client puts there itself."""
    dropped: tuple[str, ...]
    """Parameters that any-llm leaves out without saying so."""


PROVIDERS: Mapping[str, _Facts] = {
    "anthropic": _Facts(
        "https://api.anthropic.com", ("ANTHROPIC_API_KEY",), "ANTHROPIC_BASE_URL", r"/v1", ()
    ),
    "gemini": _Facts(
        "https://generativelanguage.googleapis.com",
        ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        "GOOGLE_GEMINI_BASE_URL",
        r"/v1(?:beta)?",
        ("logprobs", "top_logprobs", "logit_bias", "user"),
    ),
}

_COMMON = (
    "temperature", "top_p", "max_tokens", "response_format", "stop", "presence_penalty", "frequency_penalty",
    "seed", "user", "parallel_tool_calls", "logprobs", "top_logprobs", "logit_bias", "tool_choice",
    "reasoning_effort", "service_tier",
)  # fmt: skip
"""What any-llm takes for every provider; anything else is a field of the provider's own request."""

_KEPT_SIGNATURES = 10_000


def native_model(spec: str) -> tuple[Provider, str] | None:
    """`anthropic:MODEL` or `gemini:MODEL`; None for any other name."""
    provider, colon, model = spec.partition(":")
    if provider == "anthropic" and colon and model:
        return "anthropic", model
    return ("gemini", model) if provider == "gemini" and colon and model else None


def native_endpoint(
    provider: Provider,
    model: str,
    base_url: str | None = None,
    headers: tuple[tuple[str, str], ...] = (),
    env: Mapping[str, str] = os.environ,
) -> Endpoint:
    """The model with address and key as the provider's own variables have them. Raises UserError.

    An address of one's own may need no key.
    """
    facts = PROVIDERS[provider]
    given = base_url or env.get(facts.url_variable)
    address = parse_address(re.sub(rf"{facts.version}/?$", "", given or facts.url))
    key_name = next((name for name in facts.keys if env.get(name, "").strip()), facts.keys[0])
    key = env.get(key_name, "").strip()
    if not key and given is None:
        raise UserError(f"no key for {facts.url}: set {' or '.join(facts.keys)}")
    if not (key.isascii() and key.replace(" ", "").isprintable()):
        raise UserError(f"the API key holds characters that a header cannot carry: check {key_name}")
    return Endpoint(
        model,
        address.url,
        key or None,
        reasoning=False,
        address=address,
        headers=(*address.headers.items(), *headers),
        key_name=key_name,
    )


def need_any_llm() -> Any:
    """What opens a provider. UserError where the extra is not installed: said before any work."""
    try:
        from any_llm import AnyLLM
    except ImportError:
        raise need_extra("any-llm-sdk", "providers") from None
    return AnyLLM.create


class NativeTransport:
    """One model of a provider as a `Transport`. `timeout_s` bounds each attempt as a whole."""

    def __init__(self, provider: Provider, endpoint: Endpoint, timeout_s: float = 300.0) -> None:
        """`endpoint` is one of `native_endpoint`."""
        create = need_any_llm()
        self.endpoint = endpoint
        self._provider = provider
        self._timeout_s = timeout_s
        self._signed: dict[str, dict[str, Json]] = {}
        headers = dict(endpoint.headers)
        options: dict[str, Any] = {}
        if headers:
            options = (
                {"default_headers": headers}
                if provider == "anthropic"
                else {"http_options": {"headers": headers}}
            )
        try:
            if provider == "anthropic":
                options["http_client"] = _follows_nothing()
            self._model = create(
                provider,
                api_key=endpoint.api_key or "none",
                api_base=endpoint.base_url,
                unified_exceptions=True,
                max_retries=0,  # ours, so that they are counted
                **options,
            )
        except ImportError:
            raise need_extra(f"any-llm's part for {provider}", "providers") from None

    async def close(self) -> None:
        client: Any = self._model.client
        await (client.close() if self._provider == "anthropic" else client.aio.aclose())

    async def served_models(self) -> list[str]:
        """As `Transport.served_models`, within 10 seconds; [] where the list cannot be read."""
        try:
            async with asyncio.timeout(min(10.0, self._timeout_s)):
                found = await self._model.alist_models()
            return sorted(one_line(str(one.id), 100) for one in found)
        except Exception:  # whatever an SDK raises, there is no list
            return []

    async def send(self, body: dict[str, Json]) -> Completion:
        """The model's answer to one request. Raises LLMError."""
        asked = self._arguments(body)
        started = time.perf_counter()
        try:
            async with asyncio.timeout(self._timeout_s):
                reply = await self._model.acompletion(**asked, timeout=self._timeout_s)
        except TimeoutError:
            raise LLMError("timeout", f"no reply within {self._timeout_s:g} s", retryable=True) from None
        except Exception as error:  # SDKs fail in ways of their own; each is a failed request
            raise self._failed(error, with_tools="tools" in body) from None
        return self._read(reply.model_dump_json(), time.perf_counter() - started)

    def _arguments(self, body: dict[str, Json]) -> dict[str, Any]:
        """The body in any-llm's terms. Raises LLMError for what the provider has no place for."""
        asked: dict[str, Any] = {
            "model": body["model"],
            "messages": [self._sign(m) for m in body["messages"]],
        }
        rest = {name: value for name, value in body.items() if name not in ("model", "messages", "tools")}
        for name in ("chat_template_kwargs", *PROVIDERS[self._provider].dropped):
            if name in rest:
                said = f"'{name}' is not supported by the API of {self._provider}"
                raise LLMError("bad_request", said, 400, param=name)
        if body.get("tools"):
            asked["tools"] = body["tools"] if self._provider == "anthropic" else _declared(body["tools"])
        own = {name: rest.pop(name) for name in list(rest) if name not in _COMMON}
        if self._provider == "anthropic":
            return asked | rest | ({"extra_body": own} if own else {})
        return asked | rest | own

    def _sign(self, message: dict[str, Json]) -> dict[str, Json]:
        """An earlier reply with what the provider wants to have back beside its calls."""
        calls = message.get("tool_calls")
        if not calls:
            return message
        signed = self._signed.get(str(calls[0].get("id")))
        if signed is None:
            return message
        extras: list[Json] = signed["calls"]
        return {
            **message,
            **{name: signed[name] for name in ("reasoning", "extra_content") if signed[name] is not None},
            "tool_calls": [
                call if extra is None else {**call, "extra_content": extra}
                for call, extra in zip(calls, [*extras, *[None] * len(calls)], strict=False)
            ],
        }

    def _read(self, text: str, latency_s: float) -> Completion:
        content = text.encode("utf-8", "replace")
        if len(content) > MAX_REPLY_BYTES:
            raise LLMError("not_a_completion", f"a reply of {len(content)} bytes", 200, True)
        reply = decode(hide(content, self.endpoint))
        for choice in reply.get("choices") or ():
            message = choice["message"]
            if isinstance(message.get("reasoning"), dict):
                message["reasoning"] = message["reasoning"].get("content")
            if choice.get("finish_reason") == "content_filter":
                message["refusal"] = None  # a sentence of any-llm's, not the model's
            self._keep(message)
        return completion(reply, latency_s)

    def _keep(self, message: dict[str, Json]) -> None:
        """Signatures of a thought, for the request that goes on from here."""
        calls = message.get("tool_calls") or []
        extras = [call.get("extra_content") for call in calls]
        if not calls or (message.get("extra_content") is None and not any(extras)):
            return
        if len(self._signed) >= _KEPT_SIGNATURES:
            self._signed.clear()
        self._signed[str(calls[0].get("id"))] = {
            "reasoning": message.get("reasoning"),
            "extra_content": message.get("extra_content"),
            "calls": extras,
        }

    def _failed(self, error: Exception, *, with_tools: bool) -> LLMError:
        """An exception of any-llm's or of an SDK's as ours. Keys are in none of them."""
        found = _known(error, with_tools)
        return LLMError(**{**vars(found), "message": scrub(found.message, self.endpoint)})


def _follows_nothing() -> Any:
    """Anthropic's client as it is, but for redirects, which would take the key to another host."""
    from anthropic import DefaultAsyncHttpxClient

    return DefaultAsyncHttpxClient(follow_redirects=False)


def _declared(tools: list[dict[str, Json]]) -> list[dict[str, Json]]:
    """Tools as Gemini has them, with the schema as it is: any-llm keeps four keys of each parameter."""
    functions = [tool["function"] for tool in tools]
    return [
        {
            "function_declarations": [
                {
                    "name": function["name"],
                    "description": function.get("description", ""),
                    "parameters_json_schema": function["parameters"],
                }
                for function in functions
            ]
        }
    ]


def _known(error: Exception, with_tools: bool) -> LLMError:
    from any_llm import exceptions

    chain = list(_causes(error))
    said = one_line(str(getattr(error, "message", None) or error) or type(error).__name__)
    if isinstance(error, exceptions.UnsupportedParameterError):
        return LLMError("bad_request", said, 400, param=error.parameter_name)
    if status := _status(chain):
        original: Any = getattr(error, "original_exception", None) or error
        body = getattr(original, "body", None) or getattr(original, "details", None) or said
        headers = getattr(getattr(original, "response", None), "headers", None) or {}
        lower = {str(name).lower(): str(value) for name, value in headers.items()}
        found = from_status(status, body, lower, with_tools=with_tools, now=time.time())
        if status == 400 and re.search(r"api[ _]key", found.message, re.IGNORECASE):  # Gemini's wrong key
            return LLMError("auth", found.message, status)
        return found
    names = {type(one).__name__ for one in chain}
    if names & {"APITimeoutError", "TimeoutException", "ReadTimeout", "ServerTimeoutError", "TimeoutError"}:
        return LLMError("timeout", said, retryable=True)
    unreachable = bool(names & {"ConnectError", "ClientConnectorError", "ConnectionRefusedError", "gaierror"})
    if unreachable or any(isinstance(one, OSError) for one in chain) or _LOST & names:
        first = one_line(str(chain[-1])) or type(chain[-1]).__name__
        return LLMError("connection", first, retryable=True, unreachable=unreachable)
    if keyword := re.search(r"unexpected keyword argument '(\w+)'", str(error)):
        return LLMError("bad_request", said, 400, param=keyword[1])
    if type(error).__name__ == "ValidationError" and "GenerateContentResponse" not in str(error):
        extra = re.search(r"^(\w+)\n\s+Extra inputs are not permitted", str(error), re.MULTILINE)
        return LLMError("bad_request", said, 400, param=extra[1] if extra else None)
    if isinstance(error, exceptions.InvalidRequestError):
        return LLMError("bad_request", said, 400)
    return LLMError("not_a_completion", f"{type(error).__name__}: {said}", 200, True)


_LOST = {"APIConnectionError", "RemoteProtocolError", "ServerDisconnectedError", "ReadError", "ClientOSError"}


def _causes(error: BaseException) -> Iterator[BaseException]:
    found: BaseException | None = error
    for _ in range(12):
        if found is None:
            return
        yield found
        found = getattr(found, "original_exception", None) or found.__cause__ or found.__context__


def _status(chain: list[BaseException]) -> int | None:
    """The HTTP status of a refusal; None where there was no reply, or another kind of failure."""
    for one in chain:
        for name in ("status_code", "code"):
            value = getattr(one, name, None)
            if isinstance(value, int) and not isinstance(value, bool) and 300 <= value <= 599:
                return value
    return None
