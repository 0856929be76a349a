"""Live episodes: `vf-eval rbtc-live`. Tools are the world's own, the reward is success by the end state."""

import verifiers.v1 as vf
from rbtc_core import RowHarness, RowsConfig, RowTask, tasks

__all__ = ["LiveTaskset", "RowHarness"]


class LiveConfig(RowsConfig):
    """A dataset of `rbtc build live`."""

    dataset: str = "robustbench-tc-live"
    ids: str = ""
    """Row ids or tasks, separated by commas."""
    worlds: str = ""
    """Python files of worlds that robustbench-tc does not bring, separated by commas."""
    world_python: str | None = None
    """The Python that has BFCL's classes."""


class LiveTaskset(vf.Taskset[RowTask, LiveConfig]):
    """One task for each row."""

    def load(self) -> list[RowTask]:
        found: list[RowTask] = tasks(self.config, "live")
        return found
