"""The members of a zip file that somebody sent: read one by one, bounded, never written to a disk.

inspect_ai compresses with Zstandard, which Python's own `zipfile` cannot read before 3.14; Arrow can.
"""

import copy
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from robustbench_tc.errors import UserError
from robustbench_tc.safe_text import safe

DIRECTORY = 32 * 2**20
"""Bytes of a zip's list of members: some 300,000 of them, which take half a gigabyte once they are read."""

MEMBER = 64 * 2**20
"""Bytes of a member, packed or not."""

IN_ALL = 16 * 2**30
"""Unpacked bytes of all members that are read."""

ZSTANDARD = 93


class Zip:
    """A zip file that is open. Raises UserError with one line."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._path, self._left = path, IN_ALL
        # Where `zipfile` finds the list's size: it is read whole, so it is looked at before.
        end = getattr(zipfile, "_EndRecData")(file)  # noqa: B009
        if not end:
            raise UserError(f"{path} is no zip file, or it was cut off")
        if end[5] > DIRECTORY:
            raise UserError(f"{path}: its list of members has {end[5]:,} bytes, at most {DIRECTORY:,}")
        try:
            self._zip = zipfile.ZipFile(file)
        except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
            raise UserError(f"{path} is damaged: {safe(str(error), keep='')}") from None

    def names(self, folder: str = "") -> Iterator[str]:
        """Members below `folder`, in the file's order."""
        return (name for name in self._zip.NameToInfo if name.startswith(folder))

    def read(self, name: str) -> bytes | None:
        """A member's bytes; None where there is no such member."""
        found = self._zip.NameToInfo.get(name)
        if found is None:
            return None
        most = min(MEMBER, self._left)
        if max(found.file_size, found.compress_size) > most:
            raise UserError(
                f"{self._path}: {_shown(name)} has more than {most:,} bytes, which is as much as is read"
            )
        try:
            data = self._unpacked(found)
        # Arrow's errors are some of these; NotImplementedError, a RuntimeError: packed in another way.
        except (zipfile.BadZipFile, OSError, ValueError, EOFError, RuntimeError, zlib.error) as error:
            why = safe((str(error) or repr(error)).splitlines()[0][:200], keep="")
            raise UserError(f"{self._path} is damaged: {_shown(name)}: {why}") from None
        self._left -= len(data)
        return data

    def _unpacked(self, found: zipfile.ZipInfo) -> bytes:
        """At most as many bytes as the list of members says."""
        if found.compress_type != ZSTANDARD:
            with self._zip.open(found) as member:
                return member.read(found.file_size)  # no bomb: at most so much is unpacked
        stored = copy.copy(found)
        stored.compress_type, stored.file_size = zipfile.ZIP_STORED, found.compress_size
        del stored.CRC  # that of what is unpacked
        with self._zip.open(stored) as member:
            packed = member.read()
        with pa.CompressedInputStream(pa.BufferReader(packed), "zstd") as stream:
            data: bytes = stream.read(found.file_size + 1)
        if zlib.crc32(data) != found.CRC:
            raise zipfile.BadZipFile("it is not as it was written")
        return data


def _shown(name: str) -> str:
    return repr(safe(name[:100], keep=""))


@contextmanager
def opened(path: Path) -> Iterator[Zip]:
    """The zip file there."""
    with path.open("rb") as file:
        yield Zip(path, file)
