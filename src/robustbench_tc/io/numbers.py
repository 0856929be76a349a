"""Numbers as people read them: the one formatter of the terminal, the report, the board, audits and cards.

Files for programs (JSON, CSV, Parquet) hold numbers as they are.
"""

from collections.abc import Mapping
from typing import Protocol

NONE = "–"
"""Stands for a value that is not there."""


class Bounded(Protocol):
    """A value with the ends of its interval."""

    @property
    def low(self) -> float | None: ...
    @property
    def high(self) -> float | None: ...


def number(value: float | None, digits: int = 3, *, sign: bool = False, none: str = NONE) -> str:
    """`0.123`, with `sign` also `+0.123`; what rounds to zero has no sign."""
    if value is None:
        return none
    text = f"{value:{'+' if sign else ''}.{digits}f}"
    return text if text.strip("+-0.") else text.lstrip("+-")


def signed(value: float | None, digits: int = 3) -> str:
    """A difference: `+0.123`."""
    return number(value, digits, sign=True)


def interval(found: Bounded, digits: int = 3, *, sign: bool = False) -> str:
    """`[0.101, 0.145]`"""
    return f"[{number(found.low, digits, sign=sign)}, {number(found.high, digits, sign=sign)}]"


def percent(share: float | None, digits: int = 1, *, none: str = NONE) -> str:
    """`26.3 %`"""
    return none if share is None else f"{number(100 * share, digits)} %"


def points(share: float | None, digits: int = 1) -> str:
    """A difference of shares in percentage points: `+1.2`."""
    return signed(None if share is None else 100 * share, digits)


def p_value(p: float | None) -> str:
    """Three decimals, below 0.001 the order of magnitude."""
    return number(p) if p is None or p >= 0.001 else f"{p:.0e}"


def counts(found: Mapping[str, object]) -> str:
    """`CD 3, TD 4`"""
    return ", ".join(f"{name} {n}" for name, n in found.items())


def counted(n: int, word: str) -> str:
    """`1 row`, `3,977 rows`"""
    return f"{n:,} {word}{'s' * (n != 1)}"


def size(params_b: float | None) -> str:
    """Billions of parameters: `7B`."""
    return NONE if params_b is None else f"{params_b:g}B"


def typeset(text: str) -> str:
    """With a real minus sign, for pages."""
    return text.replace("-", "−")
