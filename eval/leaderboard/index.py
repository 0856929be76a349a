"""What the boards hold of every submission, in memory and in one file: a start reads that file instead of two
for each submission, and an addition reads what was added.

The file is computed like the boards, is checked against the folder (names, sizes and times of every file) and
may be thrown away.
"""

import zlib
from collections.abc import Mapping
from functools import lru_cache
from hashlib import sha256
from typing import Any

import msgspec

from robustbench_tc.eval.stats import blind
from robustbench_tc.eval.stats.blind import BlindLine, TypeFigures
from robustbench_tc.io.files import atomic_file

from . import stored
from .live_records import LiveEntry
from .records import ENTRY_VERSION, Entry, Submission, Usage
from .row import CONDITIONS, KEYS, Figures
from .store import Read, Store

FILE = "index.msgpack"
BYTES = 2**30
"""A larger file is no index of ours."""

MANY = 200
"""Changes after which it is written again while the board is served."""

_LAYOUT = sha256(msgspec.json.encode((KEYS, CONDITIONS, ENTRY_VERSION))).hexdigest()[:12]


class Kept(msgspec.Struct, frozen=True, array_like=True):
    """What a board keeps of an entry."""

    figures: Figures
    usage: Usage = Usage()
    reference: tuple[BlindLine, ...] = ()
    """What needs no reading of the dataset's requests."""
    flags: tuple[str, ...] = ()
    """Codes of the entry's flags."""

    @classmethod
    def of(cls, entry: Entry) -> "Kept":
        """Raises ValueError for an entry that cannot be one of a run."""
        flags = tuple(flag.code for flag in entry.flags)
        reference = _reference(msgspec.json.encode(entry.needs_no_reading))
        return cls(Figures.of(entry), entry.usage, reference, flags)


@lru_cache(maxsize=64)  # every entry of a dataset says the same
def _reference(figures: bytes) -> tuple[BlindLine, ...]:
    return blind.lines(msgspec.json.decode(figures, type=tuple[TypeFigures, ...]))


class _Line(msgspec.Struct, frozen=True, array_like=True):
    read: Read
    entry_seen: tuple[int, int] | None = None
    figures: Figures | None = None
    usage: Usage = Usage()
    reference: int = 0
    flags: tuple[str, ...] = ()


class _Saved(msgspec.Struct, array_like=True):
    layout: str
    references: list[tuple[BlindLine, ...]]
    """Every entry of a dataset has the same few: each stands here once."""
    lines: list[_Line]


class Index:
    """The submissions of a store and what boards keep of their entries. For one thread at a time."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.submissions: list[Submission] = []
        """Oldest first."""
        self.entries: dict[str, Kept] = {}
        self.live: dict[str, LiveEntry] = {}
        """Entries of live runs, whole: there are few of them, and the file above holds none."""
        self.damaged: list[str] = []
        """One line for each submission, and each entry, that is left out."""
        self._seen: dict[str, tuple[int, int]] = {}
        self._live_seen: dict[str, tuple[int, int]] = {}
        self._references: dict[bytes, tuple[BlindLine, ...]] = {}
        self._changes = 0
        self._started = False

    def look(self) -> None:
        """Brings everything up to date with the folder."""
        first, self._started = not self._started, True
        if first:
            self._load()
        self.submissions, self.damaged = self.store.submissions(verify=first)
        there = self.store.entries_seen()
        entries: dict[str, Kept] = {}
        for one in self.submissions:
            if (seen := there.get(one.id)) is None:
                continue
            if self._seen.get(one.id) != seen:
                self._seen[one.id] = seen
                self._changes += 1
                if (made := self._read(one.id)) is None:
                    self.entries.pop(one.id, None)
                    continue
                self.entries[one.id] = made
            if one.id in self.entries:
                entries[one.id] = self.entries[one.id]
        self.entries = entries
        self._look_live()

    def _look_live(self) -> None:
        there = self.store.entries_seen(live=True)
        found: dict[str, LiveEntry] = {}
        for one in self.submissions:
            if one.kind != "live" or (seen := there.get(one.id)) is None:
                continue
            known = self.live.get(one.id) if self._live_seen.get(one.id) == seen else None
            made = known or self.store.live_entry(one.id)
            if made is None:
                self.damaged.append(f"the entry of {one.id} is made again: it cannot be read")
                continue
            found[one.id], self._live_seen[one.id] = made, seen
        self.live = found

    def _read(self, submission_id: str) -> Kept | None:
        path = self.store.entries / f"{submission_id}.json"
        try:
            made = Kept.of(stored.decode(path, Entry, stored.ENTRY_BYTES))
        except (OSError, ValueError) as error:
            self.damaged.append(f"the entry of {submission_id} is made again: {stored.said(error)}")
            return None
        return msgspec.structs.replace(made, reference=self._once(made.reference))

    def _once(self, lines: tuple[BlindLine, ...]) -> tuple[BlindLine, ...]:
        return self._references.setdefault(msgspec.json.encode(lines), lines)

    # --- the file ---------------------------------------------------------------------------------------

    def _load(self) -> None:
        path = self.store.folder / "boards" / FILE
        try:
            stored.seen(path)
            if path.stat().st_size > BYTES:
                return
            found = memoryview(path.read_bytes())
            if zlib.crc32(found[4:]) != int.from_bytes(found[:4], "big"):
                return
            saved = msgspec.msgpack.decode(found[4:], type=_Saved)
            if saved.layout != _LAYOUT:
                return
            references = [self._once(lines) for lines in saved.references]
            for line in saved.lines:
                name = line.read.submission.id
                stored.sound(line.read.submission, name)
                self.store.read[name] = line.read
                if line.figures is not None and line.entry_seen is not None:
                    line.figures.check()
                    self._seen[name] = line.entry_seen
                    self.entries[name] = Kept(
                        line.figures, line.usage, references[line.reference], line.flags
                    )
        except (OSError, ValueError, IndexError, RecursionError):  # it is made again
            self.store.read.clear()
            self.entries, self._seen = {}, {}

    def save(self, *, always: bool = True) -> None:
        """Writes the file, or, unless `always`, only after many changes. No start depends on it."""
        if not self._changes or (not always and self._changes < MANY):
            return
        try:
            with atomic_file(self.store.folder / "boards" / FILE, replace=True) as beside:
                beside.write_bytes(self._bytes())
            self._changes = 0
        except OSError:
            return

    def _bytes(self) -> bytes:
        places: dict[int, int] = {}
        references: list[tuple[BlindLine, ...]] = []
        lines = []
        for one in self.submissions:
            if (read := self.store.read.get(one.id)) is None:
                continue
            kept = self.entries.get(one.id)
            if kept is None:
                lines.append(_Line(read))
                continue
            if id(kept.reference) not in places:
                places[id(kept.reference)] = len(references)
                references.append(kept.reference)
            at = places[id(kept.reference)]
            lines.append(_Line(read, self._seen[one.id], kept.figures, kept.usage, at, kept.flags))
        found = msgspec.msgpack.encode(_Saved(_LAYOUT, references, lines))
        return zlib.crc32(found).to_bytes(4, "big") + found


def kept(entries: Mapping[str, Any]) -> dict[str, Kept]:
    """Entries as boards keep them, whichever form they have. Raises ValueError."""
    return {key: one if isinstance(one, Kept) else Kept.of(one) for key, one in entries.items()}
