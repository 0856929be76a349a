"""What must hold of a build as a folder: which configs there are, and how many rows in each."""

from collections.abc import Mapping, Set as AbstractSet
from types import MappingProxyType
from typing import NamedTuple

from ..checks import DoesNotApply, check
from ..folder import Folder


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
