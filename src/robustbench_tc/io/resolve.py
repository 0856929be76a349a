"""Where a dataset lies: a folder here, or a version on the Hub; and whether that version was withdrawn."""

import logging
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from ..errors import UserError
from .files import decoded
from .manifest import NAME, YANKED, printable

HUB_ID = re.compile(r"\w[\w.-]*/\w[\w.-]*", re.ASCII)
"""`org/name`."""

_log = logging.getLogger(__name__)


class Yank(msgspec.Struct, frozen=True):
    """A version that was withdrawn. It stays where it is, so that what rests on it can be looked up."""

    version: str
    reason: str
    date: str
    use: str | None = None
    """The version to take instead."""

    @property
    def line(self) -> str:
        """One line for a terminal: version, reason, and what to use instead."""
        instead = f"; use {printable(self.use)}" if self.use else ""
        return f"version {printable(self.version)} was yanked: {printable(self.reason)}{instead}"


def yanked_json(yanked: tuple[Yank, ...]) -> bytes:
    """The bytes of `yanked.json`."""
    return msgspec.json.format(msgspec.json.encode(yanked), indent=1) + b"\n"


def yanked_of(data: bytes, where: object) -> tuple[Yank, ...]:
    """The withdrawn versions that the bytes of `yanked.json` list. UserError if it is broken."""
    return decoded(data, tuple[Yank, ...], where)


def read_yanked(path: Path) -> tuple[Yank, ...]:
    """The withdrawn versions that a `yanked.json` lists; none where there is none. Raises UserError."""
    return yanked_of(path.read_bytes(), path) if path.is_file() else ()


def check_revision(folder: Path, revision: str | None) -> None:
    """Refuses a local folder of another version, which `datasets` would load without a word.

    UserError if `revision` (`v1.0.0`, `1.0.0`) is not the version that the folder's manifest states.
    """
    version = version_of(folder)
    if revision is None or revision.removeprefix("v") == version:
        return
    if version is None:
        raise UserError(
            f"--revision {revision}: {folder} is an unreleased build and has no version: "
            "leave --revision out, or name a release"
        )
    raise UserError(f"--revision {revision}: {folder} is version {version}: name another folder or revision")


def version_of(folder: Path) -> str | None:
    """The version that the release's manifest states; a build has none."""
    try:
        found = msgspec.json.decode((folder / NAME).read_bytes())
        return str(found["version"])
    except (OSError, ValueError, LookupError, TypeError):  # a build
        return None


def resolve_dataset(name: str, revision: str | None = None, *, patterns: Iterable[str] | None = None) -> Path:
    """The folder of a dataset: a local one, checked against `revision`, or `org/name` from the Hub's cache.

    `patterns` limits what is downloaded. Raises UserError with one line for whatever is missing.
    """
    folder = Path(name).expanduser()
    if folder.is_dir():
        check_revision(folder, revision)
        _warn(name, folder, read_yanked(folder / YANKED))
        return folder
    repo, at, version = name.rpartition("@")
    if at and HUB_ID.fullmatch(repo):
        raise UserError(f"no dataset at {name}: write {repo} --revision {version}")
    if not HUB_ID.fullmatch(name):
        raise UserError(f"no dataset at {name}: give a release folder or a Hub id like org/name")
    from huggingface_hub import errors, hf_hub_download, snapshot_download

    wanted = None if patterns is None else list(patterns)
    try:
        found = snapshot_download(name, repo_type="dataset", revision=revision, allow_patterns=wanted)
    except errors.RevisionNotFoundError:
        raise UserError(f"{name} on the Hub has no revision {revision!r}") from None
    except errors.GatedRepoError:
        raise UserError(f"{name} on the Hub is gated: ask for access there, then `hf auth login`") from None
    except errors.RepositoryNotFoundError:
        raise UserError(
            f"no dataset {name}: no such local folder, and no dataset on the Hub that this machine may read"
        ) from None
    except Exception as error:  # the client's own errors, its HTTP library's, the system's
        raise UserError(
            f"{name}: the Hub did not answer ({type(error).__name__}) and no copy is cached"
        ) from None
    with suppress(Exception):  # no list, or nobody to ask: a warning less, never a dataset less
        _warn(name, Path(found), read_yanked(Path(hf_hub_download(name, YANKED, repo_type="dataset"))))
    return Path(found)


def dataset_folder(name: str) -> Path:
    """A folder here, or the data of `org/name@revision` from the Hub. Raises UserError."""
    folder = Path(name).expanduser()
    if folder.exists():
        return folder
    repo, _, revision = name.partition("@")
    return resolve_dataset(repo, revision or None, patterns=["*/*.parquet", "*.json", "*.jsonl"])


def _warn(name: str, folder: Path, yanked: Sequence[Yank]) -> None:
    """Says so on standard error where the version that was resolved is a withdrawn one."""
    version = version_of(folder)
    for found in yanked:
        if found.version == version:
            _log.warning("%s: %s", name, found.line)
