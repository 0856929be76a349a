"""Words that are numbers or multiply them, and units with their factors, as `units.toml` lists them."""

import tomllib
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

_LISTED: dict[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))

ONES: dict[str, int] = _LISTED["ones"]
ORDINALS: dict[str, int | str] = _LISTED["ordinals"]
"""Words that state a number without being one."""
MULTIPLES: dict[str, int] = _LISTED["multiples"]
SPELLED: dict[str, str] = {other: unit for unit, others in _LISTED["spellings"].items() for other in others}
"""Spelling → unit."""


def factors(unit: str) -> Iterator[Decimal]:
    """By what a number with this unit is multiplied in the other units of its dimension."""
    name = SPELLED.get(unit) or SPELLED.get(unit.removesuffix("s"), unit)
    for dimension in _LISTED["dimensions"]:
        if name in dimension:
            own = Decimal(dimension[name])
            for other, factor in dimension.items():
                if other != name:
                    yield own / Decimal(factor)
