"""A program of the user's: one process for each request, the request on its standard input.

Input, one line of JSON: session, turn, messages, tools, seed. Output: a JSON object or list as
`task.reply_of` takes it, or the reply's text. Its tools answer nothing while it runs: where a call is
answered (transition types), the program is started again, with the call and its answer in `messages`.
"""

import asyncio
import contextlib
import hashlib
import os
import shlex
import shutil
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from robustbench_tc.errors import UserError
from robustbench_tc.schema import Json, dumps, loads

from .task import Task

MAX_OUTPUT = 8_000_000
"""Bytes of a program's output that are read."""

STDERR_KEPT = 4_000
"""Bytes of its standard error that an error message looks at, from the end."""

ENDS_WITHIN_S = 2.0


class Failed(Exception):
    """The program gave no reply; one line."""


def words_of(command: str | Sequence[str]) -> list[str]:
    """The argument vector of a command: no shell ever sees it. Raises UserError."""
    try:
        words = shlex.split(command) if isinstance(command, str) else list(command)
    except ValueError as error:
        raise UserError(f"--command {command}: {error}") from None
    if not words:
        raise UserError("--command: it is empty: name a program and its arguments")
    if shutil.which(words[0]) is None:
        raise UserError(f"--command: there is no program {words[0]!r} here or on PATH")
    return words


def code_digest(words: Sequence[str]) -> str | None:
    """16 hex digits of the files that the command names: changed ones are another agent. None: no file."""
    digest, files = hashlib.sha256(), 0
    for word in words:
        path = Path(word)
        with contextlib.suppress(OSError):  # a word that is no path, or one too long to be
            if path.suffix and path.is_file():
                digest.update(path.read_bytes())
                files += 1
    return digest.hexdigest()[:16] if files else None


class Commands:
    """Runs a program on tasks."""

    def __init__(self, words: Sequence[str], env: Mapping[str, str] | None = None) -> None:
        """`env`: what its environment has beside ours."""
        self._words = words
        self._env = None if env is None else {**os.environ, **env}

    async def run(self, task: Task, timeout_s: float) -> Json:
        """What the program printed: an object, or its text. Raises TimeoutError and Failed."""
        asked: dict[str, Json] = {
            "session": task.session,
            "turn": task.turn,
            "messages": task.messages,
            "tools": task.tools,
            "seed": task.seed,
        }
        process = await asyncio.create_subprocess_exec(
            *self._words,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=self._env,
            start_new_session=True,  # so that what it starts ends with it
        )
        try:
            out, err = await asyncio.wait_for(self._talk(process, dumps(asked).encode() + b"\n"), timeout_s)
        finally:
            await _end(process)
        if process.returncode:
            kind = "status" if process.returncode > 0 else "signal"
            raise Failed(f"it ended with {kind} {abs(process.returncode)}{_last_line(err)}")
        return _reply(out)

    async def _talk(self, process: asyncio.subprocess.Process, asked: bytes) -> tuple[bytes, bytes]:
        assert process.stdin and process.stdout and process.stderr
        errors = asyncio.create_task(_tail(process.stderr))
        writing = asyncio.create_task(_write(process.stdin, asked))
        out = bytearray()
        try:
            while chunk := await process.stdout.read(65_536):
                out += chunk
                if len(out) > MAX_OUTPUT:
                    raise Failed(f"it printed more than {MAX_OUTPUT:,} bytes")
            await asyncio.gather(writing, process.wait())
            return bytes(out), await errors
        finally:
            for task in (writing, errors):
                task.cancel()
            await asyncio.gather(writing, errors, return_exceptions=True)

    def close(self) -> None:
        """Each request has ended its process."""


async def _write(stdin: asyncio.StreamWriter, asked: bytes) -> None:
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it need not read what it is asked
        stdin.write(asked)
        await stdin.drain()
        stdin.close()


async def _tail(stream: asyncio.StreamReader) -> bytes:
    kept = b""
    while chunk := await stream.read(65_536):
        kept = (kept + chunk)[-STDERR_KEPT:]
    return kept


async def _end(process: asyncio.subprocess.Process) -> None:
    """Ends the program and whatever it has started, and closes the pipes to it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if sys.platform != "win32":
            os.killpg(process.pid, signal.SIGKILL)
        elif process.returncode is None:
            process.kill()
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(_drained(process), ENDS_WITHIN_S)
    # Held open by a process that left the group: there is no public way to close the pipes.
    process._transport.close()  # type: ignore[attr-defined]


async def _drained(process: asyncio.subprocess.Process) -> None:
    """Until the program has ended, which asyncio sees once its output is read to the end."""
    assert process.stdout and process.stderr
    for stream in (process.stdout, process.stderr):
        while await stream.read(65_536):
            pass
    await process.wait()


def _last_line(err: bytes) -> str:
    lines = [line for line in err.decode(errors="replace").splitlines() if line.strip()]
    return f": {lines[-1].strip()[:300]}" if lines else ""


def _reply(out: bytes) -> Json:
    text = out.decode(errors="replace").strip()
    if text.startswith(("{", "[")):
        try:
            return loads(text)
        except (ValueError, RecursionError):
            return text
    return text
