"""The datasets whose boards are served: their rows by board, and how many models are right on each."""

import threading
from collections.abc import Iterable

from .board import Board
from .checks import Asked
from .records import board_version
from .samples import Rows, Tally, tally


class Datasets:
    """Safe under threads. A board whose dataset is not at hand has no sample pages, and says so."""

    def __init__(self, loaded: Iterable[Asked] = ()) -> None:
        self._lock = threading.Lock()
        self._rows: dict[str, Rows] = {}
        self._tallies: dict[str, tuple[Board, Tally]] = {}
        for one in loaded:
            self.add(one)

    def add(self, asked: Asked) -> None:
        """A dataset that was loaded."""
        with self._lock:
            self._rows[board_version(asked.label, asked.fingerprint())] = Rows(asked)

    def rows(self, version: str) -> Rows | None:
        """The rows of a board's dataset."""
        return self._rows.get(version)

    def tally(self, board: Board, rows: Rows) -> Tally:
        """Counted once for every board: a board that changed is another object."""
        with self._lock:
            known = self._tallies.get(board.version)
            if known is None or known[0] is not board:
                known = self._tallies[board.version] = board, tally(board, rows)
            return known[1]
