"""The configs of the benchmark: their names, their columns, and the rows of those that hold no samples."""

from collections.abc import Collection, Sequence
from importlib.resources import files

import msgspec

from robustbench_tc import taxonomy
from robustbench_tc.schema import Int32, PublishedSample
from robustbench_tc.taxonomy import PerturbationType

from .sources.base import KnownIssue

VERSION = "1.3.0"
"""Of the rows that this code builds: `datasets` caches them, and clean rows have their digests, under it. A
build has no version, a release has its own."""

CONFIGS = (taxonomy.CLEAN, *taxonomy.codes())
"""The 23 sample configs; `clean` is the default."""

EXTENSIONS = tuple(kind.code for kind in taxonomy.types("extension"))
"""Configs beside them, of types that are built only when named."""

TABLES = ("taxonomy", "evidence", "known_issues")
"""Configs that describe the benchmark instead of holding samples."""

LICENSE = "apache-2.0"


def combined(configs: Collection[str]) -> dict[str, list[str]]:
    """Config → those of the core types among `configs` whose rows it holds: `perturbed`, and each component.

    These have no files of their own: the card's header lists those of their types.
    """
    there = [kind for kind in taxonomy.types() if kind.code in configs]
    held = {
        name: [kind.code for kind in there if name in ("perturbed", kind.component)]
        for name in ("perturbed", *taxonomy.COMPONENTS)
    }
    return {name: codes for name, codes in held.items() if codes}


class PublishedType(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the table `taxonomy`."""

    order: Int32
    code: str
    display_name: str
    component: str
    what_is_modified: str
    method: str
    status: str
    static: bool
    train_augmentable: bool
    sources: tuple[str, ...]
    ground_truth_changes: bool


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the table `evidence`: an audited production report behind a type."""

    type_code: str
    display_name: str
    component: str
    repo: str | None
    number: int | None
    kind: str
    url: str | None
    title: str | None
    claim: str
    verdict: str
    note: str
    checked_on: str
    method: str
    role: str
    state: str | None
    construct_fit: str


_TABLES: dict[str, type[msgspec.Struct]] = {
    "taxonomy": PublishedType,
    "evidence": Evidence,
    "known_issues": KnownIssue,
}


def row_type(config: str) -> type[msgspec.Struct]:
    """What the rows of a config are: the same for all 23 sample configs, its own for each table."""
    return _TABLES.get(config, PublishedSample)


def published(kind: PerturbationType) -> PublishedType:
    """The type's row of the table `taxonomy`."""
    return msgspec.convert(kind, PublishedType, from_attributes=True)


def table_rows(
    config: str, issues: Sequence[KnownIssue] = (), codes: Sequence[str] = ()
) -> Sequence[msgspec.Struct]:
    """The rows of a table config; `issues` are the readers' known issues, `codes` types beside the stated."""
    if config == "taxonomy":
        stated = (kind.code for kind in taxonomy.types("all"))
        return list(map(published, taxonomy.among((*stated, *codes))))
    if config == "evidence":
        lines = files("robustbench_tc").joinpath("data/evidence.jsonl").read_bytes()
        return msgspec.json.Decoder(Evidence).decode_lines(lines)
    return issues
