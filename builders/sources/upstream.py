"""Which upstream files the benchmark and the training data are made from: repository, commit, hash, licence.

The facts are `builders/data/pins.json`. Paths are under the sources root, one folder per repository: it is
filled from the pinned commits and checked here. A file is at most 4 MB: it is held against its pinned sha256
before anything is written.
"""

import http.client
import os
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Collection, Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path

import msgspec

from robustbench_tc.errors import UserError, unknown
from robustbench_tc.io.files import atomic_file, locked
from robustbench_tc.io.folders import strangers
from robustbench_tc.llm.endpoint import Address, parse_address
from robustbench_tc.option import Tell, silent
from robustbench_tc.schema import Json
from robustbench_tc.shown import Line, Part

LIVE_SOURCE = "bfcl_multi_turn"
"""Read for the live dataset only; its files lie in the folder of bfcl, at a later commit."""


class Repository(msgspec.Struct, frozen=True):
    """An upstream repository at its pinned commit."""

    repository: str
    """`owner/name` on GitHub."""
    commit: str
    commit_date: str
    licence: str
    """SPDX identifier."""
    licence_file: str
    """Path under the sources root."""
    citation: str


class Pin(msgspec.Struct, frozen=True):
    """One pinned file."""

    path: str
    """Under the sources root."""
    source: str
    """A key of `Pins.sources`."""
    upstream_path: str
    bytes: int
    sha256: str

    def problem(self, path: Path) -> str | None:
        """What is wrong with the file at `path`, or None."""
        try:
            return difference(self, path.read_bytes()) if path.is_file() else "missing"
        except OSError as error:
            return f"it cannot be read: {error.strerror}"


def difference(pin: Pin, data: bytes) -> str | None:
    """How a file's bytes are not the pinned ones, or None."""
    if len(data) != pin.bytes:
        return f"{len(data):,} bytes instead of {pin.bytes:,}"
    found = sha256(data).hexdigest()
    return None if found == pin.sha256 else f"sha256 {found[:12]}… instead of {pin.sha256[:12]}…"


class Pins(msgspec.Struct, frozen=True):
    """`pins.json`: the upstream repositories, and every file that is read with its size and sha256."""

    sources: dict[str, Repository]
    files: tuple[Pin, ...]

    def files_of(self, source: str) -> tuple[Pin, ...]:
        """The files of one source. Raises UserError with near misses."""
        if source not in self.sources:
            raise unknown("source", source, self.sources)
        return tuple(pin for pin in self.files if pin.source == source)

    def rows(self, but: str | None = None) -> tuple[dict[str, Json], ...]:
        """One row per source, for tables and reports; without the source `but`."""
        return tuple(
            {
                "source": name,
                "repository": origin.repository,
                "commit": origin.commit,
                "licence": origin.licence,
                "files": len(self.files_of(name)),
                "bytes": sum(pin.bytes for pin in self.files_of(name)),
            }
            for name, origin in self.sources.items()
            if name != but
        )


@cache
def pins() -> Pins:
    """The pins that this version of the package was made with."""
    path = Path(__file__).parents[1] / "data" / "pins.json"
    return msgspec.json.decode(path.read_bytes(), type=Pins)


def must_be_pinned(root: Path, file: str, at: Path | None = None) -> None:
    """Raises UserError where the file (under `root`, or `at`) is missing, is not the pinned one, or has no
    pin."""
    pin = next((pin for pin in pins().files if pin.path == file), None)
    if pin is None:
        raise UserError(f"{file}: the file has no pin: add it to builders/data/pins.json")
    place = at or root / file
    if not place.exists():
        raise UserError(f"missing source file {file} in {root}: run `rbtc data fetch`, or pass --sources")
    if problem := pin.problem(place):
        raise UserError(f"{file}: wrong checksum: {problem}; `rbtc data fetch` downloads the pinned file")


BASE_URL = "https://raw.githubusercontent.com"
"""Where `BASE/owner/name/commit/path` is the raw file."""

_TRIES = 5
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

    `only` limits it to some of the pins' sources; `backoff_s`: pauses after failures double it. Files
    that are right are not asked for. A file in the place of a pinned one is replaced with
    `discard_changes` only; a folder of something else is refused.
    """
    address = parse_address(base_url, "--mirror")
    known = pinned or pins()
    chosen = _chosen(known, only)
    needed = [pin for pin in chosen if pin.problem(root / pin.path) is not None]
    if needed:
        _refuse_foreign(root, known)
        for pin in needed:
            _refuse_changed(root / pin.path, discard_changes)
        root.mkdir(parents=True, exist_ok=True)
        with locked(root.absolute() / "fetch"):
            for pin in needed:
                origin = known.sources[pin.source]
                where = f"{origin.repository}/{origin.commit}/{pin.upstream_path}"
                at = address._replace(url=f"{address.url}/{urllib.parse.quote(where)}")
                data = _download(at, pin, progress, backoff_s)
                with atomic_file(root / pin.path, replace=True) as beside:
                    beside.write_bytes(data)
    downloaded = tuple(pin.path for pin in needed)
    return Fetched(root, downloaded, tuple(pin.path for pin in chosen if pin.path not in downloaded))


def _refuse_foreign(root: Path, known: Pins) -> None:
    """UserError for a folder that holds files and none of upstream's."""
    if root.is_symlink():
        raise UserError(f"{root} is a link: name the folder itself")
    ours = any((root / pin.path).is_file() for pin in known.files)
    if root.is_dir() and strangers(root, ()) and not ours:
        raise UserError(f"{root} holds other files and none of upstream's: name a new one with --sources")


def _refuse_changed(path: Path, discard_changes: bool) -> None:
    """UserError for what lies in the place of a pinned file and is something else."""
    if path.is_symlink() or path.is_dir():
        raise UserError(f"{path} is not a regular file: move it away")
    if path.exists() and not discard_changes:
        raise UserError(f"{path} is not the pinned file: move it away, or replace it with --discard-changes")


def _chosen(known: Pins, only: Collection[str] | None) -> tuple[Pin, ...]:
    if only is None:
        return known.files
    return tuple(pin for source in only for pin in known.files_of(source))


def _download(at: Address, pin: Pin, progress: Tell, backoff_s: float) -> bytes:
    """The pinned bytes; asked for again where another try may mend it. Raises UserError."""
    request = urllib.request.Request(at.url, headers={"User-Agent": "robustbench-tc"} | at.headers)
    reason = ""
    for attempt in range(_TRIES):
        if attempt:
            time.sleep(backoff_s * 2**attempt)
        progress(f"{pin.path}: {pin.bytes / 1e6:.1f} MB")
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as reply:
                data: bytes = reply.read(pin.bytes + 1)  # one more than pinned shows that it is another file
        except urllib.error.HTTPError as error:
            reason = f"the server answers {error.code} {error.reason}"
            if error.code < 500 and error.code not in _BUSY:
                break
        except (http.client.HTTPException, OSError) as error:
            reason = f"no connection: {getattr(error, 'reason', error)}"
        else:
            problem = difference(pin, data)
            if problem is None:
                return data
            reason = f"wrong checksum: {problem}"
            if len(data) >= pin.bytes:  # a shorter one broke off
                break
    raise UserError(f"{pin.path}: {reason} ({at.url})")
