"""The server that a door is, on one address with a path for each thing that it stands before, and the one
server that is asked behind such a path: what no plan changes passes byte by byte.

Nothing goes anywhere else, and nothing is added to what the caller sent but the query of the address that the
user named: no redirect is followed, no proxy or key of the environment is looked at, no cookie is kept.
"""

import hmac
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote

import aiohttp
from aiohttp import web
from anyio.from_thread import start_blocking_portal
from multidict import CIMultiDict
from yarl import URL

from robustbench_tc.credentials import KEY_LIKE, Secrets, of_query
from robustbench_tc.errors import UserError
from robustbench_tc.llm.endpoint import parse_address
from robustbench_tc.schema import Json, dumps

from .journal import LEFT
from .plan import HEADER, Plan, Refused, Session, parse
from .scenes import inside
from .sse import MOST

HOP_BY_HOP = frozenset(
    "connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer "
    "transfer-encoding upgrade".split()
)
TOKEN = "X-RBTC-Token"
OURS = frozenset(
    {"host", "content-length", "expect", "origin", "referer", "cookie", HEADER.lower(), TOKEN.lower()}
)
"""Headers of a request that are between the caller and the door."""
BROKEN_OFF = web.RequestKey("BROKEN_OFF", str)
"""Why a reply that had begun has no end."""
THEIRS = frozenset({"content-length", "set-cookie", "alt-svc", "location"})
"""Headers of a reply that are between the server and the door."""

CONNECTS_WITHIN_S = 30.0


class UpstreamError(Refused):
    """The server gave no reply that can be passed on."""

    def __init__(self, said: str, status: int = 502) -> None:
        super().__init__(said, status)


class Budget:
    """Bytes that a door reads of the replies to one request, however often it asks: nothing that a server
    says can fill its memory. What only passes through is not counted."""

    def __init__(self, most: int) -> None:
        self._most = self._left = most

    def take(self, piece: bytes) -> bytes:
        """The piece. Raises UpstreamError where it is beyond the budget."""
        self._left -= len(piece)
        if self._left < 0:
            raise UpstreamError(f"the server answers with more than {self._most:,} bytes")
        return piece


def passed(given: Mapping[str, str], between: frozenset[str]) -> CIMultiDict[str]:
    """The headers that go on: not those of `between` (OURS of a request, THEIRS of a reply), nor those for
    one hop, of which `Connection` may name more; Authorization is never one of them."""
    named = {name.strip().lower() for name in given.get("Connection", "").split(",")} - {"authorization", ""}
    left_out = HOP_BY_HOP | between | named
    return CIMultiDict((name, value) for name, value in given.items() if name.lower() not in left_out)


def secrets_of(headers: Mapping[str, str], query: str = "") -> Secrets:
    """What of a request nothing that is written may hold, though a server may quote it."""
    keys, quoted = set[str](), set[str]()
    for name, value in (*headers.items(), *parse_qsl(query)):
        words = {value, value.rpartition(" ")[2]}  # `Bearer KEY`
        (keys if KEY_LIKE.search(name) else quoted).update(words)
    return Secrets(frozenset(keys), frozenset(quoted))


SILENCE_S = 600.0

_LOOPBACK = re.compile(r"(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d+)?", re.IGNORECASE)
_ORIGIN = re.compile(r"https?://" + _LOOPBACK.pattern, re.IGNORECASE)
_PATH = re.compile(r"(?:/t/([^/]*))?((?:/s/([^/]*))?(.*))", re.DOTALL)
_UP = re.compile(r"(?:^|/)(?:\.|%2e){1,2}(?:/|$)", re.IGNORECASE)


_ERRORS = {403: "permission_error", 404: "not_found_error", 413: "request_too_large"}
"""Types of errors, in Anthropic's words; OpenAI's clients go by the status."""


def refusal(said: str, status: int, *, mcp: bool = False) -> web.Response:
    """An error as OpenAI's API writes it, and Anthropic's too: one object is both; or as MCP does."""
    said, kind = f"rbtc proxy: {said}", "invalid_request_error" if status < 500 else "api_error"
    error = {"message": said, "type": _ERRORS.get(status, kind), "param": None, "code": None}
    body: dict[str, Json] = {"type": "error", "error": error}
    if mcp:
        body = {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": said}}
    return web.Response(status=status, body=dumps(body).encode(), content_type="application/json")


class Endpoint(ABC):
    """What answers below one path of a door's address."""

    place = "v1"
    """The path, without its first slash."""

    async def close(self) -> None:  # noqa: B027 - most have nothing to end
        """Nothing is answered any more."""

    @abstractmethod
    async def exchange(self, request: web.Request, name: str | None, path: str) -> web.StreamResponse:
        """One request, under the name of its session, and its reply. `path`: what stands behind the place,
        with the query. Raises Refused."""


def address_of(given: str, option: str) -> tuple[str, str]:
    """A server's address, which ends where `/chat/completions` begins, and the query behind it, which goes
    along with each request. Raises UserError for one that is none, or has credentials in it."""
    address, _, query = given.partition("?")
    found = parse_address(address, option)
    if found.basic is not None:
        raise UserError(f"{option}: leave user and password out of the address: the agent sends its own key")
    if re.search(r"[\s#]", query):
        raise UserError(f"{option}: write white space in a query as %20, and # as %23")
    return found.url, query


class Relay(Endpoint):
    """Passes requests on to the server at one address, and its replies back."""

    def __init__(self, upstream: str, *, silence_s: float = SILENCE_S, option: str = "--upstream") -> None:
        """`upstream` and `option`: see `address_of`; the query's values are written nowhere. `silence_s`: how
        long the server may say nothing. Raises UserError."""
        self.url, self._query = address_of(upstream, option)
        self.secrets = of_query(self._query)
        self._silence_s = silence_s

    @cached_property
    def _session(self) -> aiohttp.ClientSession:
        """Made inside the loop that uses it."""
        return aiohttp.ClientSession(
            auto_decompress=False,
            trust_env=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            connector=aiohttp.TCPConnector(limit=0),
            timeout=aiohttp.ClientTimeout(
                total=None,
                sock_connect=CONNECTS_WITHIN_S,
                sock_read=self._silence_s,
                connect=CONNECTS_WITHIN_S,
            ),
            read_bufsize=2**18,
        )

    async def close(self) -> None:
        """Ends the connections to the server."""
        await self._session.close()

    async def ask(
        self, method: str, path: str, headers: CIMultiDict[str], body: bytes
    ) -> aiohttp.ClientResponse:
        """The reply, its body not yet read. `path` begins behind the address. Raises UpstreamError."""
        if self._query:
            path += f"{'&' if '?' in path else '?'}{self._query}"
        try:
            found = await self._session.request(
                method,
                URL(self.url + path, encoded=True),
                headers=headers,
                data=body or None,
                allow_redirects=False,
                skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"),
            )
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            raise self._failed(error) from None
        if 300 <= found.status < 400 and found.status != 304:
            found.close()
            raise UpstreamError(
                f"{self.url} answers with a redirect: give the door the address that it redirects to"
            )
        return found

    async def piece(self, found: aiohttp.ClientResponse, budget: Budget | None = None) -> bytes:
        """What came next of the reply's body; nothing at its end. Raises UpstreamError where it breaks off or
        is beyond the budget."""
        try:
            piece = await found.content.readany()
            return piece if budget is None else budget.take(piece)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise self._failed(error) from None

    async def whole(self, found: aiohttp.ClientResponse, budget: Budget) -> bytes:
        """The reply's body. Raises UpstreamError where it breaks off or is beyond the budget."""
        body = bytearray()
        async with found:
            while piece := await self.piece(found, budget):
                body += piece
        return bytes(body)

    def _failed(self, error: BaseException) -> UpstreamError:
        if isinstance(error, TimeoutError):
            return UpstreamError(f"{self.url} sent nothing for {self._silence_s:g} s", 504)
        if isinstance(error, aiohttp.ClientConnectorError):
            return UpstreamError(f"{self.url} cannot be reached: is the server running?")
        return UpstreamError(f"{self.url} gave no complete reply ({type(error).__name__})")

    async def passed_on(
        self, request: web.Request, path: str, body: bytes, kept: bytearray | None = None
    ) -> web.StreamResponse:
        """The reply to the request as it came, unchanged. `kept` gets a copy of its body."""
        headers = passed(request.headers, OURS)
        if kept is not None:  # what is to be read must not come compressed
            headers["Accept-Encoding"] = "identity"
        found = await self.ask(request.method, path, headers, body)
        return await self.sent_back(request, found, kept)

    async def sent_back(
        self, request: web.Request, found: aiohttp.ClientResponse, kept: bytearray | None = None
    ) -> web.StreamResponse:
        """The server's reply as it comes; what breaks off breaks off here too."""
        headers = passed(found.headers, THEIRS)
        reply = web.StreamResponse(status=found.status, reason=found.reason, headers=headers)
        reply.content_length = found.content_length
        async with found:
            # Before anything goes out that cannot be taken back; a stream may have nothing to say for long.
            first = await self.piece(found) if found.content_length else b""
            await reply.prepare(request)
            try:
                while piece := first or await self.piece(found):
                    if kept is not None and len(kept) + len(piece) <= MOST:
                        kept += piece
                    await reply.write(piece)
                    first = b""
            except UpstreamError as error:
                broken_off(request, error)
        return reply


def session_of(name: str | None, plan: Plan, place: str) -> Session | None:
    """The session that a request names; None where it names none, and gets the next one. Raises Refused, also
    where the plan has a dataset, whose case the session has to name; `place`: where it can."""
    if name is not None:
        return parse(name)
    if plan.bench is not None:
        raise Refused(f"this plan needs to know the case: use the {place}, or the header {HEADER}")
    return None


def broken_off(request: web.Request, error: UpstreamError) -> None:
    """Ends the connection to the caller without the end of the reply, as the server has done; the journal
    finds the error at the request."""
    request[BROKEN_OFF] = str(error)
    if request.transport is not None:
        request.transport.abort()


class Front(NamedTuple):
    """Who comes in, and to which endpoint."""

    endpoints: Sequence[Endpoint]
    token: str | None = None
    """What every request has to hold, in its path or a header; None: it has to come from this machine."""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Any request: what is wrong with it, or with the server, is an error object of one line."""
        raw = request.rel_url.raw_path
        mcp = "mcp" in (*raw.split("/"), self.endpoints[0].place.partition("/")[0])
        try:
            endpoint, name, path = self._route(request, raw)
            return await endpoint.exchange(request, name, path)
        except Refused as error:
            return refusal(str(error), error.status, mcp=mcp)
        except ConnectionError:
            return refusal("the caller has left", LEFT, mcp=mcp)  # which nobody gets
        except web.HTTPException as error:
            return refusal(error.text or error.reason, error.status, mcp=mcp)

    def _route(self, request: web.Request, raw: str) -> tuple[Endpoint, str | None, str]:
        """Where a request goes, its session's name, and what of its path stands behind the place."""
        found = _PATH.fullmatch(raw)
        assert found is not None
        token, path, name, rest = found.groups()
        given = request.headers.get(TOKEN, unquote(token or "")).encode("utf-8", "surrogateescape")
        if self.token and not hmac.compare_digest(given, self.token.encode()):
            raise Refused(f"this door has a token: it stands in the path, /t/<token>/…, or in {TOKEN}", 401)
        # A web page could send another name for this machine, or its own origin.
        if not self.token and not _LOOPBACK.fullmatch(request.headers.get("Host", "")):
            raise Refused("this door answers to 127.0.0.1 and localhost only", 403)
        if not _ORIGIN.fullmatch(request.headers.get("Origin", "http://localhost")):
            raise Refused("requests of web pages are refused", 403)
        why = "is not below " + ", ".join(f"/{one.place}" for one in self.endpoints)
        for endpoint in self.endpoints:
            place, behind = f"/{endpoint.place}", rest.removeprefix(f"/{endpoint.place}")
            if f"{behind}/".startswith(f"{place}/"):
                why = f"has {place} twice" + (" (Anthropic's SDKs add it)" if place == "/v1" else "")
            elif f"{rest}/".startswith(f"{place}/") and not _UP.search(raw):
                query = request.rel_url.raw_query_string
                name = request.headers.get(HEADER) if name is None else unquote(name)
                return endpoint, name, behind + (f"?{query}" if query else "")
        base = f"http://{request.host}{'/t/<token>' if self.token else ''}"
        first = self.endpoints[0].place
        raise Refused(
            f"the path {path[:100]} {why}: the base URL is {base}/{first}, or "
            f"{base}/s/<case>.<repeat>/{first}",
            404,
        )


@contextmanager
def serving(
    *endpoints: Endpoint, port: int = 0, listen: str = "127.0.0.1", token: str | None = None
) -> Iterator[str]:
    """Serves in a thread of its own while the block runs; yields the base URL of the first endpoint.

    Raises UserError where the port is taken, and for another address than this machine's own without a token.
    """
    host = f"[{listen}]" if ":" in listen else listen
    if not token and not _LOOPBACK.fullmatch(host):
        raise UserError(f"--listen {listen}: other machines can connect there: set a secret with --token")
    app = web.Application(client_max_size=MOST)
    app.router.add_route("*", "/{rest:.*}", Front(endpoints, token).handle)
    runner = web.AppRunner(
        app, access_log=None, handler_cancellation=True, shutdown_timeout=1.0, auto_decompress=False
    )
    with start_blocking_portal() as portal:
        try:
            portal.call(runner.setup)
            try:
                portal.call(web.TCPSite(runner, listen, port).start)
            except (OSError, OverflowError) as error:
                raise UserError(
                    f"--port {port}: the door cannot listen on {listen} ("
                    f"{getattr(error, 'strerror', None) or error}): choose another, or 0 for a free one"
                ) from None
            yield f"http://{host}:{runner.addresses[0][1]}/{endpoints[0].place}"
        finally:
            portal.call(runner.cleanup)
            for endpoint in reversed(endpoints):  # the first closes the journal
                portal.call(endpoint.close)


def error_of(body: Json) -> str:
    """The message of an error object, for the journal; "" where there is none."""
    error = inside(body, "error")
    said = error.get("message") if isinstance(error, dict) else error
    return said[:1000] if isinstance(said, str) else ""
