"""What must hold of datasets of every kind as folders: the columns of every shard, configs, rows in each."""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set as AbstractSet
from itertools import zip_longest
from types import MappingProxyType
from typing import NamedTuple

from robustbench_tc.schema import arrow_schema

from ..checks import DoesNotApply, check
from ..folder import Folder, type_name

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


def of_shards(
    folder: Folder, configs: Iterable[str], wanted: Sequence[Named], split: str = "test"
) -> Iterator[Column]:
    """The columns of every shard of a split of these configs."""
    for config in configs:
        for shard, found in folder.columns(config, split).items():
            yield from beside(f"{config}/{shard}", wanted, found)


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


class Config(NamedTuple):
    """A config or table of a build, or one that it should have. None where nothing is known of it."""

    folder: Folder
    id: str
    stranger: str = ""
    """Why it is no config of such a build."""
    missing: bool | None = False
    """Whether it is missing, and should not be; None where it may be."""
    rows: int | None = None
    reported: int | None = None
    built: int | None = None
    """Of the rows, those of which `stated` speaks."""
    stated: int | None = None
    what: str = "samples"
    """What `clean` are."""
    clean: AbstractSet[str] | None = None
    """The clean ids that have a row each, or a skip with a reason."""
    present: AbstractSet[str] = frozenset()
    skips: Mapping[str, str] = MappingProxyType({})


@check(
    "benchmark_configs",
    "configs",
    "All 23 sample configs and 3 tables are there: a dropped type would go unnoticed in a mean.",
)
def complete(one: Config) -> None:
    """The config is there."""
    assert not one.missing, "the config is missing"


@check("benchmark_configs", "configs")
@check("live_configs", "configs")
def known(one: Config) -> None:
    """No folder pretends to be a config: `load_dataset` would offer it."""
    assert not one.stranger, one.stranger


@check("benchmark_configs", "configs")
@check("live_configs", "configs")
def splits(one: Config) -> None:
    """Every config has the one split test, in a complete set of shards."""
    if one.id not in one.folder.configs():
        if one.missing is None or one.folder.kind == "benchmark":  # where `complete` speaks
            raise DoesNotApply
        raise AssertionError("the config is missing")
    found = one.folder.splits(one.id)
    assert found == ["test"], f"splits {', '.join(found) or 'none'}"
    assert one.folder.shards(one.id, "test"), "a shard is missing"


@check(
    "benchmark_configs",
    "configs",
    "The number of rows of every type (from the paper's sources) is the one that the type states.",
)
@check(
    "live_configs",
    "configs",
    "The number of rows of every kind is the one that is known beforehand: none went missing.",
)
def rows_as_pinned(one: Config) -> None:
    """As many rows as are stated."""
    if one.built is None and one.stated is None:
        raise DoesNotApply
    assert one.built in (one.stated, None), f"built {one.built}, stated {one.stated}"


@check("benchmark_configs", "configs")
@check("live_configs", "configs")
def rows_as_reported(one: Config) -> None:
    """The build report is what the card prints: its counts are those of the files."""
    if one.rows is None:
        raise DoesNotApply
    assert one.rows == one.reported, f"rows {one.rows}, reported {one.reported}"


@check(
    "benchmark_configs",
    "configs",
    "Nothing is silently skipped: every (sample, type) pair is a row, or a skip with its reason.",
)
@check(
    "live_configs",
    "configs",
    "Nothing is silently skipped: every pair of task and kind is a row, or a skip with its reason.",
)
def accounted(one: Config) -> None:
    """Every clean id has a row of the config, or a skip with a reason."""
    if one.clean is None:
        raise DoesNotApply
    skipped = {clean_id for clean_id, reason in one.skips.items() if reason.strip()}
    both, missing = one.present & skipped, one.clean - one.present - skipped
    assert not both, f"{len(both)} {one.what} are both rows and skips"
    assert not missing, f"{len(missing)} {one.what} are neither rows nor skips with a reason"


def skips_of(folder: Folder) -> dict[str, dict[str, str]]:
    """Config → clean id → reason, of the pairs that the report leaves out."""
    found: dict[str, dict[str, str]] = {}
    listed = folder.report.get("skipped")
    for skip in listed if isinstance(listed, list) else ():
        if isinstance(skip, dict):
            reasons = found.setdefault(str(skip.get("type_code")), {})
            reasons[str(skip.get("clean_id"))] = str(skip.get("reason") or "")
    return found
