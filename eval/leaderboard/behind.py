"""What happens behind the open port: results are fetched from the Hub, and entries that are missing, or of
another version of what makes them, are computed by the processes that read uploads."""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

from robustbench_tc.errors import UserError

from .hub import HubStore
from .records import Submission
from .site import Boards
from .worker import Job, Pool

LOOK_S = 0.5
"""Between two looks at the folder: what another process adds is shown after about so long."""

AGAIN_S = 30.0
"""Before a Hub that did not answer is asked again."""

EVERY_S = 600.0
"""Between two looks at the Hub: what a maintainer decides elsewhere is shown after about so long."""

TOGETHER = 100
"""Entries of one commit."""


class Behind:
    """The board's own work, in threads that end with `stop`."""

    def __init__(
        self, boards: Boards, tell: Callable[[str], None], stop: threading.Event | None = None
    ) -> None:
        self._boards = boards
        self._tell = tell
        self._stop = stop or threading.Event()
        self._pool: Callable[[], Pool] | None = None

    def start(self) -> None:
        """Fetches, then looks at the folder until the end."""
        threading.Thread(target=self._look, daemon=True).start()

    def score_with(self, pool: Callable[[], Pool]) -> None:
        """`pool` makes the processes that score; only where something is missing."""
        self._pool = pool
        threading.Thread(target=self._score_all, daemon=True).start()

    def _look(self) -> None:
        store = self._boards.store
        if isinstance(store, HubStore):
            while not self._fetched(store) and not self._stop.wait(AGAIN_S):
                pass
        asked = time.monotonic()
        while not self._stop.wait(LOOK_S):
            if isinstance(store, HubStore) and time.monotonic() - asked > EVERY_S:
                self._fetch_more(store)
                asked = time.monotonic()
            try:
                self._boards.refresh()
            except OSError as error:  # the folder is away: what is known stays
                self._tell(f"{store.folder} cannot be read: {error.strerror}")
                self._stop.wait(AGAIN_S)

    def _fetched(self, store: HubStore) -> bool:
        try:
            n = store.sync()
        except UserError as error:
            self._tell(f"{error}; the board shows what is here, and takes nothing until then")
            return False
        self._boards.fetching = False
        self._boards.refresh(always=True)
        self._tell(f"fetched {n} submissions from {store.repo}")
        return True

    def _fetch_more(self, store: HubStore) -> None:
        """Decisions, verifications and submissions that came to the Hub from elsewhere."""
        try:
            n = store.sync()
        except (UserError, OSError) as error:
            self._tell(f"{error}; the board shows what is here")
            return
        if n:
            self._tell(f"fetched {n} more submissions from {store.repo}")

    def _score_all(self) -> None:
        while not self._stop.is_set():
            missing = [] if self._boards.fetching else self._boards.missing()
            if missing and self._pool is not None:
                with closing(self._pool()) as pool:
                    self._score(pool, missing)
            self._stop.wait(LOOK_S)

    def _score(self, pool: Pool, missing: Sequence[Submission]) -> None:
        done: list[str] = []
        with ThreadPoolExecutor(pool.size) as threads:
            found = threads.map(lambda one: self._one(pool, one), missing)
            for n, (one, why) in enumerate(zip(missing, found, strict=True), 1):
                if self._stop.is_set():
                    continue
                if why is None:
                    done.append(one.id)
                else:
                    self._boards.cannot(one.id, why)
                self._tell(
                    f"scored {n} of {len(missing)}: {one.id}" + (f" is left out: {why}" if why else "")
                )
                if len(done) == TOGETHER or n == len(missing):
                    self._publish(done)
                    done = []

    def _one(self, pool: Pool, one: Submission) -> str | None:
        """Why it cannot be scored; None if its entry is stored."""
        if self._stop.is_set():
            return None
        store = self._boards.store
        folder = store.incoming()
        try:
            path = str(store.path(one.id))
            checked = pool.run(
                Job(folder=str(folder), user=one.user, now=one.submitted_at, again=(path, one))
            )
            entry = checked.entry or checked.live
            if entry is None:
                return checked.refused.text if checked.refused is not None else "it cannot be scored"
            with store.locked():
                store.put_entry(one.id, entry)
            return None
        except (OSError, UserError) as error:
            return str(error)
        finally:
            store.throw_away(folder)

    def _publish(self, done: Sequence[str]) -> None:
        try:
            self._boards.store.publish_entries(done)
        except UserError as error:  # they are here, and are made again on the next machine
            self._tell(str(error))
