"""A board's table as it is stored for a rebuild to compare: who stands where, a digest of every figure."""

from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Protocol, TypeVar

import msgspec

from .records import encode


class _Row(Protocol):
    @property
    def rank(self) -> int: ...
    @property
    def id(self) -> str: ...
    @property
    def model(self) -> str: ...
    @property
    def tier(self) -> str: ...


R = TypeVar("R", bound=_Row)


class _Place(msgspec.Struct, frozen=True):
    """One line of a served table, pinned."""

    rank: int
    id: str
    model: str
    tier: str
    figures: str
    """Of sha256 over every number and verdict that the board shows of it."""


class _Table(msgspec.Struct, frozen=True):
    version: str
    dataset_version: str
    fingerprint: str | None
    rows: tuple[_Place, ...]
    past: tuple[_Place, ...]


def table(
    names: tuple[str, str, str | None], rows: Sequence[R], past: Sequence[R], figures: Callable[[R], bytes]
) -> bytes:
    """The file. `names`: version, dataset version and fingerprint; `figures`: everything shown of a row."""

    def place(row: R) -> _Place:
        digest = sha256(figures(row)).hexdigest()[:32]
        return _Place(row.rank, row.id, row.model, row.tier, digest)

    return encode(_Table(*names, tuple(map(place, rows)), tuple(map(place, past))))
