"""Tables on consoles of any width: columns give way down to their longest word, then rows are stacked."""

from collections.abc import Iterator

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Column, Table
from rich.text import Text

UNBOUNDED = 10_000
"""A width, in characters, that no table of ours needs: a pipe has none of its own."""

_GAP = 3
"""Blanks between two values of a stacked row."""

_INDENT = 2
"""Blanks before the lines of a stacked row but its first."""


def fitted(table: Table, console: Console) -> RenderableType:
    """The table as it fits the console: as it is, narrower, without rules, or a block of lines for each row.

    No number loses digits and no id is broken. A value longer than a line is the terminal's to wrap.
    """
    if _narrowed(table, console):
        return table
    table.box, table.padding, table.pad_edge = SIMPLE_HEAD, (0, 1, 0, 0), False
    return table if _narrowed(table, console) else _stacked(table, console)


def _narrowed(table: Table, console: Console) -> bool:
    """Whether the table fits without breaking a word; its columns then have the widths that do."""
    options = console.options.update(max_width=UNBOUNDED)
    measured = [_measure(console, column) for column in table.columns]
    widths = [one.maximum for one in measured]
    between = Measurement.get(console, options, table).maximum - sum(widths)
    spare = sum(widths) + between - console.width
    if sum(one.minimum for one in measured) + between > console.width:
        return False
    for _ in range(spare):  # the widest that still can give way
        at = max((i for i, w in enumerate(widths) if w > measured[i].minimum), key=widths.__getitem__)
        widths[at] -= 1
    if spare > 0:
        for column, width in zip(table.columns, widths, strict=True):
            column.width = width
    return True


def _measure(console: Console, column: Column) -> Measurement:
    """Characters of a column: its longest word (its longest line, if it must not wrap), its longest line."""
    options = console.options.update(max_width=UNBOUNDED)
    found = [Measurement.get(console, options, one) for one in (column.header, *column.cells)]
    longest = max(one.maximum for one in found)
    return Measurement(longest if column.no_wrap else max(one.minimum for one in found), longest)


def _stacked(table: Table, console: Console) -> RenderableType:
    lines: list[RenderableType] = []
    if table.title:
        lines.append(_text(console, table.title))
    headers = [_text(console, column.header) for column in table.columns]
    for row in zip(*(column.cells for column in table.columns), strict=True):
        first, *others = (_text(console, one) for one in row)
        pairs = list(zip(headers[1:], others, strict=True))
        fitting = _lines(pairs, console.width - _INDENT)
        lines += [first, *(Padding(line, (0, 0, 0, _INDENT), expand=False) for line in fitting)]
    return Group(*lines)


def _lines(values: list[tuple[Text, Text]], width: int) -> Iterator[Text]:
    """`name value` pairs of one row, as many to a line as fit; empty values are left out."""
    line = Text()
    for header, value in values:
        if not value.plain:
            continue
        pair = Text.assemble((header.plain, "dim"), " " if header.plain else "", value)
        if line and line.cell_len + _GAP + pair.cell_len > width:
            yield line
            line = Text()
        line = Text.assemble(line, " " * _GAP, pair) if line else pair
    if line:
        yield line


def _text(console: Console, cell: RenderableType) -> Text:
    return cell if isinstance(cell, Text) else console.render_str(str(cell), highlight=False)
