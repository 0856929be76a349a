"""What is shown while rows are asked: a bar, or without a terminal a line a minute."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from ..option import Verb
from . import _console

if TYPE_CHECKING:
    from ..eval.run import Progress

Moved = Callable[["Progress"], None]


class Run(Protocol):
    """A run that has begun."""

    @property
    def how_far(self) -> str:
        """A line: how many rows have their answers, and where."""
        ...


@contextmanager
def asking(verb: Verb, values: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yields what the verb tells: `started` gets the run, `progress` each state, `say` lines that stay."""
    begun: list[Run] = []

    def kept() -> str:
        return f"{begun[0].how_far}; run the same command again to resume" if begun else verb.kept

    with _console.keeping(kept), (_bar if sys.stderr.isatty() else _lines)() as moved:
        yield {"started": begun.append, "progress": moved, "say": _console.note}


@contextmanager
def _bar() -> Iterator[Moved]:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress as Bar, TextColumn, TimeElapsedColumn

    failures = TextColumn("{task.description}", markup=False)
    columns = (TextColumn("asking"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), failures)
    with Bar(*columns, console=_console.err, transient=True) as shown:
        task = shown.add_task("", total=None)

        def moved(state: "Progress") -> None:
            failed = [f"{state.request_errors} failed"] if state.request_errors else []
            cost = [f"cost {state.cost:.4g}"] if state.cost else []
            shown.update(task, completed=state.done, total=state.total, description=", ".join(failed + cost))

        yield moved


@contextmanager
def _lines() -> Iterator[Moved]:
    begun = time.monotonic()
    latest: Progress | None = None

    def line() -> str:
        return "nothing is asked yet" if latest is None else how_far(latest, time.monotonic() - begun)

    def moved(state: "Progress") -> None:
        nonlocal begun, latest
        begun = time.monotonic() if latest is None else begun
        latest = state

    with _console.each_minute(line):
        yield moved


def how_far(state: "Progress", seconds: float) -> str:
    """A session's progress in a line: done, failed, rate, time left, and the cost where prices are known.

    Answers that were there before count as done, and neither in the rate nor in the time left.
    """
    parts = [f"{state.done:,} of {state.total:,} done"]
    if state.request_errors:
        parts.append(f"{state.request_errors:,} failed")
    rate = (state.done - state.kept) / seconds if seconds > 0 else 0.0
    if rate > 0:
        left = _console.time_of((state.total - state.done) / rate)
        parts += [f"{rate:.3g} a second", f"about {left} left"]
    else:
        parts.append(f"no new answer in {_console.time_of(seconds)}")
    if state.cost:
        parts.append(f"cost {state.cost:.4g}")
    return ", ".join(parts)
