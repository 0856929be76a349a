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
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from robustbench_tc.errors import UserError
from robustbench_tc.schema import Json, dumps, loads

from .task import Failed, Task

MAX_OUTPUT = 8_000_000
"""Bytes of a program's output that are read."""

STDERR_KEPT = 4_000
"""Bytes of its standard error that an error message looks at, from the end."""

ENDS_WITHIN_S = 2.0


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
    files = []
    for word in words:
        path = Path(word)
        with contextlib.suppress(OSError):  # a word that is no path, or one too long to be
            if path.suffix and path.is_file():
                files.append(path.read_bytes())
    return hashlib.sha256(b"".join(files)).hexdigest()[:16] if files else None


async def run(
    words: Sequence[str], task: Task, timeout_s: float, env: Mapping[str, str] = MappingProxyType({})
) -> Json:
    """What the program printed: JSON, or its text. `env`: what its environment has beside ours.

    Raises TimeoutError and Failed.
    """
    asked = {name: getattr(task, name) for name in ("session", "turn", "messages", "tools", "seed")}
    with tempfile.TemporaryFile() as request:  # a file, so that it need not read what it is asked
        request.write(dumps(asked).encode() + b"\n")
        request.seek(0)
        process = await asyncio.create_subprocess_exec(
            *words,
            stdin=request,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,  # no file: whoever loops may fill a disk with errors
            env={**os.environ, **env},
            start_new_session=True,  # so that what it starts ends with it
        )
        try:
            both = asyncio.gather(_output(process), _tail(process))
            out, errors = await asyncio.wait_for(both, timeout_s)
        finally:
            await _end(process)
        said = [line.strip() for line in errors.decode(errors="replace").splitlines()]
    if process.returncode:
        kind = "status" if process.returncode > 0 else "signal"
        last = next((f": {line[:300]}" for line in reversed(said) if line), "")
        raise Failed(f"it ended with {kind} {abs(process.returncode)}{last}")
    text = out.decode(errors="replace").strip()
    if text.startswith(("{", "[")):
        with contextlib.suppress(ValueError, RecursionError):  # no JSON: the reply is the text
            return loads(text)
    return text


async def _output(process: asyncio.subprocess.Process) -> bytes:
    """All of the standard output, once the program has ended."""
    assert process.stdout
    out = bytearray()
    while chunk := await process.stdout.read(65_536):
        out += chunk
        if len(out) > MAX_OUTPUT:
            raise Failed(f"it printed more than {MAX_OUTPUT:,} bytes")
    await process.wait()
    return bytes(out)


async def _tail(process: asyncio.subprocess.Process) -> bytes:
    """The end of its standard error."""
    assert process.stderr
    kept = b""
    while chunk := await process.stderr.read(65_536):
        kept = (kept + chunk)[-STDERR_KEPT:]
    return kept


async def _end(process: asyncio.subprocess.Process) -> None:
    """Ends the program and whatever it has started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):  # it has ended, or is not ours
        os.killpg(process.pid, signal.SIGKILL)
    # The pipes may be held open by a process that left the group: there is no public way to close them.
    process._transport.close()  # type: ignore[attr-defined]
    with contextlib.suppress(TimeoutError):  # a process that not even SIGKILL ends is the system's
        await asyncio.wait_for(process.wait(), ENDS_WITHIN_S)
