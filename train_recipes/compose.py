"""A recipe as verl reads it: its config, made of the one file, and the keys that verl would not read."""

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from .recipe import SEVERAL_TURNS, Recipe, merged
from .rows import Shards

BASES = {"grpo": "ppo_trainer", "sft": "sft_trainer_engine"}
"""Recipe → verl's own config that it stands on."""

REWARD = "pkg://robustbench_tc.train_recipes.reward"
"""The reward of rows that are not all answered once, or with shaping; else ToolRL's, as the file has it."""

AGENT_LOOP = "agent_loop.yaml"
"""What every rollout worker reads, beside the config."""

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


class NotReady(Exception):
    """A check that failed in a way that leaves nothing for those that build on it: (what, detail)."""


def first_line(error: BaseException) -> str:
    """The first line of an error that says something."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__)[:200]


def write(recipe: Recipe, shards: Shards, model: str, folder: Path) -> None:
    """Writes what verl is started with into `folder`: NAME.yaml on top of verl's config, and the agent loop's
    arguments."""
    folder = folder.absolute()
    train, held = ([str(path.absolute()) for path in paths] for paths in shards)
    files = {"train_files": train, "val_files": held}
    values = merged(recipe.values, {"data": files, "trainer": {"default_local_dir": f"{folder}/checkpoints"}})
    place: dict[str, Any] = {"model": {"path": model}}
    values = merged(values, place if recipe.name == "sft" else {"actor_rollout_ref": place})
    if recipe.data in SEVERAL_TURNS or recipe.shaping:
        reward = {"path": REWARD, "reward_kwargs": {"shaping": recipe.shaping}}
        values = merged(values, {"reward": {"custom_reward_function": reward}})
    if recipe.data in SEVERAL_TURNS:
        loop = {"name": "rollout_agent", "_target_": "robustbench_tc.train_recipes.agent_loop.RolloutLoop"}
        arguments = {f"{rollout}_attempts": most for rollout, most in recipe.attempts.items()}
        (folder / AGENT_LOOP).write_text(json.dumps([loop | arguments], indent=1) + "\n")
        agent = {"default_agent_loop": loop["name"], "agent_loop_config_path": str(folder / AGENT_LOOP)}
        rollout = {"data": {"noisy": recipe.noisy}, "actor_rollout_ref": {"rollout": {"agent": agent}}}
        values = merged(values, rollout)
    values |= {
        "hydra": {"searchpath": ["pkg://verl.trainer.config"]},
        "defaults": [BASES[recipe.name], "_self_"],
    }
    (folder / f"{recipe.name}.yaml").write_text(json.dumps(values, indent=1) + "\n")  # JSON is YAML


def compose(recipe: Recipe, shards: Shards, model: Path, folder: Path, overrides: Sequence[str] = ()) -> Any:
    """The whole config, as verl's entry point would compose it of what `write` writes. Raises NotReady."""
    from hydra import compose as hydra_compose, initialize_config_dir
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    write(recipe, shards, str(model), folder)
    try:
        with initialize_config_dir(str(folder.absolute()), version_base=None):
            composed = hydra_compose(recipe.name, overrides=[*overrides])
    except (HydraException, OmegaConfBaseException) as error:
        raise NotReady("config", first_line(error)) from None
    _check_keys(composed, BASES[recipe.name], recipe.data in SEVERAL_TURNS)
    return composed


@cache
def _verls_keys(base: str) -> frozenset[str]:
    """Every key of one of verl's own configs."""
    from hydra import compose as hydra_compose, initialize_config_module

    with initialize_config_module("verl.trainer.config", version_base=None):
        return frozenset(_leaves(hydra_compose(base)))


def _check_keys(composed: Any, base: str, several_turns: bool) -> None:
    """Raises NotReady for a key that verl would never read. `several_turns`: `data.noisy` is read."""
    others = (*_FREE, "data.noisy") if several_turns else _FREE
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
