"""`manifest.json`: what a release is, file by file, and the checks that rest on it.

Every file of a release stands in it with its sha256; the moment of the release stands nowhere else, so two
releases of the same data differ in the manifest alone.
"""

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Any, Literal, get_args

import msgspec

from .errors import UserError, unknown

NAME = "manifest.json"

Kind = Literal["robustbench-tc", "toolrl-dr", "checkpoint"]
"""The benchmark, the training data, a trained model."""

KINDS: tuple[str, ...] = get_args(Kind)

NOT_OURS = (".gitattributes", ".cache")
"""What the Hub and its client put beside a release that they store."""

_VERSION = re.compile(r"v?(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?")
_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")


class FileEntry(msgspec.Struct, frozen=True):
    """One file of a release."""

    bytes: int
    sha256: str


class Gate(msgspec.Struct, frozen=True):
    """The verdict that let this data out."""

    passed: bool
    report: str
    """The audit report's name among the files."""
    checks: int
    waived: tuple[str, ...] = ()
    """Ids of the checks whose failure a waiver covers."""


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """A release. Paths are relative to its folder, with `/`."""

    manifest_version: int = 1
    kind: Kind
    version: str
    """Semantic, without a leading v; the tag on the Hub is `v` and this."""
    created_at: str
    """UTC, ISO 8601. The only time stamp of a release."""
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
    files: dict[str, FileEntry]

    @property
    def tag(self) -> str:
        return f"v{self.version}"

    def json(self) -> bytes:
        return msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n"


def check_version(version: str) -> str:
    """The version without a leading v. UserError unless it is semantic (1.0.0, 1.1.0-rc.1)."""
    if not _VERSION.fullmatch(version):
        raise UserError(f"--version {version!r} is no semantic version: give one like 1.0.0")
    return version.removeprefix("v")


def read(folder: Path) -> Manifest:
    """The manifest of a release folder. UserError where there is none, or none that can be read."""
    path = folder / NAME
    if not folder.is_dir():
        raise UserError(f"{folder} is no folder: name a release folder")
    try:
        return msgspec.json.decode(path.read_bytes(), type=Manifest)
    except FileNotFoundError:
        raise UserError(f"{folder} has no {NAME}: it is no release (`rbtc release` makes one)") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path} cannot be read: {error}") from None


def files_of(folder: Path) -> list[str]:
    """Every file under a release folder but the manifest itself, as sorted relative paths."""
    found = []
    for path in folder.rglob("*"):
        relative = path.relative_to(folder)
        if path.is_file() and relative.parts[0] not in NOT_OURS and relative.as_posix() != NAME:
            found.append(relative.as_posix())
    return sorted(found)


def entry(path: Path) -> FileEntry:
    with path.open("rb") as file:
        return FileEntry(bytes=path.stat().st_size, sha256=hashlib.file_digest(file, "sha256").hexdigest())


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


def problems(folder: Path) -> list[str]:
    """What is wrong with a release folder, one line per bad, missing or surplus file; [] when nothing is."""
    manifest = read(folder)
    present = set(files_of(folder))
    found = []
    for path, expected in sorted(manifest.files.items()):
        if path not in present:
            found.append(f"missing: {path}")
            continue
        actual = entry(folder / path)
        if actual.bytes != expected.bytes:
            found.append(f"bad: {path}: {actual.bytes:,} bytes instead of {expected.bytes:,}")
        elif actual.sha256 != expected.sha256:
            found.append(f"bad: {path}: sha256 {actual.sha256[:12]}… instead of {expected.sha256[:12]}…")
    found += [f"surplus: {path}" for path in sorted(present - set(manifest.files))]
    if digest(data_files(manifest.files, manifest.kind)) != manifest.data_sha256:
        found.append(f"bad: {NAME}: data_sha256 is not that of its files")
    return found


def check_revision(folder: Path, revision: str | None) -> None:
    """Refuses a local folder of another version, which `datasets` would load without a word.

    UserError if `revision` (`v1.0.0`, `1.0.0`) is not the version that the folder's manifest states.
    """
    if revision is None:
        return
    if not (folder / NAME).is_file():
        raise UserError(
            f"--revision {revision}: {folder} is an unreleased build and has no version: "
            "leave --revision out, or name a release"
        )
    version = read(folder).version
    if revision.removeprefix("v") != version:
        raise UserError(
            f"--revision {revision}: {folder} is version {version}: name another folder or revision"
        )


def resolve_dataset(name: str, revision: str | None = None, *, patterns: Iterable[str] | None = None) -> Path:
    """The folder of a dataset: a local one, checked against `revision`, or `org/name` from the Hub's cache.

    `patterns` limits what is downloaded. Raises UserError with one line for whatever is missing.
    """
    folder = Path(name).expanduser()
    if folder.is_dir():
        check_revision(folder, revision)
        return folder
    if not _HUB_ID.fullmatch(name):
        raise UserError(f"no dataset at {name}: give a release folder or a Hub id like org/name")
    from huggingface_hub import errors, snapshot_download

    wanted = None if patterns is None else list(patterns)
    try:
        found = snapshot_download(name, repo_type="dataset", revision=revision, allow_patterns=wanted)
    except errors.RevisionNotFoundError:
        raise UserError(f"{name} on the Hub has no revision {revision!r}") from None
    except errors.GatedRepoError:
        raise UserError(f"{name} on the Hub is gated: ask for access there, then `hf auth login`") from None
    except errors.RepositoryNotFoundError:
        raise UserError(
            f"no dataset {name}: no such folder here, and none on the Hub that this machine may read"
        ) from None
    except Exception as error:  # the client's own errors, its HTTP library's, the system's
        raise UserError(
            f"{name}: the Hub did not answer ({type(error).__name__}) and no copy is cached"
        ) from None
    return Path(found)


def check_kind(kind: str) -> Kind:
    if kind not in KINDS:
        raise unknown("kind", kind, KINDS)
    return kind  # type: ignore[return-value]
