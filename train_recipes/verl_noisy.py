"""`data.noisy` in verl: `install` adds it to verl's trainer, which does nothing else where it is 1.

    a train batch         gets a column that says which rollouts of each prompt meet the error (`met`)
    the advantages        are normalised for each prompt and world: the agent loop says each rollout's

The column travels with the prompt, so an asynchronous trainer's prompts keep the draws of their step.
Validation batches do not have it: every row with an error meets it there.

The idea is NoisyAgent's (arXiv:2605.27209): noise on a part of the rollouts, advantages of each part for
themselves. The draws are ours; docs/training.md has what the advantages of such a group are.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import wraps
from typing import Any

from robustbench_tc import seeding
from robustbench_tc.errors import UserError

COLUMN = "noisy"
"""What a train batch has for each prompt: {"met": numbers of the rollouts that meet the error}."""
DRAWN = "error_drawn"
"""What the agent loop says of each rollout in turn: whether its world has the error."""


def install(trainer_base: Any) -> None:
    """Wraps what verl's module has of a step; once."""
    trainer = trainer_base.PPOTrainer
    if hasattr(trainer, "_rbtc_noisy"):
        return
    trainer._rbtc_noisy = True
    worlds: dict[str, bool] = {}
    fetch, load = trainer._next_train_batch, trainer._load_checkpoint
    compute = trainer_base.compute_advantage_for_multi_trajectories
    trainer_base.compute_advantage_for_multi_trajectories = by_world(compute, worlds)

    @wraps(load)
    def _load_checkpoint(self: Any) -> Any:
        if problem := conflict(self.config):  # a wrong setting ends here, before anything is trained
            raise UserError(problem)
        return load(self)

    @wraps(fetch)
    def _next_train_batch(self: Any, *args: Any, **more: Any) -> Any:
        batch = fetch(self, *args, **more)
        if share(self.config) < 1:
            trainer_base.tu.assign_non_tensor_stack(batch, COLUMN, _column(self, batch))
        return batch

    trainer._load_checkpoint, trainer._next_train_batch = _load_checkpoint, _next_train_batch
    trainer._compute_advantage = _in_worlds(trainer_base, worlds)


def share(config: Any) -> Any:
    """`data.noisy` of a config of verl; 1 where it has none."""
    return config.data.get("noisy", 1.0)


def conflict(config: Any) -> str | None:
    """What of a config does not go together with its `data.noisy`, in one line."""
    rate, rollouts = share(config), config.actor_rollout_ref.rollout.n
    if not isinstance(rate, int | float) or not 0 <= rate <= 1:
        return f"data.noisy is {rate}: give a share from 0 to 1"
    if rate == 1:
        return None
    if config.algorithm.adv_estimator != "grpo":
        return (
            "data.noisy normalises GRPO's groups: algorithm.adv_estimator is "
            f"{config.algorithm.adv_estimator}"
        )
    if rollouts < 4:
        return f"actor_rollout_ref.rollout.n is {rollouts}: data.noisy parts these rollouts, set 4 or more"
    if not config.trainer.get("use_v1", True):
        return "trainer.use_v1 is false: data.noisy needs verl's current trainer"
    return None


def met(rate: float, rollouts: int, seed: int, step: int, *prompt: str) -> tuple[int, ...]:
    """Which of a prompt's rollouts meet the error at a step: `rate * rollouts` of them in the mean.

    A rollout that is alone in its world has nothing to be compared with, so one and all but one are never
    drawn: of 4 rollouts 0, 2 or 4 meet the error, of 8 all numbers but 1 and 7.
    """
    sizes = [size for size in range(rollouts + 1) if size in (0, rollouts) or 1 < size < rollouts - 1]
    wanted = min(max(rate, 0.0), 1.0) * rollouts
    below = max(size for size in sizes if size <= wanted)
    above = min(size for size in sizes if size >= wanted)
    rng = seeding.rng(seed, "noisy", str(step), *prompt)
    more = above > below and rng.random() < (wanted - below) / (above - below)
    return tuple(sorted(rng.sample(range(rollouts), above if more else below)))


def by_world(compute: Any, worlds: Mapping[str, bool]) -> Any:
    """verl's advantages, with the prompts of `worlds` parted in two groups; without any: verl's own.

    `worlds`: key of a rollout in the batch → whether its world has the error. verl gives the only rollout of
    a group its bare reward as its advantage; here it gets 0, as there is nothing to compare it with.
    """

    @wraps(compute)
    def compute_advantage(data: Any, batch_keys: Sequence[str], *args: Any, **more: Any) -> Any:
        if not worlds:
            return compute(data, batch_keys, *args, **more)
        import numpy as np

        prompts = data.non_tensor_batch["uid"]
        groups = groups_of(prompts, batch_keys, worlds)
        data.non_tensor_batch["uid"] = np.array(groups, dtype=object)
        try:
            data = compute(data, batch_keys, *args, **more)
        finally:
            data.non_tensor_batch["uid"] = prompts
        for row in alone(groups, batch_keys):
            data.batch["advantages"][row] = 0.0
            data.batch["returns"][row] = 0.0
        return data

    return compute_advantage


def groups_of(prompts: Sequence[str], keys: Sequence[str], worlds: Mapping[str, bool]) -> list[str]:
    """The group of each row: its prompt, and the world of its rollout."""
    return [
        f"{prompt} {'error' if worlds[key] else 'none'}" for prompt, key in zip(prompts, keys, strict=True)
    ]


def alone(groups: Sequence[str], keys: Sequence[str]) -> list[int]:
    """The rows whose rollout (verl's keys are prompt_rollout_output) is the only one of its group."""
    rollouts = [key.rpartition("_")[0] for key in keys]
    sizes = Counter(group for group, _ in set(zip(groups, rollouts, strict=True)))
    return [row for row, group in enumerate(groups) if sizes[group] == 1]


def _in_worlds(trainer_base: Any, worlds: dict[str, bool]) -> Any:
    """verl's step of advantages, which fills `worlds` for `by_world`."""
    compute = trainer_base.PPOTrainer._compute_advantage

    @wraps(compute)
    def _compute_advantage(self: Any, batch: Any, metrics: dict[str, Any]) -> Any:
        if share(self.config) == 1:
            return compute(self, batch, metrics)
        data = trainer_base.tq.kv_batch_get(
            keys=batch.keys, partition_id=batch.partition_id, select_fields=["uid", "extra_fields"]
        )
        worlds.update(zip(batch.keys, map(_world, data["extra_fields"]), strict=True))
        try:
            metrics |= _metrics(batch, groups_of(list(data["uid"]), batch.keys, worlds), worlds)
            return compute(self, batch, metrics)
        finally:
            worlds.clear()

    return _compute_advantage


def _column(trainer: Any, batch: Any) -> list[dict[str, Any]]:
    """Which rollouts meet the error, for each prompt of a batch."""
    config, step = trainer.config, trainer.global_steps
    rate, rollouts, seed = (
        share(config),
        config.actor_rollout_ref.rollout.n,
        config.data.get("seed") or 0,
    )
    return [
        {"met": list(met(rate, rollouts, seed, step, str(info["clean_id"]), str(info["index"])))}
        for info in batch["extra_info"]
    ]


def _world(fields: Any) -> bool:
    if DRAWN not in fields:
        raise UserError("data.noisy is for data=retry: this rollout's agent loop does not say what it met")
    return bool(fields[DRAWN])


def _metrics(batch: Any, groups: Sequence[str], worlds: Mapping[str, bool]) -> dict[str, float]:
    """What is logged of a step: the share that had the error, and that left without a partner."""
    lonely = set(alone(groups, batch.keys))
    real = [row for row, tag in enumerate(batch.tags) if not tag.get("is_padding", False)]
    count = max(len(real), 1)
    return {
        "noisy/drawn": sum(worlds[batch.keys[row]] for row in real) / count,
        "noisy/alone": sum(row in lonely for row in real) / count,
    }
