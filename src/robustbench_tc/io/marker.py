"""What a folder of ours says about itself: its kind, and every file in it with its sha256.

A marker is a JSON file in the folder with `kind`, a version, `files` (relative path with `/` → sha256) and
`own_sha256`, the sha256 of the marker's own text with that field left empty: a marker that somebody wrote or
edited by hand is distinguished from ours. It names every file of the folder but itself.

    build_report.json   of a build (`rbtc build`, `rbtc build toolrl-dr`, `rbtc build live`)
    rbtc.json           of any other folder: a run, a report, a Space, a results folder
    audit_report.json   beside the build's: names what the audit wrote into the folder
"""

import hashlib
import os
import re
import stat
from pathlib import Path, PurePosixPath
from typing import Any, Literal

import msgspec

BUILD = "build_report.json"
"""The marker of a build."""

BUILD_VERSION = 2
"""`report_version` of a build's marker; 1 named no files."""

BuildKind = Literal["robustbench-tc", "toolrl-dr", "robustbench-tc-live"]

OWN = "rbtc.json"
"""The marker of every other folder."""

OWN_VERSION = 1

OwnKind = Literal["run", "live-run", "report", "space", "leaderboard", "training-rows", "live-report"]

AUDIT = "audit_report.json"
"""Names the files that an audit wrote beside it, and is ours if its seal is whole."""

PAGE = "audit_report.html"
"""The same for people to read; it carries a seal of its own."""

_SEAL = "<!-- as written by rbtc: sha256 {} -->"

_BYTES = 256 * 2**20
"""A marker beyond this is not read: the longest real one has 2.4 MB."""


class NotOurs(ValueError):
    """A file that is not a marker of ours; the text says why, without the file's name."""


class Marker(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The fields that make a JSON file a marker. A build's has many more, which are not looked at here."""

    kind: str
    report_version: int = 0
    """Of `build_report.json` and `audit_report.json`."""
    marker_version: int = 0
    """Of `rbtc.json`."""
    files: dict[str, str] = {}
    before: dict[str, str] = {}
    """What a file was before it was replaced: named until its successor is surely in place."""
    grows: dict[str, int] = {}
    """Files that are only ever appended to: how many of their bytes the sha256 is about."""
    own_sha256: str

    def accepts(self, name: str, sha256: str) -> bool:
        """Whether a file's sha256 is the one named, or the one before a write that may have been cut off."""
        return sha256 in (self.files.get(name), self.before.get(name))


def hashes(folder: Path, *, but: str) -> dict[str, str]:
    """Relative path → sha256 of every file under `folder`, sorted, without the marker `but` itself.

    Called last: a file of the folder is named by being there.
    """
    paths = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    return {name: sha256(path) for name, path in sorted(paths.items()) if name != but}


def sha256(path: Path, size: int | None = None) -> str:
    """The sha256 of a file's bytes, or of its first `size` bytes, as hex digits."""
    with path.open("rb") as file:
        if size is None:
            return hashlib.file_digest(file, "sha256").hexdigest()
        digest = hashlib.sha256()
        while size > 0 and (block := file.read(min(size, 1 << 20))):
            digest.update(block)
            size -= len(block)
        return digest.hexdigest()


def sha256_of(data: bytes) -> str:
    """64 hex digits."""
    return hashlib.sha256(data).hexdigest()


def sealed(marker: Any) -> bytes:
    """A marker struct, whose `own_sha256` is empty, as readable JSON with that field filled in."""
    return _sealed(msgspec.json.format(msgspec.json.encode(marker), indent=1) + b"\n")


def sealed_report(report: Any) -> bytes:
    """`sealed` for a struct without the field `own_sha256`, which is added at the end."""
    plain = msgspec.json.format(msgspec.json.encode(report), indent=1)
    return _sealed(plain.removesuffix(b"\n}") + b',\n "own_sha256": ""\n}\n')


def _sealed(plain: bytes) -> bytes:
    own = sha256_of(plain).encode()
    return plain.replace(b'"own_sha256": ""', b'"own_sha256": "' + own + b'"', 1)


def is_sealed(data: bytes, own_sha256: str) -> bool:
    """Whether `data` is the text that `sealed` wrote: nobody has changed the marker since."""
    plain = data.replace(own_sha256.encode(), b"", 1)
    return sha256_of(plain) == own_sha256


def sealed_page(page: str) -> str:
    """An HTML page with its own checksum in a comment at its end, in place of a marker."""
    plain = page.rstrip("\n") + "\n" + _SEAL.format("") + "\n"
    return plain.removesuffix(_SEAL.format("") + "\n") + _SEAL.format(sha256_of(plain.encode())) + "\n"


def is_whole_page(path: Path) -> bool:
    """Whether a page is as `sealed_page` made it."""
    data = path.read_bytes()
    found = re.search(_SEAL.format("([0-9a-f]{64})").encode() + rb"\n\Z", data)
    return found is not None and is_sealed(data, found[1].decode())


def describe(folder: Path, kind: OwnKind) -> None:
    """Writes the `rbtc.json` of a folder whose other files are all there."""
    made = Marker(kind=kind, marker_version=OWN_VERSION, files=hashes(folder, but=OWN), own_sha256="")
    (folder / OWN).write_bytes(sealed(made))


def read(path: Path) -> Marker:
    """A marker file, held against its seal. Raises NotOurs, and FileNotFoundError where there is none."""
    if not stat.S_ISREG(path.lstat().st_mode):
        raise NotOurs("it is not a regular file")
    with open(path, "rb", opener=_no_link) as file:
        data = file.read(_BYTES + 1)
    if len(data) > _BYTES:
        raise NotOurs("it is too long")
    try:
        found = msgspec.json.decode(data, type=Marker)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise NotOurs("it is not a marker of rbtc") from None
    if not found.own_sha256:
        raise NotOurs("it names no files (made by an older version, or by something else)")
    if not is_sealed(data, found.own_sha256):
        raise NotOurs("it was changed since rbtc wrote it")
    if not all(map(_is_plain, (*found.files, *found.before))):
        raise NotOurs("it names files outside its folder")
    return found


def check_form(found: Marker, name: str) -> None:
    """Raises NotOurs where the marker `name` is of a kind or version that this package does not write."""
    if name == BUILD:
        kinds, version, known = BuildKind, found.report_version, BUILD_VERSION
        first = BUILD_VERSION  # version 1 named no files
    else:
        kinds, version, known, first = OwnKind, found.marker_version, OWN_VERSION, 1
    if found.kind not in kinds.__args__:  # type: ignore[attr-defined]
        raise NotOurs(f"its kind {found.kind[:40]!r} is unknown")
    if not first <= version <= known:
        raise NotOurs(f"its version {version} is unknown")


def _is_plain(name: str) -> bool:
    """Whether a name is a path below the folder in the one form that `hashes` writes."""
    path = PurePosixPath(name)
    return (
        name not in ("", ".")
        and "\0" not in name
        and not path.is_absolute()
        and ".." not in path.parts
        and path.as_posix() == name
    )


def _no_link(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)
