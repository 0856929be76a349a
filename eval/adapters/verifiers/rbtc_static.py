"""Rows of the benchmark: `vf-eval rbtc-static`. One request a row; two where an error answers the call."""

import verifiers.v1 as vf
from rbtc_core import RowHarness, RowsConfig, RowTask, tasks

__all__ = ["RowHarness", "StaticTaskset"]


class StaticConfig(RowsConfig):
    """A release or a build of the benchmark."""

    dataset: str = "robustbench-tc"
    sources: str = ""
    """Upstream benchmarks, separated by commas."""
    samples: int | None = None
    """At most so many clean ids, with all their rows."""
    mode: str = "fc"
    """prompt: the registry stands in the system message; fc: native tools."""


class StaticTaskset(vf.Taskset[RowTask, StaticConfig]):
    """One task for each row."""

    def load(self) -> list[RowTask]:
        config = self.config
        more = {name: getattr(config, name) for name in ("sources", "samples", "mode")}
        found: list[RowTask] = tasks(config, "static", config.settings(config.dataset, **more))
        return found
