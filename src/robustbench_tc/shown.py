"""What a verb's result shows: lines and tables, which the console draws and a notebook prints."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Protocol, TypeAlias, runtime_checkable


@dataclass(frozen=True)
class Table:
    """Texts in the first column and in the `folded` ones, which alone may wrap; numbers to the right."""

    columns: Sequence[str]
    rows: Iterable[Sequence[str]]
    title: str = ""
    folded: Collection[str] = ()


@dataclass(frozen=True)
class Line:
    """A line, or a text of several, in one of rich's styles."""

    text: str
    style: str = ""
    aside: bool = False
    """Whether it goes to standard error, where it does not mix with the result."""


Part: TypeAlias = str | Line | Table


@runtime_checkable
class Result(Protocol):
    """What a verb returns. It may also have `exit_code` (default 0) and `json`, a method that gives what
    `--json` prints (default: the result itself, as msgspec encodes it)."""

    def shown(self) -> Iterable[Part]:
        """What is printed, the answer first."""
        ...


def plain(parts: Iterable[Part]) -> str:
    """The parts as text, for `print` and notebooks."""
    return "\n".join(line for part in parts for line in _lines(part))


def html(parts: Iterable[Part]) -> str:
    """The parts for a notebook: tables as tables, lines as they are."""
    return "\n".join(map(_html, parts))


def _html(part: Part) -> str:
    if not isinstance(part, Table):
        return f"<pre>{escape(part if isinstance(part, str) else part.text)}</pre>"
    rows = [("th", part.columns), *(("td", row) for row in part.rows)]
    cells = ("".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in row) for tag, row in rows)
    body = "".join(f"<tr>{one}</tr>" for one in cells)
    return f"<table><caption>{escape(part.title)}</caption>{body}</table>"


def _lines(part: Part) -> Iterator[str]:
    if isinstance(part, str):
        yield part
    elif isinstance(part, Line):
        yield part.text
    else:
        rows = [list(part.columns), *map(list, part.rows)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        if part.title:
            yield part.title
        for row in rows:
            yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
