"""The bar above every table of models: filters, order, what is ranked by, and pages of what fits."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from .board import Board
from .pages import MODES, label
from .query import SIZES, TIERS, WEIGHTS, View
from .row import FOCUSES, LEVELS, Row

OPTIONS = 60
"""Names of a select, at most: of more the most frequent ones. The search finds the others."""


def bar(view: View, board: Board, boards: Sequence[Board], default: str, path: str) -> dict[str, Any]:
    """What the templates need for the bar and the pages of a view at `path`."""
    return {
        "view": view,
        "query": view.query,
        "board": board,
        "boards": boards,
        "default": default,
        "path": path,
        "label": label,
        "focuses": FOCUSES,
        "levels": LEVELS,
        "choices": _choices(view, board.rows),
    }


def _choices(view: View, rows: Sequence[Row]) -> list[tuple[str, str, list[tuple[str, str]], str]]:
    """(parameter, name, options, chosen) of every select that has something to choose."""
    query = view.query

    def there(of: Callable[[Row], str | None], names: dict[Any, str]) -> list[tuple[str, str]]:
        found = {of(row) for row in rows}
        return [(key, name) for key, name in names.items() if key in found]

    found = [
        ("family", "Family", _frequent((row.family for row in rows), query.family), query.family),
        ("size", "Parameters", [(key, name) for key, (name, _) in SIZES.items()], query.size),
        ("mode", "Mode", there(lambda row: row.mode, MODES), query.mode),
        ("tier", "Tier", there(lambda row: row.tier, {**TIERS}), query.tier),
        ("weights", "Weights", there(lambda row: row.weights or "unstated", WEIGHTS), query.weights),
        ("licence", "Licence", _frequent((row.licence for row in rows), query.licence), query.licence),
    ]
    return [one for one in found if len(one[2]) > 1 or one[3]]


def _frequent(values: Any, chosen: str) -> list[tuple[str, str]]:
    counted = Counter(value for value in values if value)
    most = {value for value, _ in counted.most_common(OPTIONS)} | ({chosen} - {""})
    return [(value, value) for value in sorted(most, key=lambda one: (one.casefold(), one))]
