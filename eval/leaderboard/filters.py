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
        "choices": _choices(view, board),
    }


def _choices(view: View, board: Board) -> list[tuple[str, str, list[tuple[str, str]], str]]:
    """(parameter, name, options, chosen) of every select that has something to choose."""
    query = view.query

    def counted(name: str, of: Callable[[Row], str | None]) -> Counter[str]:
        return board.once(("counted", name), lambda: Counter(of(row) or "" for row in board.rows))

    def there(name: str, of: Callable[[Row], str | None], names: dict[Any, str]) -> list[tuple[str, str]]:
        found = counted(name, of)
        return [(key, spelled) for key, spelled in names.items() if key in found]

    found = [
        (
            "family",
            "Family",
            _frequent(counted("family", lambda row: row.family), query.family),
            query.family,
        ),
        ("size", "Parameters", [(key, name) for key, (name, _) in SIZES.items()], query.size),
        ("mode", "Mode", there("mode", lambda row: row.mode, MODES), query.mode),
        ("tier", "Tier", there("tier", lambda row: row.tier, {**TIERS}), query.tier),
        (
            "weights",
            "Weights",
            there("weights", lambda row: row.weights or "unstated", WEIGHTS),
            query.weights,
        ),
        (
            "licence",
            "Licence",
            _frequent(counted("licence", lambda row: row.licence), query.licence),
            query.licence,
        ),
    ]
    return [one for one in found if len(one[2]) > 1 or one[3]]


def _frequent(counted: Counter[str], chosen: str) -> list[tuple[str, str]]:
    names = [value for value, _ in counted.most_common(OPTIONS + 1) if value]
    most = {*names[:OPTIONS], chosen} - {""}
    return [(value, value) for value in sorted(most, key=lambda one: (one.casefold(), one))]
