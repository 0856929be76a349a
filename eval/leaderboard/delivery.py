"""How pages leave the server: compressed, with a tag, and as `304 Not Modified` to who has them already.

A layer around the board's own routes. What gradio answers under /submit/ and whatever streams pass through.
"""

import gzip
from collections import OrderedDict
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from starlette.concurrency import run_in_threadpool

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

TYPES = ("text/", "application/json", "image/svg+xml", "application/atom+xml", "application/xml")

SMALLEST = 1_000
"""Bytes from which compressing pays."""

KEPT_BYTES = 64 * 2**20
"""Of bodies whose compressed form is kept."""


class _Packed(NamedTuple):
    body: bytes
    tag: str
    packed: bytes | None


class Delivery:
    """ASGI middleware: gzip and ETag for whole answers to GET; HEAD has the same headers."""

    def __init__(self, app: "ASGIApp", skip: tuple[str, ...] = ("/submit",)) -> None:
        self._app = app
        self._skip = skip
        self._kept: OrderedDict[int, _Packed] = OrderedDict()
        self._bytes = 0

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        is_page = scope["type"] == "http" and scope["method"] in ("GET", "HEAD")
        if not is_page or scope["path"].startswith(self._skip):
            await self._app(scope, receive, send)
            return
        asked: dict[str, str] = {}
        for name, value in scope["headers"]:  # a header that comes twice is one list
            key, text = name.decode("latin-1").lower(), value.decode("latin-1")
            asked[key] = f"{asked[key]},{text}" if key in asked else text
        start: Message | None = None

        async def answer(message: "Message") -> None:
            nonlocal start
            if message["type"] == "http.response.start" and _may_pack(message):
                start = message
                return
            if start is None:
                await send(message)
                return
            head, start = start, None
            if message["type"] == "http.response.body" and not message.get("more_body", False):
                head, message = await self._packed(head, message, asked)
                if scope["method"] == "HEAD":
                    message = {**message, "body": b""}
            await send(head)
            await send(message)

        await self._app(scope, receive, answer)

    async def _packed(
        self, head: "Message", message: "Message", asked: dict[str, str]
    ) -> "tuple[Message, Message]":
        body: bytes = message.get("body", b"")
        found = self._kept.get(id(body))
        if found is None or found.body is not body:
            found = await run_in_threadpool(_pack, body) if len(body) > 2**16 else _pack(body)
            self._keep(found)
        headers = _without(head, b"content-length")
        headers += [(b"etag", found.tag.encode()), (b"vary", b"Accept-Encoding")]
        if has_already(found.tag, asked.get("if-none-match", "")):
            return {**head, "status": 304, "headers": headers}, {**message, "body": b""}
        if found.packed is not None and _takes_gzip(asked.get("accept-encoding", "")):
            body = found.packed
            headers.append((b"content-encoding", b"gzip"))
        headers.append((b"content-length", str(len(body)).encode()))
        return {**head, "headers": headers}, {**message, "body": body}

    def _keep(self, found: _Packed) -> None:
        """Pages that are kept are the same bytes object each time, so its identity finds them."""
        if len(found.body) > KEPT_BYTES // 4:
            return
        before = self._kept.pop(id(found.body), None)
        self._bytes += len(found.body) - (0 if before is None else len(before.body))
        self._kept[id(found.body)] = found
        while self._bytes > KEPT_BYTES:
            _, oldest = self._kept.popitem(last=False)
            self._bytes -= len(oldest.body)


def _pack(body: bytes) -> _Packed:
    # Level 5, and no time in the header: the same page is the same bytes.
    packed = gzip.compress(body, 5, mtime=0) if len(body) >= SMALLEST else None
    return _Packed(body, f'W/"{sha256(body).hexdigest()[:20]}"', packed)


def _may_pack(head: "Message") -> bool:
    names: dict[bytes, Any] = {name.lower(): value for name, value in head["headers"]}
    kind = names.get(b"content-type", b"").decode("latin-1")
    return (
        head["status"] == 200
        and kind.startswith(TYPES)
        and not kind.startswith("text/event-stream")
        and b"etag" not in names
        and b"content-encoding" not in names
    )


def _without(head: "Message", *names: bytes) -> list[tuple[bytes, bytes]]:
    return [(name, value) for name, value in head["headers"] if name.lower() not in names]


def has_already(tag: str, known: str) -> bool:
    """Whether a page with this tag is among those of an `If-None-Match`: weak or not, one, a list or `*`."""
    tags = [one.strip() for one in known.split(",")]
    return "*" in tags or tag.removeprefix("W/") in (one.removeprefix("W/") for one in tags)


def _takes_gzip(accepted: str) -> bool:
    """By `Accept-Encoding`: what it says of gzip, else of `*`."""
    said: dict[str, float] = {}
    for one in accepted.lower().split(","):
        name, _, rest = one.partition(";")
        try:
            said[name.strip()] = float(rest.replace(" ", "").removeprefix("q=") or 1)
        except ValueError:  # whoever cannot say it gets the plain page
            said[name.strip()] = 0.0
    return said.get("gzip", said.get("*", 0.0)) > 0
