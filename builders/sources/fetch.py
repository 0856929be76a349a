"""The sources folder: where it is, filling it from the pinned commits, checking it.

A file is downloaded to `NAME.partial`, resumed where a killed run or a dropped connection left it, and gets
its name only when its sha256 is the pinned one.

Not by pooch: it begins a broken download again from its first byte, reads a body of any length, repeats what
was refused for good, and a kill leaves a temporary file of a random name that nobody knows for ours.
"""

import http.client
import os
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Collection, Iterator
from pathlib import Path

import msgspec

from robustbench_tc.errors import UserError
from robustbench_tc.io.files import locked
from robustbench_tc.io.folders import strangers
from robustbench_tc.llm.address import Address, parse_address
from robustbench_tc.option import Tell, silent
from robustbench_tc.shown import Line, Part

from .pins import Pin, Pins, pins

__all__ = ["BASE_URL", "Fetched", "Verification", "default_root", "fetch", "pins", "resolve_root", "verify"]

BASE_URL = "https://raw.githubusercontent.com"
"""Where `BASE/owner/name/commit/path` is the raw file."""

_CHUNK = 1 << 16
_RETRIES = 5
"""Attempts in a row that bring no new byte before a file is given up."""
_TIMEOUT_S = 60
_BUSY = (408, 429)
"""Besides 5xx: statuses after which asking again makes sense."""


class Fetched(msgspec.Struct, frozen=True):
    """What a fetch did: paths that were downloaded and paths that were right already."""

    root: Path
    downloaded: tuple[str, ...]
    present: tuple[str, ...]

    def shown(self) -> Iterator[str]:
        """How many there are now."""
        yield (
            f"{self.root}: {len(self.downloaded)} files downloaded, {len(self.present)} were there already; "
            "all checksums right"
        )


class Verification(msgspec.Struct, frozen=True):
    """What a check of a sources folder found."""

    root: Path
    checked: int
    bad: tuple[tuple[str, str], ...]
    """(path, problem), in the pins' order."""

    @property
    def exit_code(self) -> int:
        """1 where a file is not as pinned."""
        return int(bool(self.bad))

    def shown(self) -> Iterator[Part]:
        """Every file that is not as pinned, and how many there are."""
        yield from (f"{path}: {problem}" for path, problem in self.bad)
        if self.bad:
            text = f"{len(self.bad)} of {self.checked} files in {self.root} are not as pinned"
            yield Line(text, aside=True)
        else:
            yield f"{self.root}: {self.checked} files, all as pinned"


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
        raise UserError(f"no sources folder at {root}: run `rbtc data fetch`, or pass --sources DIR")
    return root


def verify(root: Path, *, only: Collection[str] | None = None) -> Verification:
    """Checks presence, size and sha256 of every pinned file under `root` (of the sources `only`)."""
    chosen = _chosen(pins(), only)
    found = ((pin.path, pin.problem(root / pin.path)) for pin in chosen)
    return Verification(root, len(chosen), tuple((path, problem) for path, problem in found if problem))


def fetch(
    root: Path,
    *,
    base_url: str = BASE_URL,
    only: Collection[str] | None = None,
    progress: Tell = silent,
    pinned: Pins | None = None,
    backoff_s: float = 0.5,
    discard_changes: bool = False,
) -> Fetched:
    """Downloads the pinned files that are not right yet. Raises UserError naming the file.

    `only` limits it to some of the pins' sources; `backoff_s` is the first pause after a failure, doubled up
    to 16 times. Files that are right are not asked for. A file in the place of a pinned one is replaced with
    `discard_changes` only; a folder of something else is refused.
    """
    address = parse_address(base_url, "--mirror")
    known = pinned or pins()
    chosen = _chosen(known, only)
    needed = [pin for pin in chosen if pin.problem(root / pin.path) is not None]
    if needed:
        try:
            _refuse_foreign(root, known)
            for pin in needed:
                _refuse_changed(root / pin.path, discard_changes)
            root.mkdir(parents=True, exist_ok=True)
            with locked(root.absolute() / "fetch"):
                for pin in needed:
                    origin = known.sources[pin.source]
                    where = f"{origin.repository}/{origin.commit}/{pin.upstream_path}"
                    at = address._replace(url=f"{address.url}/{urllib.parse.quote(where)}")
                    _download(at, root / pin.path, pin, progress, backoff_s)
        except OSError as error:
            raise UserError(f"cannot write to {error.filename or root}: {error.strerror or error}") from None
    downloaded = tuple(pin.path for pin in needed)
    return Fetched(root, downloaded, tuple(pin.path for pin in chosen if pin.path not in downloaded))


def _refuse_foreign(root: Path, known: Pins) -> None:
    """UserError for a folder that holds files and none of upstream's, whole or begun."""
    if root.is_symlink():
        raise UserError(f"{root} is a link: name the folder itself")
    paths = [pin.path for pin in known.files]
    ours = (*paths, *(f"{path}.partial" for path in paths))
    if root.is_dir() and strangers(root, ()) and not any((root / path).is_file() for path in ours):
        raise UserError(f"{root} holds other files and none of upstream's: name a new one with --sources")


def _refuse_changed(path: Path, discard_changes: bool) -> None:
    """UserError for what lies in the place of a pinned file, whole or begun, and is something else."""
    for link in (path, _partial(path)):
        if link.is_symlink() or link.is_dir():
            raise UserError(f"{link} is not a file of its own: move it away")
    if path.exists() and not discard_changes:
        raise UserError(f"{path} is not the pinned file: move it away, or replace it with --discard-changes")


def _chosen(known: Pins, only: Collection[str] | None) -> tuple[Pin, ...]:
    if only is None:
        return known.files
    return tuple(pin for source in only for pin in known.of(source))


def _download(at: Address, path: Path, pin: Pin, progress: Tell, backoff_s: float) -> None:
    """One file into place. Raises UserError, and then leaves a `.partial` only if it is worth resuming."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = _partial(path)
    inherited = partial.exists()
    _complete(at, partial, pin, progress, backoff_s)
    problem = pin.problem(partial)
    if problem is not None and inherited:  # an earlier run may have left the beginning of another file
        partial.unlink()
        _complete(at, partial, pin, progress, backoff_s)
        problem = pin.problem(partial)
    if problem is not None:
        partial.unlink()
        raise UserError(f"{pin.path}: wrong checksum: {problem} ({at.url}); the file was not kept")
    with partial.open("rb") as file:
        os.fsync(file.fileno())
    partial.replace(path)


def _complete(at: Address, partial: Path, pin: Pin, progress: Tell, backoff_s: float) -> None:
    """Asks until `partial` has the pinned size. Raises UserError after attempts that bring no new byte."""
    failures, most = 0, _size(partial)
    while _size(partial) < pin.bytes:
        try:
            _attempt(at, partial, pin, progress)
        except _Failed as reason:
            failures = 1 if _size(partial) > most else failures + 1
            most = max(most, _size(partial))
            if failures >= _RETRIES:
                raise UserError(
                    f"{pin.path}: {reason} ({at.url}); run `rbtc data fetch` again to resume"
                ) from None
            time.sleep(backoff_s * 2 ** min(failures - 1, 4))


def _attempt(at: Address, partial: Path, pin: Pin, progress: Tell) -> None:
    """One request, from where `partial` ends. Raises _Failed when asking again makes sense."""
    start = _size(partial)
    headers = {"User-Agent": "robustbench-tc", "Accept-Encoding": "identity"}
    if start:
        headers["Range"] = f"bytes={start}-"
    request = urllib.request.Request(at.url, headers=headers | at.headers)
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as reply:
            if start and not str(reply.headers.get("Content-Range", "")).startswith(f"bytes {start}-"):
                start = 0  # the server sends the whole file
            done = start
            with partial.open("r+b" if start else "wb") as file:
                file.seek(start)
                # One byte more than pinned is enough to see that it is another file.
                while done <= pin.bytes and (chunk := reply.read(min(_CHUNK, pin.bytes + 1 - done))):
                    file.write(chunk)
                    done += len(chunk)
                    progress(f"{pin.path}: {done / 1e6:.1f} of {pin.bytes / 1e6:.1f} MB")
    except urllib.error.HTTPError as error:
        if error.code == 416:
            partial.unlink()
        elif error.code < 500 and error.code not in _BUSY:
            raise UserError(
                f"{pin.path}: the server answers {error.code} {error.reason} for {at.url}"
            ) from None
        raise _Failed(f"the server answers {error.code} {error.reason}") from None
    except urllib.error.URLError as error:
        raise _Failed(f"no connection: {error.reason}") from None
    except (http.client.HTTPException, ConnectionError, TimeoutError, ssl.SSLError) as error:
        raise _Failed(f"the connection broke: {type(error).__name__}") from None
    if done < pin.bytes:
        raise _Failed(f"the connection ended after {done:,} of {pin.bytes:,} bytes")


def _partial(path: Path) -> Path:
    return path.with_name(path.name + ".partial")


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
