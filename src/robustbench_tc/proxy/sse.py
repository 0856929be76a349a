"""Server-sent events: bytes as they come into events, and events into bytes."""

import json
import re
from collections.abc import AsyncIterator

from robustbench_tc.schema import Json

DONE = b"data: [DONE]\n\n"
MOST = 2**25
"""Bytes of an event: 32 MB."""

END = re.compile(rb"(?:\r\n|\r(?!\n)|\n)(?:\r\n|\r(?!\n)|\n)")
"""Of an event: a blank line. A line ends with CR, LF or both."""


async def parts(pieces: AsyncIterator[bytes], end: re.Pattern[bytes] = END) -> AsyncIterator[bytes]:
    """What comes in pieces, cut into parts that have this end: each with it, byte by byte as it was written;
    of a part above MOST its beginning, which is above MOST too. The last may have no end."""
    rest = bytearray()
    async for piece in pieces:
        start = max(0, len(rest) - 3)
        rest += piece
        while (found := end.search(rest, start)) is not None:
            if found.end() == len(rest) and rest.endswith(b"\r"):  # its LF may come with the next piece
                break
            yield bytes(rest[: found.end()])
            del rest[: found.end()]
            start = 0
        del rest[MOST + 1 : -3]  # its end is still looked for
    if rest:
        yield bytes(rest)


def data(event: bytes) -> bytes:
    """What an event says; nothing for a comment."""
    lines = [line[5:] for line in event.splitlines() if line.startswith(b"data:")]
    return b"\n".join(line.removeprefix(b" ") for line in lines)


def written(value: Json, event: str | None = None) -> bytes:
    """A value as an event."""
    name = f"event: {event}\n" if event else ""
    return f"{name}data: {json.dumps(value, ensure_ascii=False)}\n\n".encode("utf-8", "replace")
