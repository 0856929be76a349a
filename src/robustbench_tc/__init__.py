"""RobustBench-TC: does a tool-calling model survive deployment?

Rooms (`builders`, `audits`, `eval`, `train_recipes`, `sql`, `dataset_cards`) meet only through the
contract that lives at this level: `schema`, `taxonomy`, `llm` and the few helpers beside them.
"""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("robustbench-tc")
except PackageNotFoundError:  # running from a source tree that was never installed
    __version__ = "0+unknown"
