"""The columns of every shard, of datasets of every kind: which there are, in which order, of which types."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import NamedTuple

from robustbench_tc.schema import arrow_schema

from ..checks import check
from ..folder import type_name

Named = tuple[str, str]
"""A column's name and type; "" for JSON, whose Arrow type depends on the writer."""


class Column(NamedTuple):
    """A column of a shard beside the one that has to stand there."""

    id: str
    expected: Named
    found: Named


def beside(place: str, wanted: Sequence[Named], found: Iterable[Named]) -> Iterator[Column]:
    """The columns of a place in order."""
    pairs = zip_longest(wanted, found, fillvalue=("(none)", ""))
    for number, (expected, there) in enumerate(pairs):
        yield Column(f"{place}.{number}", expected, there)


def contract(*structs: type) -> list[Named]:
    """The columns of rows that are these structs."""
    return [(field.name, type_name(field.type)) for field in arrow_schema(*structs)]


_SAME = "Every config has the same columns in the same order with the same types: one reader reads them."


@check("benchmark_columns", "columns", _SAME)
@check("live_columns", "columns", _SAME)
@check(
    "training_columns",
    "columns",
    "verl reads these columns by name and type, and ignores or drops what it does not know.",
)
@check(
    "prediction_columns",
    "columns",
    "Predictions of all models lie in the same columns, so that marts can join them.",
)
def are_the_contracts(one: Column) -> None:
    """Name and type are the wanted ones."""
    wanted = " ".join(filter(None, one.expected))
    found = " ".join(filter(None, one.found if one.expected[1] else one.found[:1]))
    assert wanted == found, f"expected {wanted}, found {found}"
