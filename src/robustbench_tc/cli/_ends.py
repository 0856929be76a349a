"""How a command ends other than well: one line on standard error, an exit code, never a traceback."""

import _thread
import atexit
import logging
import multiprocessing
import os
import re
import signal
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

from ..safe_text import safe

if TYPE_CHECKING:
    from typer._click import Command
    from typer.exceptions import TyperException

INTERRUPTED = 130
"""What a shell expects of a command that Ctrl-C ended."""


class Interrupted(Exception):
    """Ctrl-C, with what was kept and how to go on. No KeyboardInterrupt, which typer would swallow."""


_kept: list[str] = []
"""What the first Ctrl-C found to be kept: a second one, on the way out, takes the exception that says it."""


def remember(kept: str) -> None:
    """Notes what was kept, for `interrupted_again`."""
    _kept[:] = [kept]


def interrupted_again(otherwise: str) -> NoReturn:
    """As `interrupted`, with what the first Ctrl-C found, if it came to that."""
    interrupted(_kept[0] if _kept else otherwise)


def fail(line: str, code: int = 1) -> NoReturn:
    """Prints the one line and ends with the exit code."""
    print("rbtc: " + safe(line.strip(), keep=""), file=sys.stderr)  # noqa: T201
    sys.exit(code)


def interrupted(kept: str) -> NoReturn:
    """Says what was kept. From here on a further Ctrl-C ends at once: there is nothing left to save."""
    _kill_workers()  # interrupted twice, a pool of processes may be left in a state that nobody can wait for
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, _end_at_once)
    fail(f"interrupted: {kept}", INTERRUPTED)


def _end_at_once(*_: object) -> None:
    _kill_workers()
    os._exit(INTERRUPTED)


def _kill_workers() -> None:
    for child in multiprocessing.active_children():
        child.kill()


def watch() -> None:
    """Ctrl-C that arrives where Python can only print and forget an exception is not forgotten.

    Such places are finalizers, hooks around a fork, and generators that are thrown away.
    """
    _kept.clear()
    shown = sys.unraisablehook

    def hook(unraisable: "sys.UnraisableHookArgs") -> None:
        if not issubclass(unraisable.exc_type, KeyboardInterrupt):
            shown(unraisable)
            return
        again = threading.Timer(0.01, _thread.interrupt_main)  # not here: it would be lost like the first
        again.daemon = True
        with suppress(RuntimeError):  # the interpreter is going down
            again.start()

    sys.unraisablehook = hook
    # A task that a second Ctrl-C hits is not worth a traceback: the loop hands the exception on as well.
    logging.getLogger("asyncio").addFilter(
        lambda record: not (record.exc_info and isinstance(record.exc_info[1], KeyboardInterrupt))
    )
    # What is finished is not interrupted: going down, the interpreter would die of the signal.
    atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)


def usage(error: "TyperException", command: "Command") -> NoReturn:
    """Wrong words on the command line: what is wrong, where, and where the right ones are listed."""
    path = ["rbtc"]
    for word in sys.argv[1:]:
        inner = getattr(command, "commands", {}).get(word)
        if inner is None:
            break
        command, path = inner, [*path, word]
    said = _said(error)
    if not said:  # a group without a command: its help is printed, which is an answer
        sys.exit(error.exit_code)
    fail(f"{said} (see {' '.join(path)} --help)", error.exit_code)


def _said(error: "TyperException") -> str:
    """Typer's message in our form: the word, what is wrong with it, what it should be."""
    said = " ".join(error.format_message().split()).rstrip(".")
    wrong = re.fullmatch(r"Invalid value for '?(.+?)'?: Input should be (.+?)(?:, unable to .*)?", said)
    if wrong:
        given: list[dict[str, object]] = getattr(error.__cause__, "errors", list)()
        value = f" {given[0]['input']}" if given else ""
        return f"{wrong[1]}{value}: it has to be {wrong[2]}"
    said = re.sub(r"\. Did you mean (.+)", r": did you mean \1", said)
    near = getattr(error, "possibilities", None)
    if near:
        said = f"{said.partition(' (Possible')[0]}: did you mean {' or '.join(sorted(near))}?"
    return said[:1].lower() + said[1:]
