"""Reading what is stored, whatever has become of it: a file is as it should be, or one line says why not."""

import re
import stat
from datetime import datetime
from pathlib import Path
from typing import TypeVar

import msgspec

from .limits import MB
from .records import Submission, Verification

RECORD_BYTES = MB
"""Of a submission's record, of its run record and of a verification."""

ENTRY_BYTES = 16 * MB

TEXT = 300
"""Characters of any text in a record."""

_ID = re.compile(r"[0-9]{8}-[0-9a-f]{12}")
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+_-]{0,63}")
_FINGERPRINT = re.compile(r"[0-9a-f]{8,128}")

T = TypeVar("T", bound=msgspec.Struct)


def decode(path: Path, kind: type[T], bound: int = RECORD_BYTES) -> T:
    """A stored record. Raises OSError or ValueError, with words that name no file."""
    found = path.lstat()
    if not stat.S_ISREG(found.st_mode):
        raise ValueError(f"{path.name} is not a file")
    if found.st_size > bound:
        raise ValueError(f"{path.name} has more than {bound:,} bytes")
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except RecursionError:
        raise ValueError(f"{path.name} is nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"{path.name}: {error}") from None


def said(error: Exception) -> str:
    """One line on why a file cannot be read."""
    if isinstance(error, OSError):
        return f"{Path(str(error.filename)).name}: {error.strerror}" if error.filename else str(error)
    return " ".join(str(error).split())[:TEXT]


def seen(path: Path) -> tuple[int, ...]:
    """What changes with a file: when it was written, and its size. Raises OSError where there is none, and
    ValueError where there is something else."""
    found = path.lstat()
    if not stat.S_ISREG(found.st_mode):
        raise ValueError(f"{path.name} is not a file")
    return found.st_mtime_ns, found.st_size


def date_of(text: str) -> datetime:
    """The moment, or day, of an ISO 8601 text. Raises ValueError."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text[:40]!r} is no moment that can be read") from None


def sound_verification(one: Verification, name: str) -> None:
    """Raises ValueError for a verification that is not of the submission `name`, or that cannot be shown."""
    if one.submission != name:
        raise ValueError(f"it is that of {one.submission[:40]}")
    date_of(one.verified_at)
    if not 0 < len(one.by) <= TEXT or not 0 <= one.agree <= one.rows:
        raise ValueError("it says nothing that can be shown")


def sound(one: Submission, name: str) -> None:
    """Raises ValueError for a record that is not one of the folder `name`, or that no board can show."""
    if one.id != name:
        raise ValueError(f"its record is that of {one.id[:40]}")
    if not _ID.fullmatch(one.id):
        raise ValueError("its id is not a date and 12 hex digits")
    if date_of(one.submitted_at).tzinfo is None:
        raise ValueError("it was submitted at no moment that can be read: its time has no zone")
    texts = [value for value in msgspec.structs.asdict(one).values() if isinstance(value, str)]
    if any(len(text) > TEXT for text in texts):
        raise ValueError(f"a text of its record has more than {TEXT} characters")
    if not one.model or not one.user:
        raise ValueError("its record lacks a name")
    if not _VERSION.fullmatch(one.dataset_version) or not _FINGERPRINT.fullmatch(one.fingerprint):
        raise ValueError("its record names no dataset")
    if not 1 <= one.repeats <= 9:
        raise ValueError("its number of repeats is out of range")
    for size in (one.params_b, one.price_in, one.price_out):
        if size is not None and not 0 <= size < 1e9:
            raise ValueError("a number of its record is out of range")
