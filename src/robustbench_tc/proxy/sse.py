"""Server-sent events: bytes as they come into events, and events into bytes."""

import json
import re
from collections.abc import Awaitable, Callable, Iterator

from robustbench_tc.schema import Json

DONE = b"data: [DONE]\n\n"
MOST = 2**25
"""Bytes of an event, a message or a body: 32 MB."""

END = re.compile(rb"(?:\r\n|\r(?!\n)|\n)(?:\r\n|\r(?!\n)|\n)")
"""Of an event: a blank line. A line ends with CR, LF or both."""


class Parts:
    """What is read in pieces, cut into parts with this end: each has it, byte by byte as it was written;
    of a part above MOST its beginning, which is above MOST too. The last may have no end.

    Not a generator: one that a caller has left half-way is closed by its loop, which may have ended by then.
    """

    def __init__(self, read: Callable[[], Awaitable[bytes]], end: re.Pattern[bytes] = END) -> None:
        """`read`: the next piece; nothing at the end."""
        self._read, self._end, self._rest = read, end, bytearray()

    def __aiter__(self) -> "Parts":
        return self

    async def __anext__(self) -> bytes:
        rest = self._rest
        found = self._end.search(rest)
        # An LF may come with the next piece.
        while found is None or (found.end() == len(rest) and rest.endswith(b"\r")):
            del rest[MOST + 1 : -3]  # its end is still looked for
            start = max(0, len(rest) - 3)
            if not (piece := await self._read()):
                break
            rest += piece
            found = self._end.search(rest, start)
        if not rest:
            raise StopAsyncIteration
        end = len(rest) if found is None else found.end()
        with memoryview(rest) as whole:  # one copy: it may have 32 MB
            part = bytes(whole[:end])
        del rest[:end]
        return part


def events(body: bytearray) -> Iterator[bytes]:
    """The events of a whole body that hold data, one at a time, each from its first line with data on:
    between them there may be eight million comments."""
    start = 0
    while (at := body.find(b"data:", start)) >= 0:
        line = max(body.rfind(b"\n", start, at), body.rfind(b"\r", start, at), start - 1) + 1
        found = END.search(body, at)
        start = len(body) if found is None else found.end()
        yield bytes(body[line : start if found is None else found.start()])


def event_data(event: bytes) -> bytes:
    """What an event says; nothing for a comment."""
    lines = [line[5:] for line in event.splitlines() if line.startswith(b"data:")]
    return b"\n".join(line.removeprefix(b" ") for line in lines)


def event_of(value: dict[str, Json]) -> bytes:
    """A value as an event, which has the name that the value says of itself."""
    name = f"event: {value['type']}\n" if "type" in value else ""
    return f"{name}data: {json.dumps(value, ensure_ascii=False)}\n\n".encode("utf-8", "replace")
