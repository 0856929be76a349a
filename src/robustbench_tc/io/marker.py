"""What a folder of ours says about itself: its kind, and every file in it with its sha256.

A marker is a JSON object with `kind`, a version, `files` (relative path with `/` → sha256) and `own_sha256`,
the sha256 of the marker's own text with that field left empty. It names every file of the folder but itself.
"""

import hashlib
from pathlib import Path
from typing import Any, Literal

import msgspec

BUILD = "build_report.json"
"""The marker of a build."""

BUILD_VERSION = 2
"""`report_version` of a build's marker; 1 named no files."""

BuildKind = Literal["robustbench-tc", "toolrl-dr"]


def hashes(folder: Path, *, but: str) -> dict[str, str]:
    """Relative path → sha256 of every file under `folder`, sorted, without the marker `but` itself.

    Written last: a file of the folder is named by being there.
    """
    paths = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    return {name: sha256(path) for name, path in sorted(paths.items()) if name != but}


def sha256(path: Path) -> str:
    """The sha256 of a file's bytes, as hex digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sealed(marker: Any) -> bytes:
    """A marker struct, whose `own_sha256` is empty, as readable JSON with that field filled in."""
    plain = msgspec.json.format(msgspec.json.encode(marker), indent=1) + b"\n"
    own = hashlib.sha256(plain).hexdigest().encode()
    return plain.replace(b'"own_sha256": ""', b'"own_sha256": "' + own + b'"', 1)


def is_sealed(data: bytes, own_sha256: str) -> bool:
    """Whether `data` is the text that `sealed` wrote: nobody has changed the marker since."""
    plain = data.replace(own_sha256.encode(), b"", 1)
    return hashlib.sha256(plain).hexdigest() == own_sha256
