"""The console's edge: everything that a verb prints goes through here, and nothing that it prints is obeyed.

Model output, replies of servers and the content of files reach people through `out`, `err`, `styled`, `echo`
and `json` only. Control characters come out visible (`safe_text`), rich's markup and emoji codes are text. A
test holds that no verb prints in another way.
"""

import sys
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from ..safe_text import safe, safe_json
from ..shown import Line, Result
from ._tables import UNBOUNDED, fitted

PIPE_WIDTH = 126
"""Characters at which prose is wrapped in a pipe."""


class SafeConsole(Console):
    """A rich console that shows text as it is: no markup, no emoji codes, no control characters."""

    def __init__(self, *, stderr: bool = False, width: int | None = None, pipe: bool = False) -> None:
        """`pipe`: what is shown goes to a file or a program, which has no width of its own."""
        super().__init__(
            stderr=stderr, width=PIPE_WIDTH if pipe else width, markup=False, emoji=False, highlight=False
        )
        self._pipe = pipe

    def print(self, *objects: Any, soft_wrap: bool | None = None, **options: Any) -> None:
        """As rich's, but a table loses nothing where it does not fit (`_tables.fitted`).

        In a pipe a row of it is a line. A text is a line: it is not broken, so that paths can be copied and
        output searched, and a line end in it, which a path may hold, is shown as it is written in Python.
        Texts of several lines are `styled`.
        """
        if soft_wrap is None:
            kinds = str if self.is_terminal else str | Text  # on a screen long texts are broken at words
            soft_wrap = all(isinstance(one, kinds) for one in objects)
        wide = self._pipe and any(isinstance(one, Table) for one in objects)
        if wide:
            self.width = UNBOUNDED
        try:
            shown = (
                fitted(one, self)
                if isinstance(one, Table)
                else one_line(one)
                if isinstance(one, str)
                else one
                for one in objects
            )
            super().print(*shown, soft_wrap=soft_wrap, **options)
        finally:
            if wide:
                self.width = PIPE_WIDTH

    def render_str(self, text: str, **options: Any) -> Text:
        """Where rich makes text of a string: printed, in a table, as a title."""
        return super().render_str(safe(text), **options | {"markup": False, "emoji": False})

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """The last look at what is drawn, however it was made."""
        for segment in super().render(renderable, options):
            if segment.control or segment.text.isprintable():
                yield segment
            else:
                yield Segment(safe(segment.text), segment.style)


def one_line(text: str) -> str:
    """A text that cannot pose as two lines: for what names a path."""
    return safe(text, keep="\t")


out = SafeConsole(pipe=not sys.stdout.isatty())
err = SafeConsole(stderr=True)

LINE_S = 60.0
"""Seconds of work between two lines of progress where standard error is not a terminal: a log, a pipe."""


def styled(text: str, style: str = "") -> Text:
    """Text in a style. Use it instead of rich's `Text`, which drops some control characters unseen."""
    return Text(safe(text), style=style)


def note(line: str) -> None:
    """A line on standard error, where it does not mix with the result."""
    err.print(line)


def echo(line: str, *, stderr: bool = False) -> None:
    """One line, neither broken nor coloured: a name with a line break in it cannot pose as two."""
    print(safe(line, keep=""), file=sys.stderr if stderr else sys.stdout)


def json(found: Any) -> None:
    """What `--json` prints: `found` (anything that msgspec encodes, or JSON as bytes), for programs."""
    import msgspec

    try:
        if not isinstance(found, bytes):
            found = msgspec.json.format(msgspec.json.encode(found), indent=1)
        shown = found.decode()
    except UnicodeEncodeError:  # half of a surrogate pair, which a file's name may hold
        import json as standard

        shown = standard.dumps(msgspec.to_builtins(found), indent=1)
    print(safe_json(shown).rstrip("\n"))  # noqa: T201


def ask(question: str) -> str | None:
    """What is typed after a question; None at the end of the input."""
    sys.stdout.write(safe(question))
    sys.stdout.flush()
    line = sys.stdin.readline()
    return line.strip() if line else None


class Interrupted(Exception):
    """Ctrl-C, with what was kept and how to go on."""


Kept = str | Callable[[], str]
"""What to say after Ctrl-C: what was kept and how to go on. A function finds it out when it is asked."""


@contextmanager
def keeping(kept: Kept) -> Iterator[None]:
    """Says after Ctrl-C in this block what was kept and how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted(kept if isinstance(kept, str) else kept()) from None


@contextmanager
def status(what: str, kept: Kept = "") -> Iterator[Callable[[str], None]]:
    """A spinner with a changing line on standard error; without a terminal at most a line per LINE_S.

    `kept`: what to say after Ctrl-C, as for `keeping`.
    """
    again = f"stopped while {what}; files on disk are complete; run the same command again"
    last = time.monotonic()
    with keeping(kept or again), err.status(styled(one_line(what))) as spinner:

        def tell(line: str) -> None:
            nonlocal last
            spinner.update(styled(one_line(line)))
            if not err.is_terminal and time.monotonic() - last >= LINE_S:
                err.print(f"{what}: {line}", markup=False, soft_wrap=True)
                last = time.monotonic()

        yield tell


@contextmanager
def each_minute(line: Callable[[], str]) -> Iterator[None]:
    """Without a terminal prints `line()` on standard error every LINE_S, also while nothing moves."""
    if err.is_terminal:
        yield
        return
    over = threading.Event()

    def tell() -> None:
        while not over.wait(LINE_S):
            err.print(line(), markup=False, soft_wrap=True)

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield
    finally:
        over.set()
        teller.join()


def time_of(seconds: float) -> str:
    """A length of time as people say it: `40 s`, `12 min`, `3.5 h`."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def table(
    columns: Iterable[str], rows: Iterable[Iterable[str]], title: str = "", folded: Collection[str] = ()
) -> Table:
    """Texts in the first column and in the `folded` ones, which alone may wrap; numbers to the right."""
    made = Table(title=styled(title), title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for at, name in enumerate(columns):
        side: Literal["left", "right"] = "left" if at == 0 or name in folded else "right"
        made.add_column(styled(name), justify=side, no_wrap=name not in folded, overflow="fold")
    for row in rows:
        made.add_row(*map(styled, row))
    return made


def show(result: object) -> None:
    """What a verb returned, drawn: its lines and tables, or one line for a plain value."""
    parts = result.shown() if isinstance(result, Result) else () if result is None else (str(result),)
    for part in parts:
        if isinstance(part, str):
            out.print(part)
        elif isinstance(part, Line):
            (err if part.aside else out).print(styled(part.text, part.style))
        else:
            out.print(table(part.columns, part.rows, part.title, part.folded))
