"""What a door keeps of a conversation that the agent never saw: put back into its next request.

It is found by what the agent had said and heard until then, so a conversation that is sent again, whole or
from an earlier place, is completed in the same way.
"""

import hashlib
import json
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from robustbench_tc.schema import Json

from .session import Refused

MOST = 20_000
"""Replies that are remembered; the oldest are forgotten."""
MOST_BYTES = 2**27


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """Of one reply."""

    before: tuple[Json, ...] = ()
    """Replies that were answered by the door, and its answers."""
    reply: Json = None
    """The reply as the model wrote it; None: as the agent has it."""
    calls: tuple[str, ...] = ()
    """Ids of the calls that went out."""
    answers: tuple[Json, ...] = ()
    """Of the calls that did not."""


class Lost(Refused):
    """What belongs into a conversation is not there any more."""


class Held:
    """Remembers by session and conversation."""

    def __init__(self) -> None:
        self._lost: set[bytes] = set()
        self._kept: OrderedDict[bytes, tuple[int, Kept]] = OrderedDict()
        self._bytes = 0

    def put(self, key: bytes, kept: Kept) -> None:
        """Remembers what belongs before and into the reply to the conversation of that key."""
        size = len(json.dumps(msgspec.to_builtins(kept)))
        self._drop(key)
        self._kept[key] = size, kept
        self._bytes += size
        while self._kept and (len(self._kept) > MOST or self._bytes > MOST_BYTES):
            self._drop(next(iter(self._kept)))

    def lose(self, key: bytes) -> None:
        """Something belongs there that an earlier door knew."""
        self._drop(key)
        self._lost.add(key)

    def get(self, key: bytes) -> Kept | None:
        """What belongs to the reply that followed the conversation of that key. Raises Lost."""
        if key in self._lost:
            raise Lost(
                "the door was started again within this conversation, and what it had answered there is "
                "too long for its journal: begin the conversation again"
            )
        if key not in self._kept:
            return None
        self._kept.move_to_end(key)
        return self._kept[key][1]

    def forget(self, key: bytes) -> bool:
        """Nothing belongs there: the conversation got another reply. Whether something did."""
        return self._drop(key)

    def _drop(self, key: bytes) -> bool:
        there = key in self._kept or key in self._lost
        size, _ = self._kept.pop(key, (0, None))
        self._bytes -= size
        self._lost.discard(key)
        return there


def keys(session: str, messages: Sequence[Mapping[str, Json]]) -> Iterator[bytes]:
    """The key of the conversation before each message, and of the whole."""
    digest = hashlib.sha256(session.encode())
    yield digest.digest()
    for message in messages:
        digest.update(b"\n" + json.dumps(message, sort_keys=True).encode())
        yield digest.digest()
