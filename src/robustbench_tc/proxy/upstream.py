"""The one server that a door asks: nothing goes anywhere else, and nothing is added to what the caller sent.

No redirect is followed, no proxy or key of the environment is looked at, no cookie is kept.
"""

from collections.abc import Mapping
from functools import cached_property
from urllib.parse import parse_qsl

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from robustbench_tc.errors import UserError
from robustbench_tc.llm.address import parse_address

from .journal import KEY_LIKE, Secrets
from .plan import HEADER, Refused

HOP_BY_HOP = frozenset(
    "connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer "
    "transfer-encoding upgrade".split()
)
OURS = frozenset({"host", "content-length", "expect", "origin", "referer", "cookie", HEADER.lower()})
"""Headers of a request that are between the caller and the door."""
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


class Upstream:
    """Asks the server at one address."""

    def __init__(self, address: str, silence_s: float) -> None:
        """`address` ends where `/chat/completions` begins. `silence_s`: how long it may say nothing. Raises
        UserError for an address that is none, or has credentials in it."""
        found = parse_address(address, "--upstream")
        if found.basic is not None:
            raise UserError(
                "--upstream: leave user and password out of the address: the agent sends its own key"
            )
        self.url = found.url
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
        await self._session.close()

    async def ask(
        self, method: str, path: str, headers: CIMultiDict[str], body: bytes
    ) -> aiohttp.ClientResponse:
        """The reply, its body not yet read. `path` begins behind the address. Raises UpstreamError."""
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
            raise UpstreamError(f"{self.url} answers with a redirect: give --upstream the address it means")
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
            return UpstreamError(f"{self.url} said nothing for {self._silence_s:g} s", 504)
        if isinstance(error, aiohttp.ClientConnectorError):
            return UpstreamError(f"{self.url} cannot be reached: is the server running?")
        return UpstreamError(f"{self.url} gave no whole reply ({type(error).__name__})")


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
