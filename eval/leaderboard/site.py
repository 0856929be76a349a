"""The boards as they stand: loaded once, looked after cheaply, loaded again when something was added."""

import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping

import msgspec

from . import places
from .board import Board, Difference, differences
from .datasets import Datasets
from .index import Index
from .live_board import LiveBoard, LiveRow
from .moderation import Decision
from .origin import Origin
from .rebuild import Looked, look
from .records import Entry, Submission, Verification, board_version
from .row import Row
from .store import Store

CACHED_BYTES = 96 * 2**20
"""Of rendered pages that are kept."""

ENTRIES = 64
"""Whole entries that are kept."""

TICK_NS = 50_000_000
"""Two changes of a folder within one tick of its file system's clock may have the same time."""


class Boards:
    """What the pages are made from. Safe under threads."""

    def __init__(
        self,
        store: Store,
        published: Mapping[str, Entry],
        served: tuple[str, str] | None = None,
        origin: Origin = Origin(),
        tell: Callable[[str], None] = lambda line: None,
    ) -> None:
        """`served`: version and fingerprint that submissions are for; its board is there from the start.
        `tell` gets one line for each stored file that is left out."""
        self.store = store
        self.origin = origin
        self.served = served
        self.served_live: tuple[str, str] | None = None
        """The same of live runs; None: none are taken, or not yet."""
        self.takes_live = False
        """Whether live runs are taken once their dataset is loaded."""
        self.datasets = Datasets()
        """The datasets at hand: only their boards have pages of samples."""
        self.fetching = False
        """Whether results are still on their way from the Hub."""
        self._published = published
        self._tell = tell
        self._told: set[str] = set()
        self._index = Index(store)
        self._looked = Looked({}, {}, {}, {}, [], {}, {})
        self._missing: tuple[Submission, ...] = ()
        self._cannot: dict[str, str] = {}
        self._lock = threading.Lock()
        self._revision: tuple[int, ...] | None = None
        self._boards: dict[str, Board] = {}
        self._live: dict[str, LiveBoard] = {}
        self._page_lock = threading.Lock()
        self._pages: OrderedDict[object, bytes] = OrderedDict()
        self._page_bytes = 0
        self._making: dict[object, threading.RLock] = {}
        self._entries: OrderedDict[str, Entry] = OrderedDict()

    def all(self) -> dict[str, Board]:
        """Every board by version, the newest first.

        After an addition the old ones are shown for a moment more, while a thread makes the new ones.
        """
        if self._revision is None:
            self.refresh()
        elif self._is_old() and not self._lock.locked():
            threading.Thread(target=self._refresh_behind, daemon=True).start()
        return self._boards

    def _is_old(self) -> bool:
        try:
            return self.store.revision() != self._revision
        except OSError:  # the folder is away: what is known stays
            return False

    def _refresh_behind(self) -> None:
        try:
            self.refresh()
        except OSError as error:  # as long as the folder is away, what is known stays
            self._say([f"{self.store.folder} cannot be read: {error.strerror}"])

    def refresh(self, *, always: bool = False) -> None:
        """Makes the boards again if something was added, or `always`, and waits for it."""
        with self._lock:
            revision, now = self.store.revision(), time.time_ns()
            if revision == self._revision and not always:
                return
            self._looked = look(self.store, self._published, self._index)
            found = self._looked.boards
            self._index.save(always=False)
            self._say(self._looked.damaged)
            known = {*self._index.entries, *self._index.live}
            self._missing = tuple(one for one in self._index.submissions if one.id not in known)
            made = found | self._empty(found)
            noticed = {version: self._noticed(board) for version, board in made.items()}
            live = self._noticed_live(self._looked.live)
            for board in noticed.values():  # what the first page needs, before anybody waits for it
                places.of(board, "perturbed")
            with self._page_lock:
                self._boards, self._live = noticed, live
                self._pages.clear()
                self._page_bytes = 0
                self._entries.clear()
            self._revision = revision if now - max(revision) > TICK_NS else ()

    def serves(self, dataset_version: str, fingerprint: str, live: tuple[str, str] | None = None) -> None:
        """Names the dataset that submissions are for, once it is loaded; `live`: that of live runs."""
        self.served, self.served_live = (dataset_version, fingerprint), live
        self.takes_live = live is not None
        self.refresh(always=True)

    def missing(self) -> list[Submission]:
        """Submissions to the served datasets that have no entry and may get one, oldest first."""
        served = {"core": self.served, "live": self.served_live}
        return [
            one
            for one in self._missing
            if (of := served[one.kind]) is not None
            and one.fingerprint == of[1]
            and one.id not in self._cannot
        ]

    def cannot(self, submission_id: str, why: str) -> None:
        """Notes that a submission cannot be scored: nobody waits for it."""
        self._cannot[submission_id] = why
        self.refresh(always=True)

    def close(self) -> None:
        """Leaves what makes the next start quick."""
        with self._lock:
            self._index.save()

    def _say(self, lines: Iterable[str]) -> None:
        for line in lines:
            if line not in self._told:
                self._told.add(line)
                self._tell(line)

    def _noticed(self, board: Board) -> Board:
        waiting = sum(one.fingerprint == board.fingerprint for one in self.missing())
        said = []
        if self.fetching and board.fingerprint is not None:
            said.append("The stored results are still being fetched.")
        if waiting:
            are = "submissions are" if waiting > 1 else "submission is"
            said.append(f"{waiting:,} {are} still being scored and will appear here.")
        return msgspec.structs.replace(board, notice=" ".join(said))

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

    def _noticed_live(self, found: Mapping[str, LiveBoard]) -> dict[str, LiveBoard]:
        """The live boards with what they lack; that of the served dataset is there from the start."""
        made = dict(found)
        if self.served_live is not None:
            version = board_version(*self.served_live)
            empty = LiveBoard(
                version=version, dataset_version=self.served_live[0], fingerprint=self.served_live[1]
            )
            made = {version: found.get(version, empty), **made}
        waiting = Counter(one.fingerprint for one in self.missing() if one.kind == "live")
        return {
            version: msgspec.structs.replace(board, notice=f"{n:,} live runs are still being replayed.")
            if (n := waiting[board.fingerprint])
            else board
            for version, board in made.items()
        }

    def live(self) -> dict[str, LiveBoard]:
        """The boards of live runs by version: the served one, then the newest; empty where there is none."""
        self.all()
        return self._live

    def page_of(self, submission_id: str) -> str:
        """The address of a submission's page, whether it is on a board or off it."""
        there = (one.page for one in self._index.submissions if one.id == submission_id)
        return next(there, f"/model/{submission_id}")

    def find_live(self, row_id: str) -> tuple[LiveRow, LiveBoard] | None:
        """The live run of that id, and the board that has it."""
        for board in self.live().values():
            row = board.row(row_id)
            if row is not None:
                return row, board
        return None

    def kept_page(self, key: object) -> bytes | None:
        """The page of `key` if it was made since the boards changed: quick enough for the event loop."""
        self.all()
        with self._page_lock:
            found = self._pages.get(key)
            if found is not None:
                self._pages.move_to_end(key)
            return found

    def page(self, key: object, make: Callable[[], bytes]) -> bytes:
        """A page that depends on the boards and `key` alone: made once, kept until a board changes."""
        boards = self.all()
        with self._page_lock:
            found = self._pages.get(key)
            if found is not None:
                self._pages.move_to_end(key)
                return found
            making = self._making.setdefault(key, threading.RLock())
        with making:
            with self._page_lock:
                found = self._pages.get(key)
            if found is None:
                found = make()
                self._keep(key, found, boards)
        return found

    def _keep(self, key: object, page: bytes, boards: dict[str, Board]) -> None:
        with self._page_lock:
            self._making.pop(key, None)
            if boards is not self._boards or len(page) > CACHED_BYTES // 4:  # it shows an older board
                return
            self._page_bytes += len(page) - len(self._pages.pop(key, b""))
            self._pages[key] = page
            while self._page_bytes > CACHED_BYTES:
                _, oldest = self._pages.popitem(last=False)
                self._page_bytes -= len(oldest)

    def find(self, row_id: str) -> tuple[Row, Board] | None:
        """The row of a submission or paper model, and the first board that has it."""
        for board in self.all().values():
            row = board.row(row_id)
            if row is not None:
                return row, board
        return None

    def submission(self, row_id: str) -> Submission | None:
        """The record of a row; None for a paper model."""
        return self._looked.submissions.get(row_id)

    def submissions(self) -> list[Submission]:
        """The records of everything on the boards, oldest first."""
        return list(self._looked.submissions.values())

    def verification(self, row_id: str) -> Verification | None:
        """How a row was repeated, if it was."""
        return self._looked.verifications.get(row_id)

    def cleared(self, row_id: str) -> dict[str, Decision]:
        """The flags of a row that count no more, each with the decision that says so."""
        return self._looked.cleared.get(row_id, {})

    def entry(self, row_id: str) -> Entry | None:
        """Everything that is computed of a row's run, read from the store; None where it cannot be."""
        if row_id.startswith("paper-"):
            return self._published.get(row_id.removeprefix("paper-"))
        found = self._entries.get(row_id) or self.store.entry(row_id)
        if found is not None:
            with self._page_lock:
                self._entries[row_id] = found
                self._entries.move_to_end(row_id)
                while len(self._entries) > ENTRIES:
                    self._entries.popitem(last=False)
        return found

    def compare(self, a: Row, b: Row) -> tuple[Difference, ...]:
        return differences(a.figures, b.figures)
