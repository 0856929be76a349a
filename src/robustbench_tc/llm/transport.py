"""One attempt at a completion over HTTP.

Retries, budgets and stores are the client's (client.py): a transport sends a body once and tells the outcome.
"""

import asyncio
import os
import re
import time
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from ..errors import UserError
from ..schema import Json
from .endpoint import Endpoint
from .errors import LLMError, from_status, one_line
from .messages import Completion, completion, decode, encode

if TYPE_CHECKING:
    import ssl

    import httpx2

MAX_REPLY_BYTES = 32 * 2**20
"""A longer reply is not taken for a completion."""

CONNECT_S = 10.0
"""How long a connection may take to come about."""


class Transport(Protocol):
    """A way to a model."""

    async def send(self, body: dict[str, Json]) -> Completion:
        """One attempt. Raises LLMError."""
        ...

    async def served_models(self) -> list[str]:
        """The model ids that are listed there. Raises whatever says that there is no list."""
        ...

    async def close(self) -> None:
        """Ends what is open; nothing can be sent afterwards."""
        ...


class HttpTransport:
    """One address of an OpenAI-compatible server. `timeout_s` bounds each attempt as a whole."""

    def __init__(self, endpoint: Endpoint, timeout_s: float = 300.0) -> None:
        """`endpoint` is resolved."""
        self.endpoint = endpoint
        self._timeout_s = timeout_s
        self._http = _openai_client(endpoint)

    async def close(self) -> None:
        await self._http.close()

    async def send(self, body: dict[str, Json]) -> Completion:
        """The model's answer to one request. Raises LLMError."""
        import aiohttp
        import openai

        http = _http_library()
        data = encode(body)
        started = time.perf_counter()
        try:
            async with asyncio.timeout(self._timeout_s):
                # The raw bytes: no shape is taken on trust, and a web page is not mistaken for an answer.
                reply = await self._http.post("/chat/completions", content=data, cast_to=http.Response)
        except TimeoutError:
            raise LLMError("timeout", f"no reply within {self._timeout_s:g} s", retryable=True) from None
        except (openai.APIConnectionError, aiohttp.ClientError, http.HTTPError, OSError) as error:
            raise self._lost(error) from None
        except openai.APIStatusError as error:
            raise self._refusal(error, with_tools="tools" in body) from None
        except openai.OpenAIError as error:
            said = self.endpoint.scrub(one_line(str(error)))
            raise LLMError("not_a_completion", said, retryable=True) from None
        return self._read(reply, time.perf_counter() - started)

    def _lost(self, error: BaseException) -> LLMError:
        """The error of a connection that failed.

        The transport reports refused and dropped connections alike as time-outs: what happened is what
        aiohttp said first.
        """
        import aiohttp

        first = error
        while (earlier := first.__cause__ or first.__context__) and not isinstance(
            first, aiohttp.ClientError
        ):
            first = earlier
        if isinstance(first, aiohttp.ClientConnectorError):
            said = first.os_error.strerror or str(first.os_error)
        else:
            said = str(first) or type(first).__name__
        slow = isinstance(first, aiohttp.ConnectionTimeoutError)
        return LLMError(
            "timeout" if slow else "connection",
            self.endpoint.scrub(one_line(said)),
            retryable=True,
            unreachable=slow or isinstance(first, aiohttp.ClientConnectorError),
        )

    def _refusal(self, error: Any, *, with_tools: bool) -> LLMError:
        """The error of a 4xx or 5xx reply."""
        response: httpx2.Response = error.response
        try:
            body: Json = msgspec.json.decode(response.content)
        except (ValueError, RecursionError):
            body = one_line(re.sub(r"<[^>]{0,200}>", " ", response.text[:4000]), 160)
        found = from_status(
            error.status_code, body, dict(response.headers), with_tools=with_tools, now=time.time()
        )
        return found.saying(self.endpoint.scrub(found.message))

    def _read(self, reply: "httpx2.Response", latency_s: float) -> Completion:
        """The completion in a reply with status 200. Raises LLMError where there is none."""
        content = reply.content
        if len(content) > MAX_REPLY_BYTES:
            raise LLMError("not_a_completion", f"a reply of {len(content)} bytes", 200, True)
        content = self.endpoint.hide(content)
        try:
            return completion(decode(content), latency_s)
        except (ValueError, RecursionError):
            kind = reply.headers.get("content-type", "no content type")
            shown = one_line(content[:200].decode("utf-8", "replace"), 80)
            raise LLMError("not_a_completion", f"{kind}, not JSON: {shown!r}", 200, True) from None

    async def served_models(self) -> list[str]:
        """As `Transport.served_models`, from `/models`."""
        reply = await self._http.get("/models", cast_to=_http_library().Response)
        return [one_line(str(item["id"]), 100) for item in msgspec.json.decode(reply.content)["data"]]


def _http_library() -> Any:
    """What the installed `openai` is built on: httpx2, before its version 3 httpx with the same names."""
    import openai

    return import_module("httpx2" if int(openai.__version__.partition(".")[0]) >= 3 else "httpx")


@cache
def _certificates(file: str | None, folder: str | None) -> "ssl.SSLContext":
    """The trusted certificates, as these two variables say: to read them takes longer than a request."""
    context: ssl.SSLContext = _http_library().create_ssl_context()
    return context


def _openai_client(endpoint: Endpoint) -> Any:
    """The `openai` client on its aiohttp transport. Retries are ours, so that they are counted."""
    from openai import AsyncOpenAI, DefaultAioHttpClient

    http = _http_library()
    address = endpoint.resolved().address
    assert address is not None
    timeout = http.Timeout(None, connect=CONNECT_S)
    try:
        return AsyncOpenAI(
            api_key=endpoint.api_key or "none",
            base_url=address.url,
            # Credentials of the address are meant for it, whatever key the environment has for others.
            default_headers=address.headers | dict(endpoint.headers),
            max_retries=0,
            timeout=timeout,
            http_client=DefaultAioHttpClient(
                timeout=timeout,
                # Followed, it would take headers and rows to another host, whose answers would count.
                follow_redirects=False,
                verify=_certificates(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")),
            ),
        )
    except http.InvalidURL:
        raise UserError(f"base URL {address.url!r}: no request can be sent there") from None
