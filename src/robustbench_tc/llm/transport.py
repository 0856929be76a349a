"""Requests over HTTP: an address, one attempt at a completion, and several addresses of one model.

Retries, budgets and stores are the client's (client.py): a transport sends a body once and tells the outcome.
"""

import asyncio
import os
import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec

from ..errors import UserError
from ..schema import Json
from .address import Address, parse_address, public
from .errors import LLMError, from_status, one_line
from .messages import Completion, completion, decode, encode

if TYPE_CHECKING:
    import ssl

    import httpx2

T = TypeVar("T")

OPENAI_URL = "https://api.openai.com/v1"

MAX_REPLY_BYTES = 32 * 2**20
"""A longer reply is not taken for a completion."""

CONNECT_S = 10.0
"""How long a connection may take to come about."""

_REASONING_NAMES = re.compile(r"(?:o\d|gpt-5)(?!.*-chat)(?:\b|_)", re.IGNORECASE)

_SECRET_HEADER = re.compile(r"auth|key|token|secret|cookie|passw|credential|signature", re.IGNORECASE)

REAL_SECRET = 8
"""Characters from which on a key is taken out of replies, too; out of messages each is taken."""

RESTS_S = 30.0
"""How long an address that could not be reached is left alone while there are others."""


@dataclass(frozen=True, slots=True, repr=False)
class Endpoint:
    """A model behind an address. Its text forms never show the key, nor credentials inside the address."""

    model: str
    base_url: str | None = None
    """None: OPENAI_BASE_URL, else OpenAI. As given; `resolved` takes credentials out of it."""
    api_key: str | None = None
    """None: OPENAI_API_KEY; an address of one's own may need none."""
    reasoning: bool | None = None
    """Takes no temperature and wants `max_completion_tokens`. None: by its name, else after a refusal."""
    address: Address | None = None
    """Filled in by `resolved`."""
    headers: tuple[tuple[str, str], ...] = ()
    """Sent with every request; a value may be a secret."""
    key_name: str = "OPENAI_API_KEY"
    """The environment variable that a wrong key is looked for in."""

    def __str__(self) -> str:
        return self.model + (f"@{public(self.base_url)}" if self.base_url else "")

    def __repr__(self) -> str:
        return f"Endpoint({str(self)!r})"

    @property
    def is_reasoning(self) -> bool:
        """As stated, else guessed from the model's name."""
        if self.reasoning is None:
            return bool(_REASONING_NAMES.match(self.model.rsplit("/", 1)[-1]))
        return self.reasoning

    @property
    def secrets(self) -> tuple[str, ...]:
        """What no message may hold."""
        parts = (part for _, value in self.headers for part in (value, *value.split()))
        return (
            *((self.api_key,) if self.api_key else ()),
            *(self.address.secrets if self.address else ()),
            *dict.fromkeys(part for part in parts if len(part) > 3),
        )

    @property
    def hidden(self) -> tuple[str, ...]:
        """What no reply may hold either.

        A short one ("EMPTY", "test") is a word like others, and a reply may say it; so is what a header
        without a secret says ("application/json").
        """
        public = {
            part
            for name, value in self.headers
            for part in (value, *value.split())
            if not (_SECRET_HEADER.search(name) or (len(part) >= 16 and re.search(r"\d", part)))
        }
        return tuple(one for one in self.secrets if len(one) >= REAL_SECRET and one not in public)

    def resolved(self, env: Mapping[str, str] = os.environ) -> "Endpoint":
        """With address and key filled in from the environment. Raises UserError where a key is missing."""
        if self.address is not None:
            return self
        address = parse_address(self.base_url or env.get("OPENAI_BASE_URL") or OPENAI_URL)
        key = (self.api_key or env.get("OPENAI_API_KEY") or "").strip()
        signed = any(name.lower() == "authorization" for name, _ in self.headers)
        if not key and not signed and address.url == OPENAI_URL:
            raise UserError(f"no key for {OPENAI_URL}: set OPENAI_API_KEY, or name another base URL")
        if not (key.isascii() and key.replace(" ", "").isprintable()):
            raise UserError("the API key holds characters that a header cannot carry: check OPENAI_API_KEY")
        return Endpoint(self.model, address.url, key or None, self.reasoning, address, self.headers)


def parse_endpoint(spec: str) -> Endpoint:
    """`MODEL` or `MODEL@BASE_URL` as an endpoint. Raises UserError.

    A model's own name may hold an `@`: only one that is followed by http:// or https:// begins an address.
    """
    model, url = re.fullmatch(r"(.*?)(?:@(https?://.*))?", spec.strip(), re.DOTALL).groups()  # type: ignore[union-attr]
    if re.search(r"\s", spec.strip()) or not model:
        raise UserError(f"endpoint {public(spec)!r}: expected MODEL or MODEL@BASE_URL")
    if url is None and re.search(r"://|@(?:localhost|[\w.-]+:\d+|[\w.-]+/)", model):
        raise UserError(f"endpoint {public(spec)!r}: a base URL begins with http:// or https://")
    return Endpoint(model, url)


def parse_endpoints(spec: str) -> list[Endpoint]:
    """As `parse_endpoint`, or several addresses of one model: `MODEL@BASE_URL,BASE_URL`. Raises UserError."""
    first, *others = re.split(r",(?=https?://)", spec.strip())
    found = parse_endpoint(first)
    return [found, *(parse_endpoint(f"{found.model}@{url}") for url in others)]


class Transport(Protocol):
    """A way to a model."""

    async def send(self, body: dict[str, Json]) -> Completion:
        """One attempt. Raises LLMError."""
        ...

    async def served_models(self) -> list[str]:
        """The model ids that are listed there, sorted; [] where none are."""
        ...

    async def close(self) -> None:
        """Ends what is open; nothing can be sent afterwards."""
        ...


class HttpTransport:
    """One address. `timeout_s` bounds each attempt as a whole."""

    def __init__(self, endpoint: Endpoint, timeout_s: float = 300.0) -> None:
        """`endpoint` is resolved."""
        self.endpoint = endpoint
        self._timeout_s = timeout_s
        self._http = _transport(endpoint)

    async def close(self) -> None:
        await self._http.close()

    async def send(self, body: dict[str, Json]) -> Completion:
        """The model's answer to one request. Raises LLMError."""
        import httpx2

        data = encode(body)
        started = time.perf_counter()

        async def post(client: Any) -> Any:
            # The raw bytes: no shape is taken on trust, and a web page is not mistaken for an answer.
            return await client.post("/chat/completions", content=data, cast_to=httpx2.Response)

        reply = await self.call(post, self._timeout_s, with_tools="tools" in body)
        return self._read(reply, time.perf_counter() - started)

    async def call(
        self, made: Callable[[Any], Awaitable[T]], timeout_s: float, *, with_tools: bool = False
    ) -> T:
        """What `made` returns of the `openai` client. Raises LLMError."""
        import aiohttp
        import httpx2
        import openai

        try:
            async with asyncio.timeout(timeout_s):
                return await made(self._http)
        except TimeoutError:
            raise LLMError("timeout", f"no reply within {timeout_s:g} s", retryable=True) from None
        except (openai.APIConnectionError, aiohttp.ClientError, httpx2.HTTPError, OSError) as error:
            raise self._lost(error) from None
        except openai.APIStatusError as error:
            raise self._refusal(error, with_tools=with_tools) from None
        except openai.OpenAIError as error:
            raise LLMError("not_a_completion", self._scrub(one_line(str(error))), retryable=True) from None

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
        lost = slow or isinstance(first, aiohttp.ClientConnectorError)
        return LLMError(
            "timeout" if slow else "connection", self._scrub(one_line(said)), retryable=True, unreachable=lost
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
        return LLMError(
            found.code,
            self._scrub(found.message),
            found.status,
            found.retryable,
            retry_after_s=found.retry_after_s,
            param=found.param,
        )

    def _read(self, reply: "httpx2.Response", latency_s: float) -> Completion:
        """The completion in a reply with status 200. Raises LLMError where there is none."""
        content = reply.content
        if len(content) > MAX_REPLY_BYTES:
            raise LLMError("not_a_completion", f"a reply of {len(content)} bytes", 200, True)
        content = hide(content, self.endpoint)
        try:
            return completion(decode(content), latency_s)
        except (ValueError, RecursionError):
            kind = reply.headers.get("content-type", "no content type")
            shown = one_line(content[:200].decode("utf-8", "replace"), 80)
            raise LLMError("not_a_completion", f"{kind}, not JSON: {shown!r}", 200, True) from None

    def _scrub(self, text: str) -> str:
        return scrub(text, self.endpoint)

    async def served_models(self) -> list[str]:
        """As `Transport.served_models`, from `/models` within 10 seconds; [] where that cannot be read."""
        import aiohttp
        import httpx2
        import openai

        try:
            async with asyncio.timeout(min(10.0, self._timeout_s)):
                reply = await self._http.get("/models", cast_to=httpx2.Response)
            listed = msgspec.json.decode(reply.content)["data"]
            return sorted(one_line(str(item["id"]), 100) for item in listed)
        except (openai.OpenAIError, aiohttp.ClientError, httpx2.HTTPError, OSError):
            return []
        except (ValueError, KeyError, TypeError, RecursionError):  # a list of something else
            return []


def hide(content: bytes, endpoint: Endpoint) -> bytes:
    """A reply without the secrets that the server may have written into it."""
    for secret in endpoint.hidden:
        if (hidden := secret.encode()) in content:
            content = content.replace(hidden, b"***")
    return content


def scrub(text: str, endpoint: Endpoint) -> str:
    """A message without secrets."""
    for secret in endpoint.secrets:
        text = text.replace(secret, "***")
    return re.sub(r"(?i)\b(bearer|basic) \S+", r"\1 ***", text)


def over_http(
    endpoints: Sequence[Endpoint], timeout_s: float = 300.0, *, ray: Any = None, concurrency: int = 16
) -> Transport:
    """The way to one model at one address or at several; the endpoints are resolved.

    With the module `ray` each address is asked by an actor, with `concurrency` requests under way at each.
    """
    names, openings = (
        [str(one) for one in endpoints],
        [partial(HttpTransport, one, timeout_s) for one in endpoints],
    )
    if ray is not None:
        from .ray import over_ray

        return over_ray(ray, openings, names, concurrency=concurrency)
    opened = [opening() for opening in openings]
    return opened[0] if len(opened) == 1 else LoadBalancer(opened, names)


class LoadBalancer:
    """Several ways to one model: a request goes where the fewest are under way.

    One that loses its connection rests for `RESTS_S` while there are others.
    """

    def __init__(self, wires: Sequence[Transport], names: Sequence[str]) -> None:
        """`names` tell the wires apart in messages."""
        self._wires, self._names = wires, names
        self._busy, self._sent = [0] * len(wires), [0] * len(wires)
        self._rests_until = [0.0] * len(wires)

    async def send(self, body: dict[str, Json]) -> Completion:
        """One attempt where the fewest requests are under way. Raises LLMError naming the address."""
        now = time.monotonic()
        one = min(
            range(len(self._wires)),
            key=lambda i: (self._rests_until[i] > now, self._busy[i], self._sent[i]),
        )
        self._busy[one] += 1
        self._sent[one] += 1
        try:
            return await self._wires[one].send(body)
        except LLMError as error:
            if error.code == "connection":
                self._rests_until[one] = time.monotonic() + RESTS_S
            raise LLMError(**{**vars(error), "message": f"{self._names[one]}: {error.message}"}) from None
        finally:
            self._busy[one] -= 1

    async def served_models(self) -> list[str]:
        """What all of them serve."""
        lists = await asyncio.gather(*(wire.served_models() for wire in self._wires))
        return sorted(set.intersection(*map(set, lists)))

    async def close(self) -> None:
        await asyncio.gather(*(wire.close() for wire in self._wires))


@cache
def _certificates(file: str | None, folder: str | None) -> "ssl.SSLContext":
    """The trusted certificates, as these two variables say: to read them takes longer than a request."""
    import httpx2

    return httpx2.create_ssl_context()


def _transport(endpoint: Endpoint) -> Any:
    """The `openai` client on its aiohttp transport. Retries are ours, so that they are counted."""
    import httpx2
    from openai import AsyncOpenAI, DefaultAioHttpClient

    timeout = httpx2.Timeout(None, connect=CONNECT_S)
    address = endpoint.address or parse_address(endpoint.base_url or OPENAI_URL)
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
    except httpx2.InvalidURL:
        raise UserError(f"base URL {address.url!r}: nothing can be asked there") from None
