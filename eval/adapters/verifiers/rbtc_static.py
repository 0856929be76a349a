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


class StaticTaskset(vf.Taskset[RowTask, StaticConfig]):
    """One task for each row."""

    def load(self) -> list[RowTask]:
        found: list[RowTask] = tasks(self.config, "static")
        return found
