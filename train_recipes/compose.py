"""A recipe's config as verl's entry point would compose it, and the keys that verl would not read."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from .dataset import Shards, hydra_list, quoted

MOVED = {
    "custom_reward_function": "reward.custom_reward_function",
    "reward_model": "reward.reward_model, reward.reward_manager or reward.num_workers",
    "sandbox_fusion": "reward.sandbox_fusion",
}
"""Groups that verl 0.9.1 still takes on the command line and reads nowhere, and where their keys are now."""

_FREE = (
    "reward.custom_reward_function.reward_kwargs",
    "actor_rollout_ref.rollout.engine_kwargs",
    "actor_rollout_ref.model.override_config",
    "model.override_config",
    "data.apply_chat_template_kwargs",
)
"""Keys and groups of keys that are not verl's: the user's own."""


class Recipe(NamedTuple):
    """A recipe folder beside this file."""

    config_name: str
    base: str
    """verl's config that it builds on."""
    dataset_config: str
    columns: tuple[str, ...]
    agent_loop: str = ""
    """The file with the agent loop's arguments, beside this one; "" where verl's own loop is used."""
    own: tuple[str, ...] = ()
    """Groups of keys that only this recipe reads."""


_GRPO = ("data_source", "prompt", "reward_model", "extra_info")


RECIPES = {
    "toolrl_dr": Recipe("grpo", "ppo_trainer", "full", _GRPO),
    "retry": Recipe("grpo_retry", "ppo_trainer", "retry", _GRPO, "retry/agent_loop.yaml", ("data.noisy",)),
    "mixture": Recipe(
        "grpo_mixture", "ppo_trainer", "mixture", (*_GRPO, "agent_name"), "mixture/agent_loop.yaml"
    ),
    "retry_live": Recipe("grpo_live", "ppo_trainer", "retry_live", _GRPO, "retry_live/agent_loop.yaml"),
    "paft": Recipe("sft", "sft_trainer_engine", "paft", ("messages",)),
}


class NotReady(Exception):
    """A check that failed in a way that leaves nothing for those that build on it: (what, detail)."""


def first_line(error: BaseException) -> str:
    """The first line of an error that says something."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__)[:200]


def compose(recipe: str, shards: Shards, model: Path, overrides: Sequence[str] = ()) -> Any:
    """The recipe's whole config, as verl's entry point would compose it. Raises NotReady."""
    from hydra import compose as hydra_compose, initialize_config_dir
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    folder = Path(__file__).resolve().parent / recipe
    known = RECIPES[recipe]
    values = [
        f"data.train_files={hydra_list(shards.train)}",
        f"data.val_files={hydra_list(shards.validation)}",
    ]
    values += [f"{'model' if recipe == 'paft' else 'actor_rollout_ref.model'}.path={quoted(model)}"]
    if known.agent_loop:
        loop = folder.parent / known.agent_loop
        values += [f"actor_rollout_ref.rollout.agent.agent_loop_config_path={quoted(loop)}"]
    try:
        with initialize_config_dir(str(folder), version_base=None):
            composed = hydra_compose(known.config_name, overrides=[*values, *overrides])
    except (HydraException, OmegaConfBaseException) as error:
        raise NotReady("config", first_line(error)) from None
    _check_keys(composed, known.base, (*_FREE, *known.own))
    return composed


@cache
def _verls_keys(base: str) -> frozenset[str]:
    """Every key of one of verl's own configs."""
    from hydra import compose as hydra_compose, initialize_config_module

    with initialize_config_module("verl.trainer.config", version_base=None):
        return frozenset(_leaves(hydra_compose(base)))


def _check_keys(composed: Any, base: str, others: Sequence[str]) -> None:
    """Raises NotReady for a key that verl would take and never read.

    `others`: the keys and groups of keys that are not verl's.
    """
    ours, verls = _leaves(composed), _verls_keys(base)
    for key, value in ours.items():
        group = key.partition(".")[0]
        if group in MOVED and value is not None:
            raise NotReady("config", f"{key} has moved and is ignored by verl 0.9.1: set {MOVED[group]}")
        free = key in others or any(key.startswith(f"{parent}.") for parent in others)
        if key not in verls and not free:
            raise NotReady("config", f"{key} is not a key of verl 0.9.1: it would be ignored")


def _leaves(config: Any) -> dict[str, Any]:
    from omegaconf import OmegaConf

    found: dict[str, Any] = {}

    def walk(value: Any, path: str) -> None:
        if isinstance(value, dict) and value:
            for key, inner in value.items():
                walk(inner, f"{path}.{key}" if path else str(key))
        else:
            found[path] = value

    walk(OmegaConf.to_container(config, resolve=False), "")
    return found
