"""What a folder of ours says about itself: its kind, and every file in it with its sha256.

A marker is a JSON file in the folder with `kind`, a version, `files` (relative path with `/` → sha256) and
`own_sha256`, the sha256 of the marker's own text with that field left empty: a marker that somebody wrote or
edited by hand is distinguished from ours. It names every file of the folder but itself.

    build_report.json   of a build (`rbtc build`, `rbtc build toolrl-dr`, `rbtc build live`)
    rbtc.json           of any other folder: a run, a report, a Space, a results folder
    audit_report.json   beside the build's: names what the audit wrote into the folder
"""

import hashlib
import re
from pathlib import Path
from typing import Any, Literal

import msgspec

BUILD = "build_report.json"
"""The marker of a build."""

BUILD_VERSION = 2
"""`report_version` of a build's marker."""

BuildKind = Literal["robustbench-tc", "toolrl-dr", "robustbench-tc-live"]

OWN = "rbtc.json"
"""The marker of every other folder."""

OWN_VERSION = 2
"""`marker_version` of `rbtc.json`."""

OwnKind = Literal["run", "baseline", "report", "space", "training-rows", "live-report", "site"]

AUDIT = "audit_report.json"
"""Names the files that an audit wrote beside it, and is ours if its seal is whole."""

PAGE = "audit_report.html"
"""The same for people to read; it carries a seal of its own."""

LIVING = ""
"""In place of a sha256: the file is written again and again, such as a journal."""

_SEAL = "<!-- as written by rbtc: sha256 {} -->"


def hashes(folder: Path, *, but: str) -> dict[str, str]:
    """Relative path → sha256 of every file under `folder`, sorted, without the marker `but` itself.

    Called last: a file of the folder is named by being there.
    """
    paths = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    return {name: sha256(path) for name, path in sorted(paths.items()) if name != but}


def sha256(path: Path) -> str:
    """The sha256 of a file's bytes as hex digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sha256_of(data: bytes) -> str:
    """64 hex digits."""
    return hashlib.sha256(data).hexdigest()


def sealed(marker: Any) -> bytes:
    """A marker struct as readable JSON, with `own_sha256` filled in, or at its end."""
    fields = msgspec.to_builtins(marker) | {"own_sha256": ""}
    plain = msgspec.json.format(msgspec.json.encode(fields), indent=1) + b"\n"
    return plain.replace(b'"own_sha256": ""', b'"own_sha256": "%b"' % sha256_of(plain).encode(), 1)


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
