"""The runs of a repository, and their entries: all in one file, and a short index of them for scripts."""

import io
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from robustbench_tc.errors import UserError
from robustbench_tc.release.hub import HubFile

from .checker import (
    BYTES,
    CHECKER,
    ENTRY,
    EPISODES,
    PREDICTIONS,
    RECORD,
    SUBMISSION,
    complete,
    decode,
    encode,
)
from .entry import Digest, Entry, Refused, Status, of_run, parse_status
from .place import STATUS, Files, Place, run_path

ALL, INDEX = "entries.parquet", "entries.json"

_KEYS = ("run", "kind", "fingerprint", "checker")
_SCHEMA = pa.schema([(name, pa.string()) for name in _KEYS] + [("entry", pa.binary())])


def read_entries(place: Place) -> tuple[Status, list[Entry], dict[str, str]]:
    """What a board is made of, in few requests: the maintainers' word, the entries that fit the files they
    were made of, and why others are left out, by run. Raises UserError."""
    listed = place.files()
    found = read_status(place)
    fitting, dropped = fits(stored(place, listed), listed)
    return found, fitting, dropped


def read_status(place: Place, revision: str | None = None, dataset: str | None = None) -> Status:
    """The maintainers' word, with another dataset where one is named. Raises UserError."""
    found = parse_status(place.read(STATUS, revision), f"{place.repo}/{STATUS}")
    return msgspec.structs.replace(found, dataset=dataset or found.dataset)


def stored(place: Place, listed: Files, revision: str | None = None) -> list[Entry]:
    """What `entries.parquet` holds; nothing, where there is none yet."""
    if ALL not in listed:
        return []
    try:
        table = pq.read_table(io.BytesIO(place.read(ALL, revision)), schema=_SCHEMA)
        return [decode(data or b"") for data in table["entry"].to_pylist()]
    except (pa.ArrowException, ValueError) as error:
        why = str(error).splitlines()[0]
        raise UserError(f"{place.repo}/{ALL}: {why}: put it back from the history") from None


def fits(entries: Sequence[Entry], listed: Files) -> tuple[list[Entry], dict[str, str]]:
    """The entries whose runs are there as they were scored, and why the others are not shown."""
    there = runs(listed)
    fitting = [entry for entry in entries if scored(entry, there.get(entry.run, {}))]
    dropped = {
        run: "it has no entry yet" if complete(files) else "it lacks files, or has others"
        for run, files in there.items()
    }
    dropped |= {entry.run: "its files are not those that were scored" for entry in entries}
    for entry in fitting:
        del dropped[entry.run]
    return fitting, dict(sorted(dropped.items()))


def scored(entry: Entry, files: Files) -> bool:
    """Whether an entry was made of just these files."""
    return entry.inputs.keys() == files.keys() - {ENTRY} and all(
        same(digest, files[name]) for name, digest in entry.inputs.items()
    )


def same(digest: Digest, file: HubFile) -> bool:
    """Whether a listed file is the one that was read."""
    equal = file.sha256 == digest.sha256 if file.sha256 else file.git == digest.git
    return equal and file.bytes == digest.size


def write_entries(entries: Iterable[Entry]) -> dict[str, bytes]:
    """Both files, as bytes: the same for the same entries."""
    ordered = sorted(entries, key=lambda entry: entry.run)
    columns = {name: [getattr(entry, name) for entry in ordered] for name in _KEYS}
    table = pa.table(columns | {"entry": [encode(entry) for entry in ordered]}, schema=_SCHEMA)
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd")
    lines = [
        {
            "run": entry.run,
            "model": entry.submission.model,
            "kind": entry.kind,
            "fingerprint": entry.fingerprint,
            "version": entry.version,
            "flags": [flag.code for flag in entry.flags],
            "metrics": entry.core and entry.core.metrics,
            "clean": entry.live and entry.live.clean,
        }
        for entry in ordered
    ]
    index = {"format": 1, "checker": CHECKER, "entries": lines}
    text = msgspec.json.format(msgspec.json.encode(index), indent=1)
    return {INDEX: text + b"\n", ALL: buffer.getvalue()}


def runs(files: Files) -> dict[str, Files]:
    """Run → its files by name, of every folder in a listing where a run would lie."""
    found: dict[str, Files] = {}
    for path, file in files.items():
        top, _, rest = path.partition("/")
        run, _, name = rest.rpartition("/")
        if top == "runs":
            found.setdefault(run, {})[name] = file
    return dict(sorted(found.items()))


def check_run_files(run: str, files: Files) -> None:
    """Raises Refused for what no run is called, has other files, or would be too large to fetch."""
    of_run(run)
    if not complete(files):
        raise Refused(
            "pull", f"a run is {RECORD}, {PREDICTIONS} or {EPISODES}, and {SUBMISSION}: {run} is not"
        )
    for name, most in BYTES.items():
        if name in files and files[name].bytes > most:
            raise Refused("pull", f"{name} has {files[name].bytes:,} bytes, at most {most:,}")


def fetch(place: Place, run: str, files: Files, into: Path, revision: str | None = None) -> Path:
    """The folder of a run under `into`. Raises Refused for what is not fetched, UserError."""
    check_run_files(run, files)
    folder = into / run_path(run)
    folder.mkdir(parents=True)
    for name in sorted(files.keys() - {ENTRY}):
        (folder / name).write_bytes(place.read(f"{run_path(run)}/{name}", revision))
    return folder
