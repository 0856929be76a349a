"""The `datasets` builder of the live dataset: `tasks` and one config for each kind of fault, or registry
type.

`rbtc build live` writes the same rows as a folder; this class is for who lives inside `datasets`:

    from robustbench_tc.builders.live.dataset import RobustBenchTCLive

    builder = RobustBenchTCLive(config_name="live_silent_no_op")
    builder.download_and_prepare()
    dataset = builder.as_dataset(split="test")
"""

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import datasets

from robustbench_tc import live_types, schema
from robustbench_tc.schema import LiveRow

from .build import VERSION, LiveSpec, Profile, prepared, rows_of

CONFIGS = (schema.TASKS, *live_types.type_codes())
"""Every config; `tasks`, the clean rows, is the default."""


@dataclasses.dataclass
class RobustBenchTCLiveConfig(datasets.BuilderConfig):
    """What the rows are made from, besides the config's name."""

    profile: Profile = "bundled"
    """`bundled` (the package's own worlds), `lite` or `full` (BFCL's tasks)."""
    worlds: tuple[str, ...] = ()
    """Names and files of worlds, in place of the profile's."""
    sources: str | None = None
    """Folder with the upstream files; default as `rbtc build live`. Unused by `bundled`."""
    python: str | None = None
    """The Python that has BFCL's classes. Unused by `bundled`."""
    seed: int = 0


class RobustBenchTCLive(datasets.GeneratorBasedBuilder):
    """Rows of one config, made from the worlds and their tasks."""

    VERSION = datasets.Version(VERSION)
    BUILDER_CONFIG_CLASS = RobustBenchTCLiveConfig
    BUILDER_CONFIGS = [  # noqa: RUF012 - datasets wants a plain list
        RobustBenchTCLiveConfig(name=name, version=VERSION) for name in CONFIGS
    ]
    DEFAULT_CONFIG_NAME = schema.TASKS

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("dataset_name", schema.DATASET)
        super().__init__(*args, **kwargs)

    def _info(self) -> datasets.DatasetInfo:
        return datasets.DatasetInfo(
            description="Tool calling in worlds that calls change: tasks, and the same tasks with one fault.",
            features=schema.features(LiveRow),
            license="apache-2.0",
            version=self.config.version,
        )

    def _split_generators(self, dl_manager: Any) -> list[datasets.SplitGenerator]:
        return [datasets.SplitGenerator(name="test", gen_kwargs={})]

    def _generate_examples(self) -> Iterator[tuple[int, dict[str, Any]]]:
        name = self.config.name
        clean, more_tools = name == schema.TASKS, name in live_types.registry_codes()
        # Which kind a task of `lite` has is drawn among all that it could have.
        whole = clean or more_tools or self.config.profile == "lite"
        spec = LiveSpec(
            profile=self.config.profile,
            worlds=tuple(self.config.worlds),
            kinds=() if whole else (name.removeprefix("live_"),),
            types=(name,) if more_tools else (),
            seed=self.config.seed,
            sources=Path(self.config.sources) if self.config.sources else None,
            python=self.config.python,
        )
        found = prepared(spec, probe=not (clean or more_tools))
        rows = rows_of("clean" if clean else name, found)
        yield from enumerate(map(schema.plain_row, rows))
