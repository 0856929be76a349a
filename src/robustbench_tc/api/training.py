"""`train check`: what can go wrong before a GPU is rented."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from ..option import Option, Tell, silent

if TYPE_CHECKING:
    from ..train_recipes.check import Readiness


def train_check(
    data: Annotated[
        str, Option(help="The training data: a folder, or ORG/NAME@REVISION on the Hub.")
    ] = "toolrl-dr",
    words: Annotated[
        Sequence[str],
        Option(
            help="The recipe's switches (data=retry) and Hydra's overrides, as passed to the recipe.",
            typed=tuple[str, ...],
        ),
    ] = (),
    *,
    model_dir: Annotated[Path, Option(help="The model's folder: config and tokenizer are read.")],
    recipe: Annotated[Literal["grpo", "sft"], Option(help="The recipe to check.")] = "grpo",
    recipe_file: Annotated[
        Path | None, Option(help="Your own recipe (default: the one in the package).")
    ] = None,
    progress: Tell = silent,
) -> "Readiness":
    """Check config, data, lengths, tokenizer and reward before you rent a GPU.

    Needs the training environment (`make env-train`) but no GPU. Exits 1 if a check fails.

    Example: rbtc train check toolrl-dr --model-dir ./Qwen2.5-3B-Instruct data=retry trainer.nnodes=2

    Raises UserError.
    """
    from ..train_recipes.check import readiness

    return readiness(recipe, data, model_dir, words, recipe_file, progress)
