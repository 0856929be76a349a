"""RobustBench-TC: does a tool-calling model survive deployment?

Rooms stand in one order, from the contract (`schema`, `taxonomy`, `io`, `compute`) to the verbs (`api`,
`cli`), and import only what stands before them: pyproject.toml has the list, import-linter holds it. In a
checkout `builders`, `audits`, `eval`, `train_recipes`, `sql` and `dataset_cards` are links to the top-level
folders.
"""

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .api import *  # noqa: F403

try:
    __version__ = version("robustbench-tc")
except PackageNotFoundError:  # running from a source tree that was never installed
    __version__ = "0+unknown"

_ROOMS = ("release", "sql")
"""Verbs whose names are also rooms: `robustbench_tc.api` has them."""


def __getattr__(name: str) -> Any:
    """The verbs: `robustbench_tc.evaluate` is that of `robustbench_tc.api`, imported when it is asked for."""
    api = import_module(".api", __name__)  # `from . import api` would ask this function first

    if name not in api.__all__ or name in _ROOMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(api, name)
