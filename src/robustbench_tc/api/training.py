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
    overrides: Annotated[
        Sequence[str],
        Option(help="Hydra overrides, as train.sh would be given them.", typed=tuple[str, ...]),
    ] = (),
    *,
    model_dir: Annotated[Path, Option(help="The model's folder: config and tokenizer are read.")],
    recipe: Annotated[
        Literal["toolrl_dr", "retry", "mixture", "retry_live", "paft"], Option(help="What is trained.")
    ] = "toolrl_dr",
    data_config: Annotated[str | None, Option(help="Config of the data (default: the recipe's own).")] = None,
    progress: Tell = silent,
) -> "Readiness":
    """Try everything that can go wrong before a GPU is rented: config, data, lengths, tokenizer, reward.

    Needs the training environment (`make env-train`), no GPU. Exits 1 if a check fails.

    Example: rbtc train check toolrl-dr --model-dir ./Qwen2.5-3B-Instruct trainer.n_gpus_per_node=4

    Raises UserError.
    """
    from ..train_recipes.check import readiness

    return readiness(recipe, data, model_dir, data_config, overrides, progress)
