"""A board's API over HTTP, as `rbtc leaderboard submit` asks it: patient where waiting helps."""

import http.client
import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode, urlsplit

from robustbench_tc.errors import UserError
from robustbench_tc.llm.address import parse_address
from robustbench_tc.safe_text import safe

API = "/api/v1"
JSON = "application/json"

WAITS = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0)
"""Seconds between tries while the board does not answer; after the last one it is given up for now."""

LONGEST_WAIT = 60.0
"""A board that asks for more patience than that is told of instead of waited for."""

TIMEOUT_S = 60.0
_ANSWER = 16 * 1024 * 1024
"""Bytes of an answer that are read."""

_LOOPBACK = ("localhost", "127.0.0.1", "::1")

AGAIN = "the same command goes on from where this one stopped"


class Answered(UserError):
    """The board said no: an HTTP status, its line, and what else its answer holds."""

    def __init__(self, status: int, line: str, said: dict[str, Any]) -> None:
        super().__init__(line)
        self.status = status
        self.said = said


class Dropped(Exception):
    """A request without an answer, or with one that asks to come again; the reason, without secrets."""

    def __init__(self, why: str, wait_s: float | None = None) -> None:
        super().__init__(why)
        self.wait_s = wait_s


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A token and a run go to the board that was named, wherever an answer points."""

    def redirect_request(self, *_: object) -> None:
        return None


class Connection:
    """One board. Raises UserError for an address that is none."""

    def __init__(self, url: str, sleep: Callable[[float], None] = time.sleep) -> None:
        address = parse_address(_of_space(url), "--url")
        if address.headers:
            raise UserError(f"--url {address.url}: leave out the user name and the password")
        self.url = address.url.removesuffix("/submit")
        self._token: str | None = None
        self.sleep = sleep

    @property
    def is_here(self) -> bool:
        """The board runs on this machine."""
        return urlsplit(self.url).hostname in _LOOPBACK

    def about(self) -> dict[str, Any]:
        """What the board says of itself. Redirects are followed here, and here alone."""
        asked = urllib.request.Request(self.url + API, headers={"Accept": JSON})
        opener = urllib.request.build_opener()
        try:
            said, came_from = self._patiently(lambda: self._open(opener, asked), WAITS[:1])
        except Answered:
            said, came_from = None, ""
        if not isinstance(said, dict) or "submissions" not in said:
            raise UserError(
                f"{self.url} is no leaderboard with an API: name the board's own address with --url"
            )
        self.url = came_from.partition(API)[0]
        return said

    def sign_in(self, token: str) -> None:
        """From here on requests carry the token. Raises UserError where others could read it on its way."""
        if urlsplit(self.url).scheme != "https" and not self.is_here:
            raise UserError(f"{self.url}: your token would go over the network in the clear: use https")
        self._token = token

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """The JSON of an answer; `body` goes as JSON. Tries again while a wait helps. Raises Answered."""
        content = None if body is None else json.dumps(body).encode()
        return self._patiently(lambda: self.once(method, path, content, JSON))

    def once(self, method: str, path: str, content: bytes | None, kind: str, **query: str | int) -> Any:
        """One request. Raises Answered, and Dropped where another try may help."""
        address = self.url + API + path + (f"?{urlencode(query)}" if query else "")
        headers = {"Accept": JSON, "Content-Type": kind}
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        asked = urllib.request.Request(address, content, headers, method=method)
        return self._open(urllib.request.build_opener(_NoRedirect), asked)[0]

    def _patiently(self, once: Callable[[], Any], waits: tuple[float, ...] = WAITS) -> Any:
        for wait in (*waits, None):
            try:
                return once()
            except Dropped as dropped:
                self.wait(dropped, wait)

    def wait(self, dropped: Dropped, wait: float | None) -> None:
        """Waits as long as the answer asks for, else `wait` seconds; None: that was the last try."""
        if wait is None or (dropped.wait_s or 0) > LONGEST_WAIT:
            raise UserError(f"the board at {self.url} {dropped}: {AGAIN}") from None
        self.sleep(max(wait, dropped.wait_s or 0))

    def _open(self, opener: urllib.request.OpenerDirector, asked: urllib.request.Request) -> tuple[Any, str]:
        try:
            with opener.open(asked, timeout=TIMEOUT_S) as reply:
                return _json(reply.read(_ANSWER)), reply.geturl()
        except urllib.error.HTTPError as error:
            with error:
                raise self._refusal(error) from None
        except urllib.error.URLError as error:
            raise Dropped(f"does not answer ({_reason(error.reason)})") from None
        except (OSError, http.client.HTTPException) as error:
            raise Dropped(f"broke off ({_reason(error)})") from None

    def _refusal(self, error: urllib.error.HTTPError) -> Exception:
        try:
            said = _json(error.read(_ANSWER))
        except (OSError, http.client.HTTPException):
            said = None
        line = said.get("error") if isinstance(said, dict) else None
        wait = error.headers.get("Retry-After", "")
        asks = float(wait) if wait.isascii() and wait.isdigit() and len(wait) < 9 else None
        if error.code in (408, 502, 504) or (error.code in (429, 503) and (asks is not None or line is None)):
            return Dropped(f"says: {_line(line)}" if line else f"answers {error.code}", asks)
        if line is None:
            return UserError(
                f"{self.url} answers {error.code} and is no leaderboard with an API: name the board's own "
                "address with --url"
            )
        return Answered(error.code, f"the board at {self.url}: {_line(line)}", said)


def _of_space(url: str) -> str:
    """A Space's page is not the Space: the address of the app inside it."""
    parts = urlsplit(url) if url.isprintable() else None
    place = (
        parts.path.strip("/").split("/") if parts is not None and parts.hostname == "huggingface.co" else []
    )
    if len(place) == 3 and place[0] == "spaces":
        name = f"{place[1]}-{place[2]}".casefold().replace(".", "-").replace("_", "-")
        raise UserError(f"--url {url}: that is the page around the board; take https://{name}.hf.space")
    return url


def _json(content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


def _line(text: object) -> str:
    """A board's line for a terminal: it may be anybody's board."""
    return safe(" ".join(str(text)[:500].split()))


def _reason(error: object) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.casefold()
    return _line(error) or type(error).__name__
