"""The members of a zip file that somebody sent: read one by one, bounded, never written to a disk.

inspect_ai compresses with Zstandard, which Python's own `zipfile` cannot read before 3.14; Arrow can.
"""

import copy
import zipfile
import zlib
from pathlib import Path

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


class Zip(zipfile.ZipFile):
    """A zip file that is open. Raises UserError with one line."""

    def __init__(self, path: Path) -> None:
        try:
            with path.open("rb") as file:
                # Where `zipfile` finds the list's size: it is read whole, so it is looked at before.
                end = getattr(zipfile, "_EndRecData")(file)  # noqa: B009
            if not end:
                raise UserError(f"{path} is no zip file, or it was cut off")
            if end[5] > DIRECTORY:
                raise UserError(f"{path}: its list of members has {end[5]:,} bytes, at most {DIRECTORY:,}")
            super().__init__(path)
        except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
            raise UserError(f"{path} is damaged: {safe(str(error), keep='')}") from None
        self._path, self._left = path, IN_ALL

    def member(self, name: str) -> bytes | None:
        """A member's bytes; None where there is no such member."""
        found, shown = self.NameToInfo.get(name), repr(safe(name[:100], keep=""))
        if found is None:
            return None
        most = min(MEMBER, self._left)
        if max(found.file_size, found.compress_size) > most:
            raise UserError(
                f"{self._path}: {shown} has more than {most:,} bytes, which is as much as is read"
            )
        try:
            data = self._unpacked(found)
        # Arrow's errors are some of these; NotImplementedError, a RuntimeError: packed in another way.
        except (zipfile.BadZipFile, OSError, ValueError, EOFError, RuntimeError, zlib.error) as error:
            why = safe((str(error) or repr(error)).splitlines()[0][:200], keep="")
            raise UserError(f"{self._path} is damaged: {shown}: {why}") from None
        self._left -= len(data)
        return data

    def _unpacked(self, found: zipfile.ZipInfo) -> bytes:
        """At most as many bytes as the list of members says: whoever wrote a bomb said so."""
        if found.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, ZSTANDARD):
            # `zipfile` unpacks what bzip2 and LZMA make of a few bytes without a bound.
            raise NotImplementedError(f"packed by method {found.compress_type}, which is not read")
        if found.compress_type != ZSTANDARD:
            with self.open(found) as member:
                return member.read(found.file_size)
        stored = copy.copy(found)
        stored.compress_type, stored.file_size = zipfile.ZIP_STORED, found.compress_size
        del stored.CRC  # that of what is unpacked
        with (
            self.open(stored) as packed,
            pa.CompressedInputStream(pa.BufferReader(packed.read()), "zstd") as stream,
        ):
            data: bytes = stream.read(found.file_size + 1)
        if zlib.crc32(data) != found.CRC:
            raise zipfile.BadZipFile("it is not as it was written")
        return data
