"""The `datasets` builder of RobustBench-TC: `clean`, the 22 type codes and three tables as configs.

`rbtc build` writes the same rows as a release folder; this class is for who lives inside `datasets`:

    from robustbench_tc.builders.benchmark import RobustBenchTC

    builder = RobustBenchTC(config_name="CD_AB", profile="bundled")
    builder.download_and_prepare()
    dataset = builder.as_dataset(split="test")

Dataset scripts are gone from `datasets` 5, so the class is instantiated by hand; a published release loads
with `load_dataset("robustbench-tc", "CD_AB")` and needs none of this code.
"""

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import datasets

from robustbench_tc import schema, taxonomy
from robustbench_tc.schema import Sample

from .plan import Plan, row_dict
from .sources import Profile

VERSION = "1.2.0"
"""Version of the dataset that this code builds: what `rbtc release` freezes unless another is named."""

CONFIGS = (taxonomy.CLEAN, *taxonomy.codes())
"""The 23 sample configs; `clean` is the default."""

EXTENSIONS = tuple(kind.code for kind in taxonomy.types("extension"))
"""Configs beside them, of types that are built only when named."""

TABLES = ("taxonomy", "evidence", "known_issues")
"""Configs that describe the benchmark instead of holding samples."""

LICENSE = "apache-2.0"

_TABLE_COLUMNS = {
    "taxonomy": {
        "order": "int32",
        "code": "string",
        "display_name": "string",
        "component": "string",
        "what_is_modified": "string",
        "method": "string",
        "status": "string",
        "static": "bool",
        "train_augmentable": "bool",
        "sources": "list",
        "ground_truth_changes": "bool",
    },
    "evidence": {
        "type_code": "string",
        "display_name": "string",
        "component": "string",
        "repo": "string",
        "number": "int64",
        "kind": "string",
        "url": "string",
        "title": "string",
        "claim": "string",
        "verdict": "string",
        "note": "string",
        "checked_on": "string",
        "method": "string",
        "role": "string",
        "state": "string",
        "construct_fit": "string",
    },
    "known_issues": {
        "source": "string",
        "file": "string",
        "record": "string",
        "clean_id": "string",
        "reason": "string",
        "detail": "string",
        "status": "string",
    },
}


def features(config: str) -> datasets.Features:
    """The features of a config: the same for all 23 sample configs, its own for each table."""
    if config not in _TABLE_COLUMNS:
        return schema.sample_features()
    return datasets.Features(
        {
            name: datasets.List(datasets.Value("string")) if kind == "list" else datasets.Value(kind)
            for name, kind in _TABLE_COLUMNS[config].items()
        }
    )


def table_rows(config: str, issues: tuple[Any, ...] = (), codes: Sequence[str] = ()) -> list[dict[str, Any]]:
    """The rows of a table config; `issues` are the readers' known issues, `codes` types beside the stated."""
    if config == "taxonomy":
        stated = (kind.code for kind in taxonomy.types("all"))
        return [taxonomy.published(kind) for kind in taxonomy.among((*stated, *codes))]
    if config == "evidence":
        return [{name: row.get(name) for name in _TABLE_COLUMNS[config]} for row in taxonomy.evidence()]
    return [
        {n: None if getattr(i, n) is None else str(getattr(i, n)) for n in _TABLE_COLUMNS[config]}
        for i in issues
    ]


@dataclasses.dataclass
class RobustBenchTCConfig(datasets.BuilderConfig):
    """What the rows are made from, besides the config's name."""

    profile: Profile = "bundled"
    """`paper` (the 199 samples), `full` (the whole single-turn pools) or `bundled` (the starter samples)."""
    sources: str | None = None
    """Folder with the upstream files; default as `rbtc build`. Unused by `bundled`."""
    seed: int = 0


class RobustBenchTC(datasets.GeneratorBasedBuilder):
    """Rows of one config, made from the upstream files and the recorded texts of the package."""

    VERSION = datasets.Version(VERSION)
    BUILDER_CONFIG_CLASS = RobustBenchTCConfig
    BUILDER_CONFIGS = [  # noqa: RUF012 - datasets wants a plain list
        RobustBenchTCConfig(name=name, version=VERSION) for name in (*CONFIGS, *EXTENSIONS, *TABLES)
    ]
    DEFAULT_CONFIG_NAME = taxonomy.CLEAN

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("dataset_name", "robustbench-tc")
        super().__init__(*args, **kwargs)

    def _info(self) -> datasets.DatasetInfo:
        return datasets.DatasetInfo(
            description="Tool calling under deployment noise: 22 perturbation types over five benchmarks.",
            features=features(self.config.name),
            license=LICENSE,
            version=self.config.version,
        )

    def _split_generators(self, dl_manager: Any) -> list[datasets.SplitGenerator]:
        return [datasets.SplitGenerator(name="test", gen_kwargs={})]

    def _generate_examples(self) -> Iterator[tuple[int, dict[str, Any]]]:
        from .build import BuildSpec, prepare  # build writes with this module's features

        name = self.config.name
        spec = BuildSpec(
            profile=self.config.profile,
            sources=Path(self.config.sources) if self.config.sources else None,
            codes=() if name in (taxonomy.CLEAN, *TABLES) else (name,),
            seed=self.config.seed,
        )
        prepared = prepare(spec)
        yield from enumerate(examples(self.config.name, prepared.plan, prepared.issues))


def examples(config: str, plan: Plan, issues: tuple[Any, ...]) -> Iterator[dict[str, Any]]:
    """The rows of a config as `datasets` takes them."""
    if config in TABLES:
        yield from table_rows(config, issues)
    else:
        yield from (row_dict(row) for row in plan.rows(config) if isinstance(row, Sample))
