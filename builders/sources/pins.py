"""Which upstream files the benchmark and the training data are made from: repository, commit, hash, licence.

The facts are `builders/data/pins.json`. Paths are under the sources root, one folder per repository.
"""

from functools import cache
from hashlib import sha256
from pathlib import Path

import msgspec

from robustbench_tc.errors import UserError, unknown
from robustbench_tc.schema import Json

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

    def of(self, source: str) -> tuple[Pin, ...]:
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
                "files": len(self.of(name)),
                "bytes": sum(pin.bytes for pin in self.of(name)),
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
    """Raises UserError where the file (under `root`, or `at`) is not the pinned one, or has no pin."""
    pin = next((pin for pin in pins().files if pin.path == file), None)
    if pin is None:
        raise UserError(f"{file}: a file without a pin: add it to builders/data/pins.json")
    if problem := pin.problem(at or root / file):
        raise UserError(f"{file}: wrong checksum: {problem}; `rbtc data fetch` downloads the pinned file")
