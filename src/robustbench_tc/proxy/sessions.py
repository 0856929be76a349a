"""The sessions that a door's clients are in. One that its client does not name is the next, and an agent that
comes in through several doors of one process is in one session, whose calls are counted together."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import dropwhile
from typing import TypeVar

from robustbench_tc.option import Tell, silent

from .journal import Asked, Journal
from .plan import Session
from .rewrite import Chat

MOST_REMEMBERED = 10_000
"""Sessions, and requests to the model whose session is known."""

K = TypeVar("K")
V = TypeVar("V")


class Latest(dict[K, V]):
    """The entries that were put in last: a process that runs for long keeps no more than so many."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def __setitem__(self, key: K, value: V) -> None:
        self.pop(key, None)
        super().__setitem__(key, value)
        if len(self) > self._most:
            del self[next(iter(self))]


@dataclass
class Run:
    """A session from where it begins, or begins again, on."""

    session: Session
    opening: float
    """Seconds since the epoch, as all times here."""
    doors: set[str] = field(default_factory=set)
    """Those that a client has come in by."""
    number: int = 0
    """Of the last call, from 1."""
    own: int = 0
    """How many calls were of the servers' own tools."""
    batch: int = 0
    """Of the last calls that were made at once, from 1."""
    waiting: int = 0
    """Calls that are not answered yet."""
    answered: float = 0.0
    """When the last answer went out."""

    def called(self) -> None:
        """Counts a call: of another batch, where a result was read before it."""
        self.batch += not self.waiting and time.time() > self.answered
        self.number += 1
        self.waiting += 1


class Sessions:
    """Of one process."""

    def __init__(self, journal: Journal, say: Tell = silent) -> None:
        """`journal`: that of the doors, which knows the sessions of before. `say` is told of new ones."""
        self.journal, self._say = journal, say
        self._runs: Latest[Session | None, Run] = Latest(MOST_REMEMBERED)
        """By name; None: of clients without one, the newest."""
        self._asked: Latest[bytes, Session] = Latest(MOST_REMEMBERED)
        """By conversation as the model was asked it."""
        self._last: Latest[Session, bytes] = Latest(MOST_REMEMBERED)
        """The conversation as the model was last asked it."""

    def begin(self, by: str, name: Session | None) -> Run:
        """What a client that comes in by a door is in: what is under way, where it is new there."""
        run = self._runs.get(name)
        if run is None or by in run.doors:
            run = self._runs[name] = Run(name or self._new(by), time.time())
        run.doors.add(by)
        return run

    def _new(self, by: str) -> Session:
        session = self.journal.next_session(by)
        self._say(f"session {session} begins")
        return session

    def under_way(self, by: str) -> Session:
        """That of clients without a name, whatever they ask the model by that door."""
        return (self._runs.get(None) or self.begin(by, None)).session

    def session_of(self, by: str, messages: Sequence[Chat], keys: Sequence[bytes]) -> Session:
        """That of a conversation with a model: one that goes on, else the next. `keys`: `chat.keys_of`."""
        *before, whole = keys
        known = (self._asked[key] for key in reversed(before) if key in self._asked)
        session = next(known, None)
        if session is None and self._asked and any(one.get("role") == "assistant" for one in messages):
            session = next(reversed(self._asked.values()))  # an agent that words its history anew
        self._asked[whole] = session = session or self._new(by)
        return session

    def asked(self, session: Session, request: Chat, keys: Sequence[bytes]) -> Asked:
        """What is new in a request of a session, so that no message is written twice."""
        messages, last = request["messages"], self._last.get(session)
        self._last[session] = keys[-1]
        if last not in keys[1:-1]:
            return Asked(messages, tools=request.get("tools") or None)
        before = keys.index(last)
        # The reply, as the agent gives it back, is in the journal.
        new = dropwhile(lambda one: one.get("role") == "assistant", messages[before:])
        return Asked(list(new), before)
