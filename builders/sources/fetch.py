"""The sources folder: where it is, filling it from the pinned commits, checking it.

A file is downloaded to `NAME.partial`, resumed where a killed run or a dropped connection left it, and gets
its name only when its sha256 is the pinned one.
"""

import http.client
import os
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Collection
from pathlib import Path

import msgspec

from robustbench_tc.errors import UserError
from robustbench_tc.files import locked

from .pins import Pin, Pins, pins

__all__ = ["BASE_URL", "Fetched", "Verification", "default_root", "fetch", "pins", "resolve_root", "verify"]

BASE_URL = "https://raw.githubusercontent.com"
"""Where `BASE/owner/name/commit/path` is the raw file."""

Progress = Callable[[str, int, int], None]
"""Called with (path, bytes so far, bytes of the file) while a file is downloaded."""

_CHUNK = 1 << 16
_RETRIES = 5
"""Attempts in a row that bring no new byte before a file is given up."""
_TIMEOUT_S = 60
_BUSY = (408, 429)
"""Besides 5xx: statuses after which asking again makes sense."""


class Fetched(msgspec.Struct, frozen=True):
    """What a fetch did: paths that were downloaded and paths that were right already."""

    downloaded: tuple[str, ...]
    present: tuple[str, ...]


class Verification(msgspec.Struct, frozen=True):
    """What a check of a sources folder found."""

    checked: int
    bad: tuple[tuple[str, str], ...]
    """(path, problem), in the pins' order."""


class _Failed(Exception):
    """One attempt came to nothing; another may do better."""


def default_root() -> Path:
    """`RBTC_SOURCES`, else a folder in the user's cache."""
    named = os.environ.get("RBTC_SOURCES")
    if named:
        return Path(named)
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "robustbench-tc" / "sources"


def resolve_root(sources: Path | None = None) -> Path:
    """The folder to read: `sources`, else `default_root()`. Raises UserError when it is absent."""
    root = default_root() if sources is None else sources
    if not root.is_dir():
        raise UserError(f"no sources folder at {root}: run `rbtc sources fetch`, or pass --sources DIR")
    return root


def verify(root: Path, *, only: Collection[str] | None = None) -> Verification:
    """Checks presence, size and sha256 of every pinned file under `root` (of the sources `only`)."""
    chosen = _chosen(pins(), only)
    found = ((pin.path, pin.problem(root / pin.path)) for pin in chosen)
    return Verification(len(chosen), tuple((path, problem) for path, problem in found if problem))


def fetch(
    root: Path,
    *,
    base_url: str = BASE_URL,
    only: Collection[str] | None = None,
    progress: Progress | None = None,
    pinned: Pins | None = None,
    backoff_s: float = 0.5,
) -> Fetched:
    """Downloads the pinned files that are not right yet. Raises UserError naming the file.

    `only` limits it to some of the pins' sources; `backoff_s` is the first pause after a failure, doubled up
    to 16 times. Files that are right are not asked for.
    """
    if not base_url.startswith(("http://", "https://")):
        raise UserError(f"--base-url {base_url!r} is no http or https address")
    known = pinned or pins()
    chosen = _chosen(known, only)
    needed = [pin for pin in chosen if pin.problem(root / pin.path) is not None]
    if needed:
        try:
            root.mkdir(parents=True, exist_ok=True)
            with locked(root.absolute() / "fetch"):
                for pin in needed:
                    _download(_url(base_url, known, pin), root / pin.path, pin, progress, backoff_s)
        except OSError as error:
            raise UserError(f"cannot write to {root}: {error.strerror or error}") from None
    downloaded = tuple(pin.path for pin in needed)
    return Fetched(downloaded, tuple(pin.path for pin in chosen if pin.path not in downloaded))


def _url(base_url: str, known: Pins, pin: Pin) -> str:
    origin = known.sources[pin.source]
    where = f"{origin.repository}/{origin.commit}/{pin.upstream_path}"
    return f"{base_url.rstrip('/')}/{urllib.parse.quote(where)}"


def _chosen(known: Pins, only: Collection[str] | None) -> tuple[Pin, ...]:
    if only is None:
        return known.files
    return tuple(pin for source in only for pin in known.of(source))


def _download(url: str, path: Path, pin: Pin, progress: Progress | None, backoff_s: float) -> None:
    """One file into place. Raises UserError, and then leaves a `.partial` only if it is worth resuming."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    inherited = partial.exists()
    _complete(url, partial, pin, progress, backoff_s)
    problem = pin.problem(partial)
    if problem is not None and inherited:  # an earlier run may have left the beginning of another file
        partial.unlink()
        _complete(url, partial, pin, progress, backoff_s)
        problem = pin.problem(partial)
    if problem is not None:
        partial.unlink()
        raise UserError(f"{pin.path}: wrong checksum: {problem} ({url}); the file was not kept")
    with partial.open("rb") as file:
        os.fsync(file.fileno())
    partial.replace(path)


def _complete(url: str, partial: Path, pin: Pin, progress: Progress | None, backoff_s: float) -> None:
    """Asks until `partial` has the pinned size. Raises UserError after attempts that bring no new byte."""
    failures, most = 0, _size(partial)
    while _size(partial) < pin.bytes:
        try:
            _attempt(url, partial, pin, progress)
        except _Failed as reason:
            failures = 1 if _size(partial) > most else failures + 1
            most = max(most, _size(partial))
            if failures >= _RETRIES:
                mend = "run `rbtc sources fetch` again to resume"
                raise UserError(f"{pin.path}: {reason} ({url}); {mend}") from None
            time.sleep(backoff_s * 2 ** min(failures - 1, 4))


def _attempt(url: str, partial: Path, pin: Pin, progress: Progress | None) -> None:
    """One request, from where `partial` ends. Raises _Failed when asking again makes sense."""
    start = _size(partial)
    headers = {"User-Agent": "robustbench-tc", "Accept-Encoding": "identity"}
    if start:
        headers["Range"] = f"bytes={start}-"
    try:
        with urllib.request.urlopen(
            urllib.request.Request(url, headers=headers), timeout=_TIMEOUT_S
        ) as reply:
            if start and not str(reply.headers.get("Content-Range", "")).startswith(f"bytes {start}-"):
                start = 0  # the server sends the whole file
            done = start
            with partial.open("r+b" if start else "wb") as file:
                file.seek(start)
                # One byte more than pinned is enough to see that it is another file.
                while done <= pin.bytes and (chunk := reply.read(min(_CHUNK, pin.bytes + 1 - done))):
                    file.write(chunk)
                    done += len(chunk)
                    if progress is not None:
                        progress(pin.path, min(done, pin.bytes), pin.bytes)
    except urllib.error.HTTPError as error:
        if error.code == 416:
            partial.unlink()
        elif error.code < 500 and error.code not in _BUSY:
            raise UserError(f"{pin.path}: the server answers {error.code} {error.reason} for {url}") from None
        raise _Failed(f"the server answers {error.code} {error.reason}") from None
    except urllib.error.URLError as error:
        raise _Failed(f"no connection: {error.reason}") from None
    except (http.client.HTTPException, ConnectionError, TimeoutError, ssl.SSLError) as error:
        raise _Failed(f"the connection broke: {type(error).__name__}") from None
    if done < pin.bytes:
        raise _Failed(f"the connection ended after {done:,} of {pin.bytes:,} bytes")


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
