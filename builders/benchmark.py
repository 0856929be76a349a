"""The `datasets` builders: of RobustBench-TC `clean`, the 22 type codes and three tables as configs; of the
live dataset `tasks` and one config for each kind of fault, or registry type.

`rbtc build` writes the same rows as a release folder; these classes are for who lives inside `datasets`:

    from robustbench_tc.builders.benchmark import RobustBenchTC

    builder = RobustBenchTC(config_name="CD_AB", profile="bundled")
    builder.download_and_prepare()
    dataset = builder.as_dataset(split="test")

and `RobustBenchTCLive(config_name="live_silent_no_op")` in the same way. Dataset scripts are gone from
`datasets` 5, so the classes are instantiated by hand; a published release loads with
`load_dataset("robustbench-tc", "CD_AB")` and needs none of this code.
"""

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import datasets
import msgspec

from robustbench_tc import live_types, schema, taxonomy
from robustbench_tc.schema import LiveRow, Sample

from .build import BuildSpec, prepare
from .configs import CONFIGS, EXTENSIONS, LICENSE, TABLES, VERSION, row_type, table_rows
from .live.build import VERSION as LIVE_VERSION, LiveSpec, Profile as LiveProfile, prepared, rows_of
from .plain import row_dict
from .sources import Profile


@dataclasses.dataclass
class RobustBenchTCConfig(datasets.BuilderConfig):
    """What the rows are made from, besides the config's name."""

    profile: Profile = "bundled"
    """`paper` (the 199 samples), `full` (the whole single-turn pools) or `bundled` (the starter samples)."""
    sources: str | None = None
    """Folder with the upstream files; default as `rbtc build`. Unused by `bundled`."""
    seed: int = 0


class _Rows(datasets.GeneratorBasedBuilder):
    """What both datasets share: one split, and rows whose columns are those of their struct."""

    about: str
    title: str
    row: type[msgspec.Struct]
    """What the config's rows are."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("dataset_name", self.title)
        super().__init__(*args, **kwargs)

    def _info(self) -> datasets.DatasetInfo:
        return datasets.DatasetInfo(
            description=self.about,
            features=schema.features(self.row),
            license=LICENSE,
            version=self.config.version,
        )

    def _split_generators(self, dl_manager: Any) -> list[datasets.SplitGenerator]:
        return [datasets.SplitGenerator(name="test", gen_kwargs={})]


class RobustBenchTC(_Rows):
    """Rows of one config, made from the upstream files and the recorded texts of the package."""

    about = "Tool calling under deployment noise: 22 perturbation types over five benchmarks."
    title = "robustbench-tc"
    VERSION = datasets.Version(VERSION)
    BUILDER_CONFIG_CLASS = RobustBenchTCConfig
    BUILDER_CONFIGS = [  # noqa: RUF012 - datasets wants a plain list
        RobustBenchTCConfig(name=name, version=VERSION) for name in (*CONFIGS, *EXTENSIONS, *TABLES)
    ]
    DEFAULT_CONFIG_NAME = taxonomy.CLEAN

    def _info(self) -> datasets.DatasetInfo:
        self.row = row_type(self.config.name)
        return super()._info()

    def _generate_examples(self) -> Iterator[tuple[int, dict[str, Any]]]:
        name = self.config.name
        spec = BuildSpec(
            profile=self.config.profile,
            sources=Path(self.config.sources) if self.config.sources else None,
            codes=() if name in (taxonomy.CLEAN, *TABLES) else (name,),
            seed=self.config.seed,
        )
        prepared = prepare(spec)
        if name in TABLES:
            yield from enumerate(map(schema.plain_row, table_rows(name, prepared.issues)))
        else:
            rows = (row for row in prepared.plan.rows(name) if isinstance(row, Sample))
            yield from enumerate(map(row_dict, rows))


LIVE_CONFIGS = (schema.TASKS, *live_types.type_codes())
"""Every config; `tasks`, the clean rows, is the default."""


@dataclasses.dataclass
class RobustBenchTCLiveConfig(datasets.BuilderConfig):
    """What the rows are made from, besides the config's name."""

    profile: LiveProfile = "bundled"
    """`bundled` (the package's own worlds), `lite` or `full` (BFCL's tasks)."""
    worlds: tuple[str, ...] = ()
    """Names and files of worlds, in place of the profile's."""
    sources: str | None = None
    """Folder with the upstream files; default as `rbtc build live`. Unused by `bundled`."""
    python: str | None = None
    """The Python that has BFCL's classes. Unused by `bundled`."""
    seed: int = 0


class RobustBenchTCLive(_Rows):
    """Rows of one config, made from the worlds and their tasks."""

    about = "Tool calling in worlds that calls change: tasks, and the same tasks with one fault."
    title = schema.DATASET
    row = LiveRow
    VERSION = datasets.Version(LIVE_VERSION)
    BUILDER_CONFIG_CLASS = RobustBenchTCLiveConfig
    BUILDER_CONFIGS = [  # noqa: RUF012 - datasets wants a plain list
        RobustBenchTCLiveConfig(name=name, version=LIVE_VERSION) for name in LIVE_CONFIGS
    ]
    DEFAULT_CONFIG_NAME = schema.TASKS

    def _generate_examples(self) -> Iterator[tuple[int, dict[str, Any]]]:
        name = self.config.name
        clean, more_tools = name == schema.TASKS, name in live_types.registry_codes()
        # Which kind a task of `lite` has is drawn among all that it could have.
        whole = clean or more_tools or self.config.profile == "lite"
        spec = LiveSpec(
            profile=self.config.profile,
            worlds=tuple(self.config.worlds),
            kinds=() if whole else (name.removeprefix("live_"),),
            types=(name,) if name in live_types.by_name() else (),
            seed=self.config.seed,
            sources=Path(self.config.sources) if self.config.sources else None,
            python=self.config.python,
        )
        found = prepared(spec, probe=not (clean or more_tools))
        rows = rows_of("clean" if clean else name, found)
        yield from enumerate(map(schema.plain_row, rows))
