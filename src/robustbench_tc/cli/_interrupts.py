"""Ctrl-C: it comes once and for good, and one line says what was kept and how to go on."""

import _thread
import asyncio
import atexit
import functools
import logging
import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NoReturn

from ._ends import in_one_line

if TYPE_CHECKING:
    from types import TracebackType

INTERRUPTED = 130
"""What a shell expects of a command that Ctrl-C ended."""

AGAIN = "files are written whole or not at all; run the same command again"
"""What is said after Ctrl-C where no block of work says more."""

GRACE_S = 2.0
"""Seconds after a second Ctrl-C in which what cleans up after the first may still come to its end."""

SHOW_CURSOR, CLEAR_LINE = "\x1b[?25h", "\r\x1b[2K"
"""What a terminal is told where what draws on it did not come to its end."""


class Interrupted(Exception):
    """Ctrl-C, with what was kept and how to go on. No KeyboardInterrupt, which typer would swallow."""


Kept = str | Callable[[], str]
"""What to say after Ctrl-C: what was kept and how to go on. A function finds it out when it is asked."""

_kept: list[Kept] = []
"""Of the blocks of work that go on, innermost last, for where the exception that says it is lost."""

_process = 0
"""The one that `watch` was called in."""

_pressed = 0
"""How often Ctrl-C was."""

_lost = False
"""The first Ctrl-C came where Python forgets exceptions, and is to be raised once more."""

_held = False
"""A Ctrl-C is raised at the end of the block in `later`."""

_waiting = False
"""There was one in that block."""

_saying = threading.Lock()
"""Taken by the thread that says the last line, and never given back."""


@contextmanager
def keeping(kept: Kept) -> Iterator[None]:
    """Says after Ctrl-C in this block what was kept and how to go on."""
    _kept.append(kept)
    try:
        yield
    except BaseException as error:
        if not is_interrupt(error):
            _kept.pop()
        elif not isinstance(error, Interrupted):
            raise Interrupted(_said(kept)) from None
        raise
    _kept.pop()


@contextmanager
def later() -> Iterator[None]:
    """Ctrl-C in this block, which is short, is felt at its end: half done it could not be taken back."""
    global _held, _waiting
    _held = True
    try:
        yield
    finally:
        _held = False
        if _waiting:
            _waiting = False
            _on_ctrl_c()


def interrupted_anywhere() -> NoReturn:
    """As `interrupted`, with what the block of work keeps in which it came to that."""
    interrupted(Interrupted(_said(_kept[-1]) if _kept else AGAIN))


def _said(kept: Kept) -> str:
    return kept if isinstance(kept, str) else kept()


def is_interrupt(error: BaseException | None) -> bool:
    """Whether Ctrl-C lies behind it: what breaks on the way out is no error of its own."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, KeyboardInterrupt):
            return True
        seen.add(id(error))
        error = error.__context__
    return _pressed > 0


def interrupted(error: Interrupted) -> NoReturn:
    """Says what was kept. From then on a further Ctrl-C ends at once: there is nothing left to save."""
    main = threading.current_thread() is threading.main_thread()
    if main:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # until it is said
    try:
        if main and _pressed > 1:
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
        os.write(2, f"{place}{in_one_line(f'interrupted: {kept}')}\n".encode(errors="backslashreplace"))


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
    global _process, _pressed, _lost, _held, _waiting
    _process, _pressed, _lost, _held, _waiting = os.getpid(), 0, False, False, False
    _kept.clear()
    # Not where it is ignored, as in a shell's background.
    if threading.current_thread() is threading.main_thread() and (
        signal.getsignal(signal.SIGINT) is signal.default_int_handler
    ):
        signal.signal(signal.SIGINT, _on_ctrl_c)
        # Where asyncio finds this handler it takes Ctrl-C itself, and leaves it behind.
        signal.default_int_handler = _on_ctrl_c  # type: ignore[assignment]
        asyncio.Runner._on_sigint = _on_ctrl_c_in_a_loop  # type: ignore[attr-defined]
    ours = functools.partial(_thread.start_new_thread, _unraisable)  # takes the five fields as arguments
    usual, sys.unraisablehook = sys.unraisablehook, ours
    # A task that Ctrl-C hits is not worth a traceback: the loop hands the exception on as well.
    logging.getLogger("asyncio").addFilter(
        lambda record: not (record.exc_info and isinstance(record.exc_info[1], KeyboardInterrupt))
    )
    # What is finished is not interrupted: going down, the interpreter would die of the signal, and starts no
    # thread.
    atexit.register(setattr, sys, "unraisablehook", usual)
    atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)


def _on_ctrl_c(*_: object) -> None:
    if _counts():
        raise KeyboardInterrupt


_asyncio_s = asyncio.Runner._on_sigint  # type: ignore[attr-defined]


def _on_ctrl_c_in_a_loop(runner: Any, *about: Any, main_task: Any) -> None:
    """asyncio's own cancels what runs; only its second one raises, wherever that is just then."""
    if _counts():
        _asyncio_s(runner, *about, main_task=main_task)


def _counts() -> bool:
    """Whether a Ctrl-C is to interrupt.

    It is asked by the signal's handler, so it may be interrupted by itself, and everywhere in what Python
    runs unseen: an audit hook, a finalizer.
    """
    global _pressed, _lost, _waiting
    if os.getpid() != _process:  # forked
        return True
    if _held:
        _waiting = True
        return False
    if _lost:
        _lost = False
        return True
    times = _pressed = _pressed + 1
    if times == 2:
        _thread.start_new_thread(_end_soon, ())
    return times == 1


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
