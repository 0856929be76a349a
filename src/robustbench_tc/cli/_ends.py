"""How a command ends other than well: one line on standard error, an exit code, never a traceback."""

import _thread
import atexit
import functools
import logging
import multiprocessing
import os
import re
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NoReturn

from ..safe_text import safe

if TYPE_CHECKING:
    from types import TracebackType

    from typer._click import Command
    from typer.exceptions import TyperException

INTERRUPTED = 130
"""What a shell expects of a command that Ctrl-C ended."""

GATE = ["rbtc", "gate"]
"""Its status 2 is a verdict, which a mistyped option must not pass for."""

AGAIN = "files are written whole or not at all; run the same command again"
"""What is said after Ctrl-C where no block of work says more."""

GRACE_S = 2.0
"""Seconds after a second Ctrl-C in which what cleans up after the first may still come to its end."""

SHOW_CURSOR, CLEAR_LINE = "\x1b[?25h", "\r\x1b[2K"
"""What a terminal is told where what draws on it did not come to its end."""


class Interrupted(Exception):
    """Ctrl-C, with what was kept and how to go on. No KeyboardInterrupt, which typer would swallow."""

    def __init__(self, kept: str, times: int = 1) -> None:
        super().__init__(kept)
        self.times = times


Kept = str | Callable[[], str]
"""What to say after Ctrl-C: what was kept and how to go on. A function finds it out when it is asked."""

_kept: list[Kept] = []
"""Of the blocks of work that go on, innermost last: a second Ctrl-C may take the exception that says it."""

_process = 0
"""The one that `watch` was called in."""

_pressed = 0
"""How often Ctrl-C was."""

_lost = False
"""The first Ctrl-C came where Python forgets exceptions, and is to be raised once more."""

_saying = threading.Lock()
"""Taken by the thread that says the last line, and never given back."""


@contextmanager
def keeping(kept: Kept) -> Iterator[None]:
    """Says after Ctrl-C in this block what was kept and how to go on."""
    _kept.append(kept)
    try:
        yield
    except BaseException as error:
        if not (times := interrupts(error)):
            _kept.pop()
        elif not isinstance(error, Interrupted):
            raise Interrupted(_said(kept), times) from None
        raise
    _kept.pop()


def interrupted_anywhere(error: BaseException | None = None) -> NoReturn:
    """As `interrupted`, with what the block of work keeps in which it came to that."""
    # A block that still says so was interrupted again.
    interrupted(Interrupted(_said(_kept[-1]), times=2) if _kept else Interrupted(AGAIN, interrupts(error)))


def _said(kept: Kept) -> str:
    return kept if isinstance(kept, str) else kept()


def fail(line: str, code: int = 1) -> NoReturn:
    """Prints the one line and ends with the exit code."""
    print(_line(line), file=sys.stderr)  # noqa: T201
    sys.exit(code)


def _line(line: str) -> str:
    return "rbtc: " + safe(line.strip(), keep="")


def interrupts(error: BaseException | None) -> int:
    """How many Ctrl-C lie behind it; what breaks on the way out of one is no error of its own."""
    seen: set[int] = set()
    times = 0
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        times += isinstance(error, KeyboardInterrupt)
        error = error.__context__
    return max(times, _pressed)


def interrupted(error: Interrupted) -> NoReturn:
    """Says what was kept. From then on a further Ctrl-C ends at once: there is nothing left to save."""
    main = threading.current_thread() is threading.main_thread()
    if main:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # until it is said
    try:
        if main and error.times > 1:
            _end(str(error))
        _kill_workers()
        _say(str(error))
        sys.exit(INTERRUPTED)
    finally:
        if main:
            signal.signal(signal.SIGINT, _end_at_once)


def _end(kept: str) -> NoReturn:
    """Says it, and leaves out what a process does at its end.

    After several Ctrl-C nobody can rely on the state: a pool that waits for what is gone, a spinner that
    still draws.
    """
    if _saying.acquire(blocking=False):
        _kill_workers()
        _say(kept)
    else:
        time.sleep(GRACE_S)  # the other thread says it and ends the process
    os._exit(INTERRUPTED)


def _say(kept: str) -> None:
    """The last line; on a terminal in place of a spinner that Ctrl-C kept from ending in order.

    Past `sys.stderr`, in whose place such a spinner may still have its own.
    """
    place = SHOW_CURSOR + CLEAR_LINE if os.isatty(2) else ""
    with suppress(OSError):  # nobody is there to read it
        os.write(2, f"{place}{_line(f'interrupted: {kept}')}\n".encode(errors="backslashreplace"))


def _end_soon() -> None:
    """In a thread of its own, once a second Ctrl-C came."""
    time.sleep(GRACE_S)
    kept = AGAIN
    with suppress(Exception):  # it may be asked for what is being taken down
        kept = _said(_kept[-1])
    _end(kept)


def _end_at_once(*_: object) -> None:
    _kill_workers()
    os._exit(INTERRUPTED)


def _kill_workers() -> None:
    children = multiprocessing.active_children()
    for child in children:
        child.kill()
    for child in children:
        child.join(1)  # not left to a first process that may not look after it


def watch() -> None:
    """Ctrl-C in this process raises KeyboardInterrupt once, and for good.

    Once: a second one would break what cleans up after the first, or come where Python can only print. For
    good: what comes there (finalizers, hooks around a fork, generators that are thrown away) is raised again.
    """
    global _process, _pressed, _lost
    _process, _pressed, _lost = os.getpid(), 0, False
    _kept.clear()
    # Not where it is ignored, as in a shell's background.
    if threading.current_thread() is threading.main_thread() and (
        signal.getsignal(signal.SIGINT) is signal.default_int_handler
    ):
        signal.signal(signal.SIGINT, _on_ctrl_c)
        # While a loop of asyncio runs, Ctrl-C cancels its work instead, if it finds this handler; and this is
        # the one that it leaves behind.
        signal.default_int_handler = _on_ctrl_c  # type: ignore[assignment]
    ours = functools.partial(_thread.start_new_thread, _unraisable)  # takes the five fields as arguments
    usual, sys.unraisablehook = sys.unraisablehook, ours
    # A task that a second Ctrl-C hits is not worth a traceback: the loop hands the exception on as well.
    logging.getLogger("asyncio").addFilter(
        lambda record: not (record.exc_info and isinstance(record.exc_info[1], KeyboardInterrupt))
    )
    # What is finished is not interrupted: going down, the interpreter would die of the signal, and starts no
    # thread.
    atexit.register(setattr, sys, "unraisablehook", usual)
    atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)


def _on_ctrl_c(*_: object) -> None:
    """May be interrupted by itself, and everywhere in what Python runs unseen: an audit hook, a finalizer."""
    global _pressed, _lost
    if os.getpid() != _process:  # forked
        raise KeyboardInterrupt
    if _lost:
        _lost = False
        raise KeyboardInterrupt
    times = _pressed = _pressed + 1
    if times == 1:
        raise KeyboardInterrupt
    if times == 2:
        _thread.start_new_thread(_end_soon, ())


def _unraisable(
    kind: type[BaseException],
    error: BaseException | None,
    trace: "TracebackType | None",
    message: str | None,
    where: object,
) -> None:
    """In a thread of its own, where no signal finds it.

    A forgotten Ctrl-C comes once more; all else is printed, as Python would.
    """
    global _lost
    if issubclass(kind, KeyboardInterrupt):
        time.sleep(0.01)  # not here: it would be lost like the first
        _lost = True
        _thread.interrupt_main()
        return
    with suppress(Exception):  # a `repr` that fails says no more than none
        print(f"{message or 'Exception ignored in'}: {where!r}", file=sys.stderr)  # noqa: T201
    traceback.print_exception(kind, error, trace)


def usage(error: "TyperException", command: "Command") -> NoReturn:
    """Wrong words on the command line: what is wrong, where, and where the right ones are listed."""
    path = ["rbtc"]
    for word in sys.argv[1:]:
        inner = getattr(command, "commands", {}).get(word)
        if inner is None:
            break
        command, path = inner, [*path, word]
    said = _message(error)
    if not said:  # a group without a command: its help is printed, which is an answer
        sys.exit(error.exit_code)
    code = error.exit_code if path != GATE else 1
    fail(f"{said} (see {' '.join(path)} --help)", code)


def _message(error: "TyperException") -> str:
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
