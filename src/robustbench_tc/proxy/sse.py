"""Server-sent events: bytes as they come into events, and events into bytes."""

import json
from collections.abc import Iterator

from robustbench_tc.schema import Json

DONE = b"data: [DONE]\n\n"
MOST = 2**23
"""Bytes of one event: 8 MB."""


class TooLong(ValueError):
    """An event that does not end."""


class Events:
    """Cuts a stream into events. A line ends with CR, LF or both; a piece may end anywhere."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, piece: bytes) -> Iterator[str | None]:
        """The data of each event that is now whole; None for one without data (a comment). Raises TooLong."""
        text = (self._rest + piece).replace(b"\r\n", b"\n")
        if text.endswith(b"\r"):  # its LF may come with the next piece
            text, held = text[:-1], b"\r"
        else:
            held = b""
        *whole, rest = text.replace(b"\r", b"\n").split(b"\n\n")
        self._rest = rest + held
        if len(self._rest) > MOST:
            raise TooLong(f"an event of the server's stream has more than {MOST:,} bytes")
        for block in whole:
            yield _data(block)

    def end(self) -> Iterator[str | None]:
        """The event that the end of the stream left without its blank line, if there is one."""
        if self._rest.strip():
            yield _data(self._rest)
        self._rest = b""


def _data(block: bytes) -> str | None:
    lines = [line[5:] for line in block.split(b"\n") if line.startswith(b"data:")]
    if not lines:
        return None
    return b"\n".join(line.removeprefix(b" ") for line in lines).decode("utf-8", "replace")


def written(value: Json, event: str | None = None) -> bytes:
    """A value as an event."""
    name = f"event: {event}\n" if event else ""
    return f"{name}data: {json.dumps(value, ensure_ascii=False)}\n\n".encode("utf-8", "replace")
