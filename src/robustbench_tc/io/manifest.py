"""`manifest.json`: what a release is, file by file, and the checks that rest on it.

Every file of a release stands in it with its sha256. A folder cannot vouch for itself: whoever changes a file
can change its line here too, so this finds what was damaged, and a key or the Hub's commit
(`release.verify`) finds what was forged.
"""

import hashlib
import os
from collections.abc import Callable, Collection, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, Literal, NamedTuple, TypeVar

import msgspec
import semver

from ..errors import UserError
from .files import decoded, walk
from .marker import sha256

T = TypeVar("T")

NAME = "manifest.json"

Kind = Literal["robustbench-tc", "toolrl-dr", "robustbench-tc-live", "checkpoint"]
"""The benchmark, the training data, the live dataset, a trained model."""

SIGNATURE = "manifest.json.sig"
"""The ed25519 signature of the manifest's bytes, 64 bytes, where the release was signed."""

YANKED = "yanked.json"
"""Which versions were withdrawn and why: the one file that changes after a release."""

BESIDE = (SIGNATURE, YANKED)
"""Files that may lie beside the manifest without standing in it: they are about it, or come later."""

VERSION_LENGTH = 64
BYTES = 2**26
"""What a manifest, or a list of yanked versions, may have."""


class FileEntry(msgspec.Struct, frozen=True):
    """One file of a release."""

    bytes: int
    sha256: str


def unlike(path: Path, said: FileEntry) -> str:
    """How a file differs from what is said of it; "" where it does not."""
    held = entry(path)
    if held.bytes != said.bytes:
        return f"{held.bytes:,} bytes instead of {said.bytes:,}"
    same = held.sha256 == said.sha256
    return "" if same else f"sha256 {held.sha256[:12]}… instead of {said.sha256[:12]}…"


class Gate(msgspec.Struct, frozen=True):
    """The verdict that let this data out."""

    passed: bool
    report: str
    """The audit report's name among the files."""
    checks: int
    waived: tuple[str, ...] = ()
    """Ids of the checks whose failure a waiver covers."""


class Previous(msgspec.Struct, frozen=True):
    """The version that a release followed, where it was named."""

    version: str
    data_sha256: str
    step: str
    """How far the data moved from it: none, patch, minor, major (docs/releases.md)."""


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """A release. Paths are relative to its folder, with `/`."""

    manifest_version: int = 1
    kind: Kind
    version: str
    """Semantic, without a leading v; the tag on the Hub is `v` and this."""
    created_at: str
    """UTC, ISO 8601. Of it, the card has the year and croissant.json the day."""
    package_version: str
    licence: str
    data_sha256: str
    """`digest` of the data files: equal for two releases of the same data, and what the audit was about."""
    seed: int | None = None
    profile: str | None = None
    rows: dict[str, int] = {}
    """Config → rows (training data: all splits together)."""
    sources: tuple[dict[str, Any], ...] = ()
    """Upstream repositories: commit, licence, number of files and bytes read."""
    generators: dict[str, Any] = {}
    """Model-written type → who wrote its texts."""
    gate: Gate | None = None
    """None for a checkpoint: what a model is worth stands in its table."""
    repo: str | None = None
    """Where it is to be published, `org/name`: its card and croissant.json say that address."""
    doi: str | None = None
    previous: Previous | None = None
    files: dict[str, FileEntry]

    @property
    def tag(self) -> str:
        """The git tag of this version on the Hub."""
        return f"v{self.version}"

    def json(self) -> bytes:
        """The bytes of `manifest.json`, which the signature is made over."""
        return msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n"


class Problem(msgspec.Struct, frozen=True):
    """One thing that is not as it was released."""

    kind: Literal["bad", "missing", "surplus", "link", "signature"]
    path: str
    what: str = ""

    def __str__(self) -> str:
        return f"{self.kind}: {printable(self.path)}" + (f": {self.what}" if self.what else "")


class Contents(NamedTuple):
    """Everything under a folder, as sorted relative paths."""

    files: tuple[str, ...]
    links: tuple[str, ...]
    """Links, and whatever else is neither a file nor a folder."""
    tolerated: tuple[str, ...]
    """What git, the Hub and its client put beside a release: never part of one, never Parquet."""


def check_version(version: str) -> str:
    """The version without a leading v. UserError unless it is semantic (1.0.0, 1.1.0-rc.1).

    Refused too: a build part (`+…`), which semantic versions leave out when they are compared, and what git
    takes for no tag.
    """
    plain = version.removeprefix("v")
    if not is_version(plain):
        raise UserError(f"--version {printable(version)!r} is not a semantic version: give one like 1.0.0")
    return plain


def is_version(text: str) -> bool:
    """Whether a text is a semantic version that a tag can have, without a leading v."""
    if len(text) > VERSION_LENGTH or text.endswith(".lock"):
        return False
    try:
        return semver.Version.parse(text).build is None
    except ValueError:
        return False


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a release folder. UserError where there is none, or none that can be read."""
    path = folder / NAME
    if not folder.is_dir():
        raise UserError(f"{folder} is not a folder: name a release folder")
    if not path.is_file():
        raise UserError(f"{folder} has no {NAME}: it is not a release (`rbtc release` makes one)")
    found = decoded(bounded(path), Manifest, path)
    if found.manifest_version != 1:
        raise UserError(
            f"{path} is of version {found.manifest_version}: install a newer robustbench-tc to read it"
        )
    if not is_version(found.version):
        raise UserError(f"{path} cannot be read: {printable(found.version)!r} is not a semantic version")
    return found


def contents(folder: Path) -> Contents:
    """Walks the folder without following a link."""
    files, links, tolerated = list[str](), list[str](), list[str]()
    for path, kind in sorted(walk(folder)):
        if kind not in ("file", "folder") and not _is_cached_blob(folder, folder / path):
            links.append(path)
        elif kind != "folder":
            (tolerated if is_tolerated(path) else files).append(path)
    return Contents(tuple(files), tuple(links), tuple(tolerated))


def is_tolerated(path: str) -> bool:
    """Whether a file is git's, the Hub's or its client's own, and not Parquet, which a reader could find."""
    if path.lower().endswith(".parquet"):
        return False
    return path in (".gitattributes", ".git") or path.startswith((".git/", ".cache/huggingface/"))


def _is_cached_blob(folder: Path, path: Path) -> bool:
    """Whether a link is the Hub client's own: `snapshots/COMMIT/… -> blobs/HASH` of a cached repository."""
    commits = folder.absolute().parent
    if commits.name != "snapshots" or not path.is_symlink():
        return False
    target = Path(os.path.normpath(path.absolute().parent / path.readlink()))
    return target.parent == commits.parent / "blobs" and target.is_file()


def files_of(folder: Path) -> list[str]:
    """Every file under a folder that a manifest would name, as sorted relative paths."""
    return [path for path in contents(folder).files if path not in (NAME, *BESIDE)]


def entry(path: Path) -> FileEntry:
    """Size and sha256 of a file as it is on disk."""
    return FileEntry(bytes=path.stat().st_size, sha256=sha256(path))


def digest(files: dict[str, FileEntry]) -> str:
    """sha256 over the lines `path sha256`, sorted by path: the field `build` of an audit report."""
    paths = sorted(files, key=lambda path: PurePosixPath(path).parts)
    lines = "".join(f"{path} {files[path].sha256}\n" for path in paths)
    return hashlib.sha256(lines.encode()).hexdigest()


def data_files(files: dict[str, FileEntry], kind: Kind) -> dict[str, FileEntry]:
    """The files that are data: the Parquet files of a dataset, everything but the card of a checkpoint."""
    if kind == "checkpoint":
        return {path: found for path, found in files.items() if path != "README.md"}
    return {path: found for path, found in files.items() if path.endswith(".parquet")}


def problems(folder: Path) -> list[Problem]:
    """What is not as the folder's own manifest says: bad, missing and surplus files, and links."""
    manifest, found = read_manifest(folder), contents(folder)
    wrong = compared(folder, found, manifest.files, unlike, beside=(NAME, *BESIDE))
    wrong += [Problem("link", path, "a release holds plain files only") for path in found.links]
    if digest(data_files(manifest.files, manifest.kind)) != manifest.data_sha256:
        wrong.append(Problem("bad", NAME, "data_sha256 is not that of its files"))
    return wrong


def compared(
    folder: Path,
    found: Contents,
    listed: Mapping[str, T],
    unlike: Callable[[Path, T], str],
    beside: Collection[str],
) -> list[Problem]:
    """The files of a folder against a list of them; those `beside` may be there without standing in it."""
    wrong = []
    for path, said in sorted(listed.items()):
        if path not in found.files:
            wrong += [] if path in found.links else [Problem("missing", path)]
        elif what := unlike(folder / path, said):
            wrong.append(Problem("bad", path, what))
    surplus = [path for path in found.files if path not in listed and path not in beside]
    return wrong + [Problem("surplus", path) for path in surplus]


def printable(text: str, length: int = 300) -> str:
    """A text from a foreign file in one line, with nothing in it that a terminal acts on."""
    line = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return line if len(line) <= length else f"{line[:length]}…"


def bounded(path: Path) -> bytes:
    """The bytes of a small file that others wrote. UserError where they are too many."""
    with path.open("rb") as file:
        data = file.read(BYTES + 1)
    if len(data) > BYTES:
        raise UserError(f"{path} has more than {BYTES:,} bytes: that is not a file of a release")
    return data
