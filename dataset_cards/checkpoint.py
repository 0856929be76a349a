"""The card of a trained model, from the `checkpoint.json` that lies beside its weights."""

from typing import Any

import msgspec

from robustbench_tc.errors import UserError

from .citation import paper_bibtex
from .render import FIRST, template

NAME = "checkpoint.json"
"""What a folder of weights says about itself; see docs/releases.md."""


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """`checkpoint.json`: written by who trained the model."""

    name: str
    description: str = ""
    base_model: str
    """As the Hub knows it."""
    licence: str
    """SPDX identifier; the base model's, unless it allows another."""
    dataset: str
    """What it was trained on: `toolrl-dr`."""
    dataset_version: str
    dataset_config: str
    dataset_repo: str | None = None
    """The Hub id, if the training data are there."""
    recipe_name: str
    recipe: dict[str, Any] = {}
    """Settings of the run: learning rate, batch, steps, seed, hardware, versions."""
    results: list[dict[str, Any]] = []
    """The model's own table, one object per line with the same keys (dataset version, mode, accuracies)."""


def checkpoint_card(model: Checkpoint, version: str) -> str:
    """`README.md` of a model. UserError where its table is ragged."""
    from huggingface_hub import ModelCardData

    if any(list(row) != list(model.results[0]) for row in model.results):
        raise UserError(f"{NAME}: the rows of `results` have different keys")
    data = ModelCardData(
        license=model.licence,
        base_model=model.base_model,
        datasets=[model.dataset_repo] if model.dataset_repo else None,
        library_name="transformers",
        pipeline_tag="text-generation",
        language=["en"],
        tags=["tool-calling", "reinforcement-learning"],
    )
    return template("checkpoint.md.j2").render(
        header=data.to_yaml(original_order=FIRST), model=model, version=version, bibtex=paper_bibtex()
    )
