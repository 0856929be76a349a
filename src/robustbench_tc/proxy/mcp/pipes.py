"""Pipes that are written by a thread of their own: who does not read holds up nobody, not even the end."""

import asyncio
import os
import queue
import threading

MOST_WAITING = 16_000_000
"""Bytes that may wait for a reader before what sends them has to."""


class Writer:
    """Writes lines to a pipe in order."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._sent = self._written = 0  # bytes; each is counted by one thread alone
        self._thread = threading.Thread(target=self._run, name=f"writes {pipe}", daemon=True)
        self._thread.start()

    def send(self, line: bytes) -> None:
        """One line, soon."""
        self._sent += len(line)
        self._lines.put(line)

    async def drain(self) -> None:
        """Waits while too much does."""
        while self._sent - self._written > MOST_WAITING:
            await asyncio.sleep(0.01)

    def end(self, within_s: float) -> None:
        """Waits until all lines are written, or so long."""
        self._lines.put(None)
        self._thread.join(within_s)

    def _run(self) -> None:
        broken = False
        while (line := self._lines.get()) is not None:
            view = memoryview(line)
            while view and not broken:
                try:
                    view = view[os.write(self._pipe, view) :]
                except OSError:  # nobody reads any more
                    broken = True
            self._written += len(line)
