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
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import datasets

from robustbench_tc import schema, taxonomy
from robustbench_tc.schema import Sample

from .configs import CONFIGS, EXTENSIONS, LICENSE, TABLES, VERSION, row_type, table_rows
from .plain import row_dict
from .plan import Plan
from .sources import Profile


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
            features=schema.features(row_type(self.config.name)),
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
        return map(schema.plain_row, table_rows(config, issues))
    return (row_dict(row) for row in plan.rows(config) if isinstance(row, Sample))
