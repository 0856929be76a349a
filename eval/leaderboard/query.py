"""What a visitor asks of a board: filters, order and focus, in the address, so that a view can be shared."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from typing import Any
from urllib.parse import urlencode

import msgspec

from robustbench_tc import taxonomy

from . import tiers
from .board import Board, leader_of, marked
from .row import FOCUSES, Row
from .tiers import Tier

SIZES: dict[str, tuple[str, Callable[[float | None], bool]]] = {
    "small": ("up to 4B", lambda size: size is not None and size <= 4),
    "medium": ("4B to 20B", lambda size: size is not None and 4 < size <= 20),
    "large": ("above 20B", lambda size: size is not None and size > 20),
    "unknown": ("not stated", lambda size: size is None),
}

TIERS: dict[Tier, str] = {
    "published": "published by the paper",
    "reproduced": "reproduced by a maintainer",
    "endpoint-matched": "endpoint matched",
    "unverified": "unverified",
}

PAGE = 100
"""Rows of a page."""

LONGEST = 80
"""Characters of a search that are looked at."""


MEASURED: dict[str, tuple[str, str, bool]] = {
    "perturbed": ("perturbed", "Perturbed", True),
    "clean": ("clean", "Clean", True),
    **{name: (f"accuracy_{name}", name.capitalize(), True) for name in taxonomy.COMPONENTS},
    "retention": ("retention", "Retention", True),
    **{f"delta_{name}": (f"delta_{name}", f"Δ {name}", False) for name in taxonomy.COMPONENTS},
    **{
        f"delta_matched_{name}": (f"delta_matched_{name}", f"Δ {name}, matched", False)
        for name in taxonomy.COMPONENTS
    },
}
"""What has an interval: key → metric, name, and whether more is better."""

ENDS = {"": "Value", "_low": "At least: the interval's low end", "_high": "At most: the interval's high end"}
"""What follows a key of MEASURED, in the order of a metric's fields."""


def _end_of(metric: str, part: int) -> Callable[[Row], Any]:
    return lambda row: row.figures.value(metric, part)


SORTS: dict[str, tuple[Callable[[Row], Any], bool]] = {
    "model": (lambda row: row.model.casefold(), False),
    **{
        f"{key}{end}": (_end_of(metric, part), more)
        for part, end in enumerate(ENDS)
        for key, (metric, _, more) in MEASURED.items()
    },
    "params": (lambda row: row.params_b, False),
    "tokens": (lambda row: row.tokens, False),
    "latency": (lambda row: row.latency_s, False),
    "price": (lambda row: row.price, False),
    "mode": (lambda row: row.mode, False),
    "date": (lambda row: row.submitted_at, True),
    "tier": (lambda row: row.tier, True),
}
"""What can be sorted by: the key, and whether the largest comes first at the first click."""

SORT_NAMES: dict[str, dict[str, str]] = {
    **{
        heading: {f"{key}{end}": name for key, (_, name, _) in MEASURED.items()}
        for end, heading in ENDS.items()
    },
    "Stated": {
        "model": "Model",
        "params": "Parameters",
        "tokens": "Tokens",
        "latency": "Latency",
        "price": "Price",
        "mode": "Mode",
        "date": "Date",
        "tier": "Tier",
    },
}
"""Heading → sort key → its name."""

WEIGHTS = {"open": "open", "closed": "closed", "unstated": "not stated"}


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """One view of one board. Defaults are left out of addresses."""

    version: str
    focus: str = "perturbed"
    """What is ranked by: all perturbed rows, clean, a component or a type."""
    sort: str = ""
    """A key of SORTS; empty: by rank."""
    dir: str = ""
    """`asc` or `desc`; empty: the column's own."""
    q: str = ""
    """Words that the model, family or user holds."""
    family: str = ""
    size: str = ""
    mode: str = ""
    tier: str = ""
    weights: str = ""
    licence: str = ""
    since: str = ""
    """The first day of submission, ISO 8601."""
    until: str = ""
    """The last one."""
    show: str = ""
    """`intervals`: those of every accuracy and Δ, not only of what is ranked by. `delta`: Δ on the heat
    map."""
    unranked: str = ""
    """`on`: runs without a rank stand among the others, by accuracy; `off`: they are left out; empty: they
    follow below where fewer than `tiers.ENOUGH` runs have a rank."""
    page: int = 1
    """Of the rows that fit, PAGE at a time."""

    @property
    def descending(self) -> bool:
        """The direction that is asked for, else the column's own (see SORTS)."""
        return SORTS[self.sort][1] if not self.dir else self.dir == "desc"

    @property
    def narrowed(self) -> int:
        """How many filters are set."""
        return sum(bool(getattr(self, name)) for name in FILTERS)


FILTERS = ("q", "family", "size", "mode", "tier", "weights", "licence", "since", "until")
"""The fields of a query that leave rows out."""


class View(msgspec.Struct, frozen=True):
    """The rows to show, and what of the address was not understood."""

    query: Query
    rows: tuple[Row, ...]
    """Those of the page, or all that fit."""
    total: int
    """Rows of the board."""
    ignored: tuple[str, ...] = ()
    fits: int = 0
    """Rows on all pages together."""
    page: int = 1
    pages: int = 1
    ranked: int = 0
    """Rows of the board that have a rank."""
    left_out: int = 0
    """Rows without a rank that fit and are not shown."""

    @property
    def first(self) -> int:
        """The number of its first row among those that fit."""
        return (self.page - 1) * PAGE + 1


def parse(parameters: Mapping[str, str], versions: Iterable[str]) -> tuple[Query, tuple[str, ...]]:
    """The query of an address; parameters that mean nothing are left out and named.

    An unknown version stays: the caller has no board for it and says so.
    """
    allowed: dict[str, Iterable[str]] = {
        "focus": FOCUSES,
        "sort": SORTS,
        "dir": ("asc", "desc"),
        "size": SIZES,
        "tier": TIERS,
        "weights": WEIGHTS,
        "show": ("intervals", "delta"),
        "unranked": ("on", "off"),
    }
    wanted: dict[str, str] = {"version": next(iter(versions))}
    ignored = []
    for name in Query.__struct_fields__:
        value = parameters.get(name, "").strip()[:LONGEST]
        if not value:
            continue
        wrong = value not in allowed[name] if name in allowed else name in DAYS and not _is_day(value)
        if wrong:
            ignored.append(f"{name}={value}")
            continue
        wanted[name] = value
    page = wanted.pop("page", "1")
    if not re.fullmatch(r"[1-9][0-9]{0,5}", page):
        ignored.append(f"page={page}")
        page = "1"
    return Query(**wanted, page=int(page)), tuple(ignored)


DAYS = ("since", "until")


def _is_day(text: str) -> bool:
    try:
        return len(text) == 10 and bool(date.fromisoformat(text))
    except ValueError:
        return False


def address(query: Query, default: str, path: str = "/", **changes: str | int) -> str:
    """The address of a view: what differs from the defaults, in a fixed order. What changes the rows leads to
    the first page."""
    changed: Any = changes if "page" in changes or not changes else {**changes, "page": 1}
    values = msgspec.structs.asdict(msgspec.structs.replace(query, **changed))
    defaults = msgspec.structs.asdict(Query(version=default))
    kept = {name: value for name, value in values.items() if value != defaults[name]}
    return f"{path}?{urlencode(kept)}" if kept else path


def select(
    board: Board, query: Query, ignored: tuple[str, ...] = (), *, whole: bool = False, marks: bool = True
) -> View:
    """The rows of a view: of its page, or `whole`. A page beyond the last is the last. Without `marks` no row
    is tested against the leader.

    Ranks are those of the whole board in the query's focus, whatever is filtered.
    """
    rows = board.in_order(query.focus)
    leader, with_rank = leader_of(rows), sum(row.rank > 0 for row in rows)
    words = query.q.casefold().split()
    fit = [row for row in rows if _fits(row, query, words)] if query.narrowed else rows
    kept = fit if _lists_all(query, with_rank) else [row for row in fit if row.rank]
    left_out = len(fit) - len(kept)
    if query.unranked == "on":
        places = board.mixed(query.focus)
        kept = sorted(kept, key=lambda row: places[row.id])
    if query.sort:
        kept = _sorted(kept, query, board)
    every = View(query, tuple(kept), len(rows), ignored, len(kept), ranked=with_rank, left_out=left_out)
    found = every if whole else paged(every)
    if not marks:
        return found
    return msgspec.structs.replace(found, rows=tuple(marked(found.rows, leader, query.focus)))


def paged(every: View) -> View:
    """The page of a whole view that its query asks for."""
    pages = max(1, -(-len(every.rows) // PAGE))
    page = min(every.query.page, pages)
    shown = every.rows[(page - 1) * PAGE : page * PAGE]
    return msgspec.structs.replace(every, rows=shown, page=page, pages=pages)


def _sorted(rows: Sequence[Row], query: Query, board: Board) -> list[Row]:
    """By the query's sort key, ties by place; rows that do not have it come last, as they were."""
    key, _ = SORTS[query.sort]
    keyed = [(key(row), row) for row in rows]
    known = [one for one in keyed if one[0] is not None]
    places = board.mixed(query.focus)
    known.sort(key=lambda one: places[one[1].id])
    known.sort(key=lambda one: one[0], reverse=query.descending)
    return [*(row for _, row in known), *(row for value, row in keyed if value is None)]


def _lists_all(query: Query, with_rank: int) -> bool:
    """Whether rows without a rank are listed: where they are asked for, or too few have one."""
    if query.unranked:
        return query.unranked == "on"
    return tiers.lists_all(with_rank) or query.tier not in ("", *tiers.TRUSTED)


def _fits(row: Row, query: Query, words: Sequence[str]) -> bool:
    return (
        (not words or _holds(row, words))
        and query.family in ("", row.family)
        and query.mode in ("", row.mode)
        and query.tier in ("", row.tier)
        and query.weights in ("", row.weights or "unstated")
        and query.licence in ("", row.licence)
        and (not query.size or SIZES[query.size][1](row.params_b))
        and _submitted_within(row, query)
    )


def _holds(row: Row, words: Sequence[str]) -> bool:
    text = f"{row.model} {row.family} {row.user or ''}".casefold()
    return all(word in text for word in words)


def _submitted_within(row: Row, query: Query) -> bool:
    if not query.since and not query.until:
        return True
    day = (row.submitted_at or "")[:10]
    return bool(day) and query.since <= day and (not query.until or day <= query.until)


def flat(row: Row, focus: str) -> dict[str, Any]:
    """A row for CSV and JSON: one level, one meaning per column (the page explains them)."""
    figures = row.figures
    found: dict[str, Any] = {
        "rank": row.rank or None,
        "model": row.model,
        "family": row.family,
        "user": row.user,
        "tier": row.tier,
        "flags": " ".join(row.flags),
        "mode": row.mode,
        "params_b": row.params_b,
        "submitted_at": row.submitted_at,
        "weights": row.weights,
        "licence": row.licence,
        "card": row.card,
        "defence": row.defence,
        "tokens": row.tokens,
        "latency_s": row.latency_s,
        "price_per_1000": row.price,
        "id": row.id,
        "focus": focus,
        "p_leader": row.p_leader,
    }
    for name in ("clean", "perturbed", *(f"accuracy_{one}" for one in taxonomy.COMPONENTS)):
        metric = figures.metric(name)
        found |= {name: metric.value, f"{name}_low": metric.low, f"{name}_high": metric.high}
    for name in (
        *(f"delta_{one}" for one in taxonomy.COMPONENTS),
        *(f"delta_matched_{one}" for one in taxonomy.COMPONENTS),
        "retention",
    ):
        metric = figures.metric(name)
        found |= {name: metric.value, f"{name}_low": metric.low, f"{name}_high": metric.high}
    for name in (taxonomy.CLEAN, "perturbed", *taxonomy.codes()):
        correct, n = figures.counts(name) or (None, None)
        found |= {f"correct_{name}": correct, f"n_{name}": n}
    return found
