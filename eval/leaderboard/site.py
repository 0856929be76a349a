"""The boards as they stand: loaded once, looked after cheaply, loaded again when something was added."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping

from .board import Board, Difference, differences
from .origin import Origin
from .rebuild import load, write_boards
from .records import Entry, board_version
from .row import Row
from .store import Store

CACHED = 512
"""Rendered pages that are kept."""

ENTRIES = 64
"""Whole entries that are kept."""


class Boards:
    """What the pages are made from. Safe under threads."""

    def __init__(
        self,
        store: Store,
        published: Mapping[str, Entry],
        served: tuple[str, str] | None = None,
        origin: Origin = Origin(),
    ) -> None:
        """`served`: version and fingerprint that submissions are for; its board is there from the start."""
        self.store = store
        self.origin = origin
        self._published = published
        self.served = served
        self._lock = threading.Lock()
        self._revision: tuple[int, ...] | None = None
        self._boards: dict[str, Board] = {}
        self._pages: OrderedDict[object, bytes] = OrderedDict()
        self._entries: OrderedDict[str, Entry] = OrderedDict()

    def all(self) -> dict[str, Board]:
        """Every board by version, the newest first.

        After an addition the old ones are shown for a moment more, while a thread makes the new ones.
        """
        if self._revision is None:
            self.refresh()
        elif self.store.revision() != self._revision and not self._lock.locked():
            threading.Thread(target=self.refresh, daemon=True).start()
        return self._boards

    def refresh(self) -> None:
        """Makes the boards again if something was added, and waits for it."""
        with self._lock:
            revision = self.store.revision()
            if revision == self._revision:
                return
            found = load(self.store, self._published)
            write_boards(self.store, found)
            self._boards = found | self._empty(found)
            self._pages.clear()
            self._entries.clear()
            self._revision = revision

    def _empty(self, found: Mapping[str, Board]) -> dict[str, Board]:
        if self.served is None:
            return {}
        dataset_version, fingerprint = self.served
        version = board_version(dataset_version, fingerprint)
        if version in found:
            return {}
        return {
            version: Board(
                version=version,
                dataset_version=dataset_version,
                fingerprint=fingerprint,
                paired=True,
                rows=(),
            )
        }

    def page(self, key: object, make: Callable[[], bytes]) -> bytes:
        """A page that depends on the boards and `key` alone: kept until a board changes."""
        boards = self.all()
        found = self._pages.get(key)
        if found is None:
            found = make()
            if boards is self._boards:  # else it shows an older board
                self._pages[key] = found
                while len(self._pages) > CACHED:
                    self._pages.popitem(last=False)
        return found

    def find(self, row_id: str) -> tuple[Row, Board] | None:
        """The row of a submission or paper model, and the first board that has it."""
        for board in self.all().values():
            row = board.row(row_id)
            if row is not None:
                return row, board
        return None

    def entry(self, row_id: str) -> Entry | None:
        """Everything that is computed of a row's run, read from the store; None where it cannot be."""
        if row_id.startswith("paper-"):
            return self._published.get(row_id.removeprefix("paper-"))
        found = self._entries.get(row_id) or self.store.entry(row_id)
        if found is not None:
            with self._lock:
                self._entries[row_id] = found
                self._entries.move_to_end(row_id)
                while len(self._entries) > ENTRIES:
                    self._entries.popitem(last=False)
        return found

    def compare(self, a: Row, b: Row) -> tuple[Difference, ...]:
        return differences(a.figures, b.figures)
