"""Tiers: how far a run is vouched for, and the one rule of who has a rank.

    published          counts printed in the paper
    reproduced         a maintainer has repeated the run
    endpoint-matched   an endpoint that the submitter offered gives these answers; which model is behind it,
                       nobody knows
    unverified         answers scored here, nothing more: the golden answers are public

Ranks and marks of ties are among runs of the first three tiers that carry no flag (`flags`). All others are
shown without a rank, and nothing about a ranked run depends on them.
"""

from collections.abc import Sequence
from typing import Literal, Protocol, get_args

import msgspec

Tier = Literal["published", "reproduced", "endpoint-matched", "unverified"]

TIERS: tuple[Tier, ...] = get_args(Tier)

TRUSTED: tuple[Tier, ...] = ("published", "reproduced", "endpoint-matched")
"""Those that have ranks."""

MEANING: dict[Tier, str] = {
    "published": "counts printed in the paper",
    "reproduced": "a maintainer repeated the run",
    "endpoint-matched": "an endpoint of the submitter's gives these answers, also to rows that nobody had "
    "seen; it proves the endpoint, not the model",
    "unverified": "answers scored here, the run itself not repeated",
}

ENOUGH = 3
"""With fewer ranked runs than these a board also lists those without a rank, below; else they are shown on
demand."""


class Flag(msgspec.Struct, frozen=True, kw_only=True):
    """Why a run has no rank."""

    code: str
    value: float
    """A share of `n` rows."""
    n: int
    of: str = ""
    """What was counted (`letter`, `right`), or what it is equal to: an agent, a submission."""
    rest: float | None = None
    """`knows-unsaid`: accuracy over the other rows."""


class Standing(Protocol):
    """What decides about a rank."""

    @property
    def tier(self) -> str: ...

    @property
    def flags(self) -> Sequence[str]: ...


def is_ranked(row: Standing) -> bool:
    """Whether the run takes a rank and may give marks."""
    return row.tier in TRUSTED and not row.flags


def lists_all(ranked: int) -> bool:
    """Whether a board with so many ranked runs lists the others without being asked to."""
    return ranked < ENOUGH
