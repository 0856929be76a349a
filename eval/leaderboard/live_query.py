"""What a visitor asks of a board of live runs, in the address: version, kind of fault, order, page."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

import msgspec

from robustbench_tc.eval.live.counts import TypeCounts
from robustbench_tc.eval.stats.live import Line, groups
from robustbench_tc.live import type_code

from .live_board import LiveBoard, LiveRow, ranked
from .live_scoring import ALL
from .query import PAGE

PATH = "/live"

Key = Callable[[LiveRow, Line | None], Any]


def _of_line(name: str) -> Key:
    return lambda row, line: None if line is None else getattr(line, name)


def _value(name: str) -> Key:
    def key(row: LiveRow, line: Line | None) -> float | None:
        found = None if line is None else getattr(line, name)
        return None if found is None else float(found.value)

    return key


def _success(row: LiveRow, line: Line | None) -> float:
    return row.entry.clean.value if line is None else line.success.value


SORTS: dict[str, tuple[Key, bool]] = {
    "model": (lambda row, line: row.model.casefold(), False),
    "success": (_success, True),
    "tier": (lambda row, line: row.tier, True),
    "clean": (lambda row, line: row.entry.clean.value, True),
    "delta": (_value("delta"), False),
    "recovery": (_value("recovery"), True),
    "honest": (_of_line("honest"), True),
    "silent": (_of_line("silent"), False),
    "false_success": (_of_line("false_success"), False),
    "omission": (_of_line("omission"), False),
    "repetition": (_of_line("repetition"), False),
    "extra_steps": (_of_line("extra_steps"), False),
    "extra_tokens": (_of_line("extra_tokens"), False),
    "mode": (lambda row, line: row.submission.mode, False),
    "date": (lambda row, line: row.submission.submitted_at, True),
}
"""What can be sorted by: of a row and its line in the focus; and whether the largest comes first."""


class LiveQuery(msgspec.Struct, frozen=True, kw_only=True):
    """One view of a live board. Defaults are left out of addresses."""

    version: str = ""
    focus: str = ALL
    """`all`, `explicit`, `implicit`, `clean`, a kind of fault or a registry type."""
    sort: str = ""
    """A key of SORTS; empty: by rank."""
    dir: str = ""
    """`asc` or `desc`; empty: the column's own."""
    page: int = 1

    @property
    def descending(self) -> bool:
        """Whether the largest comes first."""
        return self.dir == "desc" if self.dir or self.sort not in SORTS else SORTS[self.sort][1]


class LiveView(msgspec.Struct, frozen=True, kw_only=True):
    """The rows of a page."""

    rows: tuple[LiveRow, ...]
    total: int
    page: int
    pages: int
    ignored: tuple[str, ...]
    """What of the address means nothing."""


def parse(given: Mapping[str, str], boards: Mapping[str, LiveBoard]) -> tuple[LiveQuery, tuple[str, ...]]:
    """The query of an address, and the words that mean nothing: these are left out of it."""
    first = next(iter(boards), "")
    version = given.get("version", "") or first
    if version not in boards:
        version = first
    board = boards.get(version)
    fits: dict[str, Callable[[str], bool]] = {
        "version": lambda value: value in boards,
        "focus": lambda value: board is not None and value in board.focuses,
        "sort": lambda value: value in SORTS,
        "dir": lambda value: value in ("asc", "desc"),
        "page": lambda value: value.isascii() and value.isdigit() and 0 < len(value) < 7 and int(value) > 0,
    }
    taken: dict[str, Any] = {}
    ignored = []
    for name, value in given.items():
        if name not in fits or not value:
            continue
        if fits[name](value):
            taken[name] = int(value) if name == "page" else value
        else:
            ignored.append(f"{name}={value[:80]}")
    return LiveQuery(**{**taken, "version": version}), tuple(ignored)


def address(query: LiveQuery, default: str, **changes: Any) -> str:
    """The address of a view; `default`: the version that an address without one means."""
    asked = msgspec.structs.replace(query, **({"page": 1} | changes))
    words = {
        name: getattr(asked, name)
        for name in asked.__struct_fields__
        if getattr(asked, name) != (default if name == "version" else getattr(LiveQuery(), name))
    }
    return f"{PATH}?{urlencode(words)}" if words else PATH


def select(board: LiveBoard, query: LiveQuery, ignored: Sequence[str] = ()) -> LiveView:
    """The rows of a page in their order. Without an order: by rank, with scripted agents last."""
    rows = ranked(board.rows, query.focus)
    if query.sort:
        key = SORTS[query.sort][0]
        known = [(key(row, row.entry.line(query.focus)), row) for row in rows]
        there = [(value, row) for value, row in known if value is not None]
        there.sort(key=lambda pair: pair[0], reverse=query.descending)
        rows = [row for _, row in there] + [row for value, row in known if value is None]
    pages = max(1, -(-len(rows) // PAGE))
    page = min(query.page, pages)
    return LiveView(
        rows=tuple(rows[(page - 1) * PAGE : page * PAGE]),
        total=len(rows),
        page=page,
        pages=pages,
        ignored=tuple(ignored),
    )


def informed(row: LiveRow, focus: str) -> tuple[int, int]:
    """(Episodes that saw every result that gold reads, episodes in which gold reads anything) of a focus."""
    kinds = groups().get(focus)
    codes = {"clean"} if kinds is None else set(map(type_code, kinds))
    of_focus: list[TypeCounts] = [one for one in row.entry.counts if one.type_code in codes]
    return sum(one.information for one in of_focus), sum(one.informed for one in of_focus)
