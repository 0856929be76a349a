"""The members of a zip file that somebody sent: read one by one, bounded, never written to a disk.

inspect_ai compresses with Zstandard, which Python's own `zipfile` cannot read before 3.14; Arrow can.
"""

import struct
import zipfile
import zlib
from collections.abc import Iterator
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

PIECE = 2**20
STORED, DEFLATED, ZSTANDARD = 0, 8, 93


class Zip:
    """A zip file that is open. Every method raises UserError with one line."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._left = IN_ALL
        try:
            self._file: BinaryIO = path.open("rb")
        except OSError as error:
            raise UserError(f"{path}: {error.strerror or error}") from None
        try:
            self._members = self._listed()
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> "Zip":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def _listed(self) -> dict[str, zipfile.ZipInfo]:
        try:
            # Where `zipfile` finds the list's size: it is read whole, so it is looked at before.
            end = getattr(zipfile, "_EndRecData")(self._file)  # noqa: B009
            if not end:
                raise UserError(f"{self._path} is no zip file, or it was cut off")
            if end[5] > DIRECTORY:
                raise UserError(
                    f"{self._path}: its list of members has {end[5]:,} bytes, at most {DIRECTORY:,}"
                )
            with zipfile.ZipFile(self._file) as opened:
                return {one.filename: one for one in opened.infolist()}  # of equal names the last counts
        except (zipfile.BadZipFile, OSError, ValueError, struct.error, NotImplementedError) as error:
            raise self._damaged(str(error)) from None

    def names(self, folder: str = "") -> Iterator[str]:
        """Members below `folder`, in the file's order."""
        return (name for name in self._members if name.startswith(folder))

    def read(self, name: str) -> bytes | None:
        """A member's bytes; None where there is no such member."""
        found = self._members.get(name)
        if found is None:
            return None
        shown = repr(safe(name[:100], keep=""))
        if found.flag_bits & 1:
            raise UserError(f"{self._path}: {shown} is encrypted")
        most = min(MEMBER, self._left)
        try:
            data = self._unpacked(found, most)
        except (OSError, ValueError, struct.error, zlib.error) as error:  # Arrow's errors are some of these
            raise self._damaged(
                f"{shown}: {str(error).splitlines()[0][:100] if str(error) else error!r}"
            ) from None
        if len(data) > most:
            raise UserError(
                f"{self._path}: {shown} has more than {most:,} bytes, which is as much as is read"
            )
        if zlib.crc32(data) != found.CRC:
            raise self._damaged(f"{shown} is not as it was written")
        self._left -= len(data)
        return data

    def _unpacked(self, found: zipfile.ZipInfo, most: int) -> bytes:
        """At most one byte more than `most`."""
        self._file.seek(found.header_offset)
        signature, names, extra = struct.unpack("<4s22xHH", self._file.read(30))
        if signature != b"PK\x03\x04":
            raise ValueError("no member where the list says one is")
        self._file.seek(names + extra, 1)
        packed = self._file.read(min(found.compress_size, most + 1))
        if len(packed) > most:
            return packed
        if found.compress_type == STORED:
            return packed
        if found.compress_type == DEFLATED:
            return zlib.decompressobj(-zlib.MAX_WBITS).decompress(packed, most + 1)
        if found.compress_type != ZSTANDARD:
            raise ValueError(f"packed by method {found.compress_type}, which is not read")
        data = bytearray()
        with pa.CompressedInputStream(pa.BufferReader(packed), "zstd") as stream:
            while len(data) <= most and (piece := stream.read(PIECE)):
                data += piece
        return bytes(data[: most + 1])

    def _damaged(self, why: str) -> UserError:
        return UserError(f"{self._path} is damaged: {safe(why, keep='')}")
