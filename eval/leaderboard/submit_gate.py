"""What of gradio's app is open under /submit/, for whom, and with which policy.

gradio brings routes that this board has no use for: its queue, streams, a proxy, development tools. Only
those that the submit page uses are open. Where signing in is asked for, files are taken of nobody else: that
is looked at before a byte of them is read. There are never more of them than there is room for.
"""

import re
import secrets
import time
from collections import deque
from collections.abc import MutableMapping
from pathlib import Path
from typing import Any

from .connections import App, Message, Receive, Scope, Send
from .limits import Limits
from .submitting import LOCAL, Submitter

ROOT = "/submit"
UPLOAD = f"{ROOT}/gradio_api/upload"

OPEN = re.compile(
    r"GET /(config|theme\.css|(static|assets|svelte)/.*)?"
    r"|GET /gradio_api/(info|startup-events|theme\.css|upload_progress|heartbeat/\w{1,40})"
    r"|HEAD /|POST /gradio_api/(run/\w{1,40}|upload)"
)
"""Method and path below ROOT of what the page uses."""

POLICY = (
    "default-src 'none'; script-src 'self' 'nonce-{nonce}' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self'; form-action 'self'; "
    "base-uri 'self'; object-src 'none'; frame-ancestors 'self' https://huggingface.co https://*.hf.space"
)
"""gradio starts from scripts in its page, makes functions of texts, and styles elements in place."""

_SCRIPT = re.compile(rb"<script(?=[\s>])")


class SubmitGate:
    """In front of the app, behind the session. `folder` is where gradio keeps uploads."""

    def __init__(self, app: App, *, limits: Limits, sign_in: bool, folder: Path) -> None:
        self._app = app
        self._limits = limits
        self._sign_in = sign_in
        self._room = Room(limits, folder)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")
        if scope["type"] != "http" or not (path == ROOT or path.startswith(f"{ROOT}/")):
            await self._app(scope, receive, send)
            return
        below = path.removeprefix(ROOT).rstrip("/") or "/"
        if not OPEN.fullmatch(f"{scope['method']} {below}"):
            await _say(send, 404, "There is no such page.")
        elif path.rstrip("/") == UPLOAD:
            await self._upload(scope, receive, send)
        else:
            await self._app(scope, receive, _WithPolicy(send).send)

    async def _upload(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = {name.lower(): value for name, value in scope["headers"]}
        user = account(scope) if self._sign_in else LOCAL
        if user is None:
            await _say(send, 401, "Sign in with Hugging Face first: files are taken of accounts only.")
            return
        length = headers.get(b"content-length", b"")
        if not length.isdigit():
            await _say(send, 411, "Say how many bytes the file has (Content-Length).")
            return
        client = scope.get("client") or ("",)
        who = Submitter(user, str(client[0]))
        refused = self._room.enter(who, int(length[:18]))
        if refused is not None:
            await _say(send, 429, refused)
            return
        try:
            await self._app(scope, receive, send)
        finally:
            self._room.leave(who)


class Room:
    """Room on the disk for the files of the submit page; one event loop uses it."""

    def __init__(self, limits: Limits, folder: Path) -> None:
        self._limits = limits
        self._folder = folder
        self._there: deque[tuple[float, Submitter, int]] = deque()
        self._coming: list[Submitter] = []

    def enter(self, who: Submitter, size: int) -> str | None:
        """Takes room for a file that is about to come; why there is none, else None."""
        now, limits = time.monotonic(), self._limits
        while self._there and now - self._there[0][0] > limits.upload_keep_s:
            self._there.popleft()
            sweep(self._folder, limits.upload_keep_s)
        mine = [one for one in self._coming if _same(one, who)]
        if len(mine) >= limits.uploads_at_once_of_one or len(self._coming) >= limits.uploads_at_once:
            return "Other files are arriving: send this one when they are there."
        if size + sum(n for _, one, n in self._there if _same(one, who)) > limits.upload_space_of_one:
            return "You have sent as much as there is room for: come back in half an hour."
        if size + sum(n for _, _, n in self._there) > limits.upload_space:
            return "There is no room for more files: come back in half an hour."
        self._there.append((now, who, size))
        self._coming.append(who)
        return None

    def leave(self, who: Submitter) -> None:
        """The file has arrived, or never will."""
        self._coming.remove(who)


def _same(one: Submitter, other: Submitter) -> bool:
    return one.account == other.account or one.network == other.network


def sweep(folder: Path, older_than_s: float) -> None:
    """Removes files below gradio's upload folder that nobody can be working with any more."""
    ends = time.time() - older_than_s
    for path in folder.rglob("*") if folder.is_dir() else ():
        try:
            if path.is_file() and not path.is_symlink() and path.stat().st_mtime < ends:
                path.unlink()
        except OSError:  # gone meanwhile
            continue


def account(scope: Scope) -> str | None:
    """Who is signed in, by the session that gradio's sign-in keeps."""
    said: Any = scope.get("session", {}).get("oauth_info")
    info = said.get("userinfo") if isinstance(said, dict) else None
    name = info.get("preferred_username") if isinstance(info, dict) else None
    return str(name) if name else None


class _WithPolicy:
    """An answer of gradio's with a content security policy; scripts in its page get the answer's nonce."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._nonce = secrets.token_urlsafe(16)
        self._start: MutableMapping[str, Any] | None = None
        self._page = b""

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = [one for one in message.get("headers", ()) if one[0].lower() != b"content-length"]
            policy = POLICY.format(nonce=self._nonce).encode()
            added = [(b"content-security-policy", policy), (b"referrer-policy", b"same-origin")]
            kind = next((value for name, value in headers if name.lower() == b"content-type"), b"")
            if kind.startswith(b"text/html"):
                self._start = {**message, "headers": headers + added}
                return
            message = {**message, "headers": [*message.get("headers", ()), *added]}
        elif self._start is not None:
            self._page += message.get("body", b"")
            if message.get("more_body", False):
                return
            page = _SCRIPT.sub(f'<script nonce="{self._nonce}"'.encode(), self._page)
            self._start["headers"].append((b"content-length", str(len(page)).encode()))
            await self._send(self._start)
            message = {"type": "http.response.body", "body": page}
        await self._send(message)


async def _say(send: Send, status: int, why: str) -> None:
    text = why.encode() + b"\n"
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", str(len(text)).encode()),
        (b"content-security-policy", b"default-src 'none'"),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": text})
