"""A recipe: one file with the switches and with the values of the training, each of which says its source.

    data       what is trained on: clean, dr-full, dr-mixed, paft (sft), retry, live (grpo)
    alpha      share of the train rows that are perturbed or meet an error; null: as the data have it
    shaping    weight of the price of the chosen tool in the reward; 0: ToolRL's reward
    noisy      share of each prompt's rollouts that meet the row's error (retry; docs/training.md)
    hold_out   a source or a component that no train row is of; validation keeps it
    attempts   the model's answers: to a row of retry, and over all turns of a task of live
    verl       values in verl's own names; TRL's are made of them
    verl_with  what a kind of data changes in these
    trl        what only TRL has

A word KEY=VALUE of a command changes a switch (`data=retry`, `noisy=0.5`); any other one goes to the
trainer: Hydra's overrides for verl, fields of `GRPOConfig` and `SFTConfig` for TRL.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from robustbench_tc.errors import UserError
from robustbench_tc.own.yaml import load

Name = Literal["grpo", "sft"]

Size = Annotated[int, msgspec.Meta(ge=1)]
"""Of a batch, and the like."""

SEVERAL_TURNS = ("retry", "live")
"""Data whose rollouts have several turns."""

DATA = {
    "grpo": ("clean", "dr-full", "dr-mixed", *SEVERAL_TURNS),
    "sft": ("clean", "dr-full", "dr-mixed", "paft"),
}
"""Recipe → the data that it trains on."""


class Recipe(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A recipe's file, with what was changed on the command line."""

    name: Name
    data: Literal["clean", "dr-full", "dr-mixed", "paft", "retry", "live"]
    alpha: Annotated[float, msgspec.Meta(gt=0, lt=1)] | None = None
    shaping: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    hold_out: str | None = None
    noisy: Annotated[float, msgspec.Meta(ge=0, le=1)] = 1.0
    attempts: dict[Literal["retry", "live"], Size] = {}
    verl: dict[str, Any]
    verl_with: dict[str, dict[str, Any]] = {}
    trl: dict[str, Any]

    @property
    def values(self) -> dict[str, Any]:
        """Values in verl's names, with what the data change in them."""
        return merged(self.verl, self.verl_with.get(self.data, {}))


SWITCHES = ("data", "alpha", "shaping", "hold_out", "noisy", "attempts")


def read_recipe(name: Name, words: Sequence[str] = (), file: Path | None = None) -> tuple[Recipe, list[str]]:
    """A recipe and the words that are none of its switches. `file`: default is the one that ships.

    Raises UserError.
    """
    path = file or Path(__file__).with_name(f"{name}.yaml")
    if not path.is_file():
        raise UserError(f"no recipe {path}")
    found: Any = load(path.read_bytes(), str(path)).data()
    switches, others = {}, []
    for word in words:
        key, equals, value = word.partition("=")
        if equals and key in SWITCHES:
            switches[key] = load(value.encode(), word).data()
        else:
            others.append(word)
    try:
        recipe = msgspec.convert(merged({**found, "name": name}, switches), Recipe)
    except (TypeError, ValueError) as error:
        raise UserError(f"{path}: {error}") from None
    _check(recipe)
    return recipe, others


def _check(recipe: Recipe) -> None:
    """Raises UserError for switches that do not go together."""
    name, data = recipe.name, recipe.data
    if data not in DATA[name]:
        raise UserError(f"data={data} is not for the recipe {name}, which has {', '.join(DATA[name])}")
    if recipe.shaping and (name == "sft" or data == "live"):
        raise UserError("shaping is part of ToolRL's reward: it is for grpo on rows of `build toolrl-dr`")
    if recipe.noisy < 1 and data != "retry":
        raise UserError(f"noisy is for the errors of data=retry, and data is {data}")


def merged(values: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Nested values with some of them changed."""
    found = dict(values)
    for key, value in changes.items():
        inner = found.get(key)
        found[key] = merged(inner, value) if isinstance(inner, dict) and isinstance(value, dict) else value
    return found


def value_at(values: dict[str, Any], key: str, kind: Any = Any) -> Any:
    """The value of a key such as `trainer.total_epochs`. Raises UserError if none is of `kind`."""
    found: Any = values
    try:
        for part in key.split("."):
            found = found[part]
        return msgspec.convert(found, kind)
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(f"the recipe's verl.{key} is missing or wrong: {error}") from None


def gguf_problem(model: Path) -> str | None:
    """Why what is trained of a folder of GGUF cannot be saved, and what helps; None: it can."""
    files = sorted(model.glob("*.gguf"))
    if not files or any(model.glob("*.safetensors")):
        return None
    return (
        f"{files[0].name} is GGUF: transformers reads it and cannot save what was trained; make a folder of "
        "safetensors first (docs/training.md, GGUF)"
    )
