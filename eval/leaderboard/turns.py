"""Whose upload is read next: uploads wait in turns, not in one line.

A check that an account or an address has had lately, has under way, or has waiting before this one counts as
a turn; the upload with the fewest turns is next, the earlier one of two. So somebody who comes for the first
time passes everything that others have piled up, and no account or address can fill the queue.
"""

import heapq
import statistics
from collections import Counter, deque
from collections.abc import Iterator

from .limits import Limits
from .refusal import Refused
from .submitting import Submitter

_REMEMBERED = 16
"""Checks whose times make the estimate."""


class _Waiting:
    def __init__(self, who: Submitter) -> None:
        self.keys = (("account", who.account), ("address", who.network))
        self.ready = False
        """Whether its file has arrived in whole."""


class Turns:
    """The uploads that wait or are read. Not safe under threads: `Desk` calls it under its lock.

    `at_once`: uploads that are read at once. Times are seconds of one steady clock.
    """

    def __init__(self, limits: Limits, at_once: int) -> None:
        self._limits = limits
        self._at_once = at_once
        self._per_address = max(1, at_once - 1)
        """Of an address at once: one worker stays for the others."""
        self._waiting: dict[str, _Waiting] = {}
        self._reading: dict[str, tuple[_Waiting, float]] = {}
        self._lately: deque[tuple[float, _Waiting]] = deque()
        self._took: deque[float] = deque(maxlen=_REMEMBERED)

    def join(self, ticket: str, who: Submitter, now: float) -> str | None:
        """Takes a place, before the file is copied. In a full queue the last one goes whose owner has had
        more turns: its ticket is returned.

        Raises Refused where the account, the address or everybody has as many waiting as may wait.
        """
        one = _Waiting(who)
        limits = self._limits
        bounds = {"account": limits.waiting_per_account, "address": limits.waiting_per_address}
        for key in one.keys:
            mine = sum(key in other.keys for other in self._waiting.values())
            if mine >= bounds[key[0]]:
                whose = f"{who.user} has" if key[0] == "account" else "your address has"
                raise Refused(
                    "quota", f"{whose} {mine} uploads waiting, which is its share: wait until one is done"
                )
        gone = None
        if len(self._waiting) >= limits.waiting:
            turns = {other: had for other, had in self._turns(now).items() if self._waiting[other].ready}
            gone = max(turns, key=lambda other: turns[other], default=None)
            if gone is None or turns[gone][0] <= max(self._had(now)[key] for key in one.keys):
                raise Refused("quota", f"{len(self._waiting)} uploads are waiting: come back in some minutes")
            del self._waiting[gone]
        self._waiting[ticket] = one
        return gone

    def ready(self, ticket: str) -> None:
        """Its file is there. Before that nobody takes its place."""
        self._waiting[ticket].ready = True

    def leave(self, ticket: str) -> None:
        """Gives the place up; nothing happens where there is none."""
        self._waiting.pop(ticket, None)

    def take(self, now: float) -> str | None:
        """The next upload to read, which is under way from now on; None where none can begin."""
        if len(self._reading) >= self._at_once:
            return None
        reading = Counter(key for one, _ in self._reading.values() for key in one.keys)
        bounds = {"account": 1, "address": self._per_address}
        for ticket in self._order(now):
            one = self._waiting[ticket]
            if one.ready and all(reading[key] < bounds[key[0]] for key in one.keys):
                del self._waiting[ticket]
                self._reading[ticket] = (one, now)
                return ticket
        return None

    def ended(self, ticket: str, now: float, *, scored: bool) -> None:
        """It is read. `scored`: it went all the way, so the estimate learns from it."""
        one, began = self._reading.pop(ticket)
        self._lately.append((now, one))
        if scored:
            self._took.append(now - began)

    def place(self, ticket: str, now: float) -> tuple[int | None, float | None]:
        """Place in the queue (None for one that is read) and seconds until it is done (None: not known)."""
        typical = statistics.median(self._took) if self._took else None
        free = [] if typical is None else list(self._left(typical, now))
        if ticket in self._reading:
            return None, None if typical is None else max(0.0, typical - (now - self._reading[ticket][1]))
        for place, other in enumerate(self._order(now), 1):
            done = None
            if typical is not None:
                done = heapq.heapreplace(free, free[0] + typical) + typical
            if other == ticket:
                return place, done
        return None, None

    def _left(self, typical: float, now: float) -> Iterator[float]:
        """When each worker is free, as a heap. One that takes longer than usual counts as near its end."""
        found = [max(typical / 4, typical - (now - began)) for _, began in self._reading.values()]
        found += [0.0] * (self._at_once - len(found))
        yield from sorted(found)

    def _had(self, now: float) -> Counter[tuple[str, str]]:
        """Turns of every account and address, without what waits."""
        while self._lately and now - self._lately[0][0] > self._limits.lately_s:
            self._lately.popleft()
        counted = [one for _, one in self._lately] + [one for one, _ in self._reading.values()]
        return Counter(key for one in counted for key in one.keys)

    def _turns(self, now: float) -> dict[str, tuple[int, int]]:
        """For every waiting one its turns and the number of its arrival."""
        had, found = self._had(now), {}
        for number, (ticket, one) in enumerate(self._waiting.items()):
            found[ticket] = (max(had[key] for key in one.keys), number)
            had.update(one.keys)
        return found

    def _order(self, now: float) -> list[str]:
        turns = self._turns(now)
        return sorted(turns, key=lambda ticket: turns[ticket])
