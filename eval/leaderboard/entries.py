"""Every entry of a repository in one file, and a short index of them for scripts."""

import io
from collections.abc import Iterable, Mapping

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from robustbench_tc.errors import UserError

from . import status
from .checker import CHECKER, ENTRY, decode, encode
from .entry import Digest, Entry
from .place import STATUS, File, Files, Place
from .pulls import complete, runs
from .status import Status

ALL, INDEX = "entries.parquet", "entries.json"

_KEYS = ("run", "kind", "fingerprint", "checker")
_TYPES: dict[str, pa.DataType] = {**dict.fromkeys(_KEYS, pa.string()), "entry": pa.binary()}
_SCHEMA = pa.schema(_TYPES)


def read_entries(place: Place) -> tuple[Status, list[Entry], dict[str, str]]:
    """What a board is made of, in few requests: the maintainers' word, the entries that fit the files they
    were made of, and why others are left out, by run. Raises UserError."""
    listed = place.files()
    found = read_status(place)
    fitting, dropped = fits(stored(place, listed), listed)
    return found, fitting, dropped


def read_status(place: Place, revision: str | None = None) -> Status:
    """Raises UserError."""
    return status.read(place.read(STATUS, revision), f"{place.name}/{STATUS}")


def stored(place: Place, listed: Files, revision: str | None = None) -> list[Entry]:
    """What `entries.parquet` holds; nothing, where there is none yet."""
    if ALL not in listed:
        return []
    try:
        table = pq.read_table(io.BytesIO(place.read(ALL, revision)), schema=_SCHEMA)
        return [decode(data or b"") for data in table["entry"].to_pylist()]
    except (pa.ArrowException, ValueError) as error:
        why = str(error).splitlines()[0]
        raise UserError(f"{place.name}/{ALL}: {why}: put it back from the history") from None


def fits(entries: Iterable[Entry], listed: Files) -> tuple[list[Entry], dict[str, str]]:
    """The entries whose runs are there as they were scored, and why the others are not shown."""
    there, fitting, dropped = runs(listed), [], {}
    for entry in entries:
        files = there.get(entry.run, {})
        if not files:
            dropped[entry.run] = "its files are not there"
        elif not scored(entry, files):
            dropped[entry.run] = "its files are not those that were scored"
        else:
            fitting.append(entry)
    for run in there.keys() - {entry.run for entry in fitting} - dropped.keys():
        dropped[run] = "it has no entry yet" if complete(there[run]) else "it lacks files, or has others"
    return fitting, dict(sorted(dropped.items()))


def scored(entry: Entry, files: Files) -> bool:
    """Whether an entry was made of just these files."""
    return entry.inputs.keys() == files.keys() - {ENTRY} and all(
        same(digest, files[name]) for name, digest in entry.inputs.items()
    )


def same(digest: Digest, file: File) -> bool:
    """Whether a listed file is the one that was read."""
    known = file.sha256 == digest.sha256 if file.sha256 else file.git == digest.git
    return known and file.size == digest.size


def write_entries(entries: Iterable[Entry]) -> dict[str, bytes]:
    """Both files, as bytes: the same for the same entries."""
    ordered = sorted(entries, key=lambda entry: entry.run)
    columns = {name: [getattr(entry, name) for entry in ordered] for name in _KEYS}
    table = pa.table(columns | {"entry": [encode(entry) for entry in ordered]}, schema=_SCHEMA)
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd")
    index = {"format": 1, "checker": CHECKER, "entries": [_line(entry) for entry in ordered]}
    text = msgspec.json.format(msgspec.json.encode(index), indent=1)
    return {INDEX: text + b"\n", ALL: buffer.getvalue()}


def _line(entry: Entry) -> Mapping[str, object]:
    """An entry for scripts."""
    return {
        "run": entry.run,
        "model": entry.submission.model,
        "kind": entry.kind,
        "fingerprint": entry.fingerprint,
        "version": entry.version,
        "flags": [flag.code for flag in entry.flags],
        "metrics": entry.core and entry.core.metrics,
        "clean": entry.live and entry.live.clean,
    }
