"""Logs of inspect_ai (`.eval`), read without it.

A log is a zip file that somebody sent: its members are read one by one, bounded, and never written to a disk.
inspect_ai compresses with Zstandard, which Python's own `zipfile` cannot read before 3.14; Arrow can.
"""

import copy
import hashlib
import json
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from robustbench_tc.errors import UserError
from robustbench_tc.safe_text import safe

from .foreign import MOST, Keys, Log, LogSample, Ours, decoded, text

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
                raise UserError(f"{path} is not a zip file, or was cut off")
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


class _Score(msgspec.Struct):
    value: Any = None
    metadata: dict[str, Any] | None = None


class _Sample(msgspec.Struct):
    """A member of `samples/`, without its events."""

    id: str | int
    epoch: int = 1
    input: str | list[dict[str, Any]] = ""
    target: str | list[str] = ""
    metadata: dict[str, Any] = {}
    scores: dict[str, _Score] | None = None
    error: Any = None
    invalidation: Any = None


class _Dataset(msgspec.Struct):
    samples: int | None = None
    sample_ids: list[str | int] | None = None


class _Config(msgspec.Struct):
    epochs: int | None = None


class _Spec(msgspec.Struct):
    model: str = ""
    created: str = ""
    dataset: _Dataset = msgspec.field(default_factory=_Dataset)
    config: _Config = msgspec.field(default_factory=_Config)
    metadata: Ours | None = None
    packages: dict[str, str] = {}
    model_generate_config: dict[str, Any] = {}


class _Plan(msgspec.Struct):
    config: dict[str, Any] = {}


class _Header(msgspec.Struct):
    """`header.json`, or `_journal/start.json` of a log that is not finished."""

    eval: _Spec
    plan: _Plan = msgspec.field(default_factory=_Plan)


@contextmanager
def open_log(path: Path, keys: Keys) -> Iterator[Log]:
    """A log. Raises UserError with one line for whatever is wrong."""
    with Zip(path) as log:
        yield _log(log, path)


def _log(log: Zip, path: Path) -> Log:
    names = ("header.json", "_journal/start.json")
    data = next((data for name in names if (data := log.member(name)) is not None), None)
    if data is None:
        raise UserError(f"{path} is not a log of inspect_ai: it has no header.json")
    header = decoded(data, _Header, f"{path}, its header", "inspect_ai")
    spec = header.eval
    samples = len(spec.dataset.sample_ids or ()) or spec.dataset.samples or 0
    repeats = max(1, min(spec.config.epochs or 1, MOST))
    decoding = {**header.plan.config, **spec.model_generate_config}
    return Log(
        path=str(path),
        model=text(spec.model) or "unnamed",
        origin=None if spec.metadata is None else spec.metadata.origin,
        backend="inspect_ai",
        samples=_samples(log, path),
        expected=min(samples, MOST) * repeats,
        repeats=repeats,
        decoding={
            name: decoding[name]
            for name in ("temperature", "max_tokens", "top_p", "seed")
            if decoding.get(name) is not None
        },
        package=text(", ".join(f"{name} {version}" for name, version in spec.packages.items())),
        started=text(spec.created, 40),
    )


def _samples(log: Zip, path: Path) -> Iterator[LogSample]:
    for name in (name for name in log.NameToInfo if name.startswith("samples/")):
        data = log.member(name) or b""
        one = decoded(data, _Sample, f"{path}, {text(name, 100)!r}", "inspect_ai")
        where = f"{path}, sample {text(one.id, 80)!r}"
        if not 0 < one.epoch <= MOST:
            raise UserError(f"{where}: epoch {one.epoch}")
        scores = one.scores or {}
        first = next(iter(scores.values()), _Score())
        yield LogSample(
            where=where,
            id=str(one.id),
            repeat=one.epoch - 1,
            metadata=one.metadata,
            scores={name: score.value for name, score in scores.items()},
            failure=_failure(one),
            question_hash=_question_hash(one),
            verdict=(first.metadata or {}).get("verdict"),
            size=len(data),
        )


def _failure(one: _Sample) -> str | None:
    if one.invalidation is not None:
        return "invalidated"
    if one.error is None:
        return None
    said = one.error.get("message") if isinstance(one.error, dict) else one.error
    return f"inspect_ai: {text(said)}"


def _question_hash(one: _Sample) -> str:
    """Ids of messages are drawn anew for every run, so they are left out."""
    said: Any = one.input
    if not isinstance(said, str):
        said = [[part.get("role"), part.get("content")] for part in said]
    return hashlib.sha256(json.dumps([said, one.target]).encode()).hexdigest()[:16]
