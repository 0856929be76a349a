"""Counts by key, nested as reports hold them: plain dicts, which JSON gives back as they were."""

from collections.abc import Mapping
from typing import Any


def add(counts: dict[Any, int], key: Any, count: int = 1) -> None:
    """Counts one more, or so many."""
    counts[key] = counts.get(key, 0) + count


def merge(mine: dict[Any, Any], theirs: Mapping[Any, Any]) -> None:
    """Takes other counts of the same nesting in."""
    for key, found in theirs.items():
        if isinstance(found, Mapping):
            merge(mine.setdefault(key, {}), found)
        else:
            add(mine, key, found)
