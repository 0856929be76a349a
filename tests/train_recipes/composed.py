"""A recipe's rows and its config for verl, as the command makes them."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from robustbench_tc.train_recipes import compose, recipe as recipes, rows


def shards_of(dataset: Path, words: Sequence[str] = (), name: recipes.Name = "grpo") -> rows.Shards:
    """The files that verl reads."""
    recipe, _ = recipes.read_recipe(name, words)
    return rows.write(rows.choose(str(dataset), recipe), Path(tempfile.mkdtemp()) / "rows")


def composed(dataset: Path, model: Path, words: Sequence[str] = (), name: recipes.Name = "grpo") -> Any:
    """The whole config. `words`: switches and Hydra's overrides."""
    recipe, overrides = recipes.read_recipe(name, words)
    folder = Path(tempfile.mkdtemp())
    shards = rows.write(rows.choose(str(dataset), recipe), folder / "rows")
    return compose.compose(recipe, shards, model, folder, overrides)
