"""The card of a trained model, from the `checkpoint.json` that lies beside its weights."""

from typing import Any

import msgspec

from robustbench_tc.dataset_cards.citation import paper_bibtex
from robustbench_tc.errors import UserError

from .front_matter import model_header
from .render import template

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


def checkpoint_card(description: Any, version: str) -> str:
    """`README.md` of a model. UserError where `checkpoint.json` says too little, or its table is ragged."""
    try:
        model = msgspec.convert(description, Checkpoint)
    except msgspec.ValidationError as error:
        raise UserError(f"checkpoint.json: {error}") from None
    if any(list(row) != list(model.results[0]) for row in model.results):
        raise UserError("checkpoint.json: the rows of `results` have different keys")
    tags = ["tool-calling", "reinforcement-learning"]
    header = model_header(model.licence, model.base_model, model.dataset_repo, tags)
    return template("checkpoint.md.j2").render(
        header=header, model=model, version=version, bibtex=paper_bibtex()
    )
