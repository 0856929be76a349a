"""`data.noisy` in verl: `install` adds it to verl's trainer, which does nothing else where it is off.

    a train batch         gets a column that says which rollouts of each prompt meet the error (`noisy.met`)
    the advantages        are normalised for each prompt and world: the agent loop says each rollout's
    a validation          moves the rate of the next epoch (`noisy.next_rate`)
    a checkpoint          has the state in noisy.json, which a resumed run reads

The column travels with the prompt, so an asynchronous trainer's prompts keep the draws of their step.
Validation batches do not have it: every row with an error meets it there.
"""

import json
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Any

from robustbench_tc.errors import UserError
from robustbench_tc.io.files import atomic_file

from . import noisy
from .noisy_check import conflict

_LOG = logging.getLogger(__name__)

STATE = "noisy.json"


def install(trainer_base: Any) -> None:
    """Wraps what verl's module has of a step, a validation and a checkpoint; once."""
    trainer = trainer_base.PPOTrainer
    if hasattr(trainer, "_rbtc_noisy"):
        return
    trainer._rbtc_noisy, trainer._rbtc_saved = None, -1
    worlds: dict[str, bool] = {}
    compute = trainer_base.compute_advantage_for_multi_trajectories
    trainer_base.compute_advantage_for_multi_trajectories = by_world(compute, worlds)
    _install_steps(trainer_base, worlds)
    _install_state(trainer)


def schedule(trainer: Any) -> noisy.Schedule:
    """A trainer's schedule, from its config where it has none yet. Raises UserError."""
    if trainer._rbtc_noisy is None:
        fault = conflict(trainer.config)
        if fault is not None:
            raise UserError(fault)
        trainer._rbtc_noisy = noisy.Schedule(noisy.noise(trainer.config.data.get("noisy")))
    found: noisy.Schedule = trainer._rbtc_noisy
    return found


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


def _install_steps(trainer_base: Any, worlds: dict[str, bool]) -> None:
    trainer = trainer_base.PPOTrainer
    fetch, compute = trainer._next_train_batch, trainer._compute_advantage

    @wraps(fetch)
    def _next_train_batch(self: Any, *args: Any, **more: Any) -> Any:
        batch = fetch(self, *args, **more)
        found = schedule(self)
        if found.settings.on:
            trainer_base.tu.assign_non_tensor_stack(batch, noisy.COLUMN, _column(self, found, batch))
        return batch

    @wraps(compute)
    def _compute_advantage(self: Any, batch: Any, metrics: dict[str, Any]) -> Any:
        found = schedule(self)
        if not found.settings.on:
            return compute(self, batch, metrics)
        data = trainer_base.tq.kv_batch_get(
            keys=batch.keys, partition_id=batch.partition_id, select_fields=["uid", "extra_fields"]
        )
        worlds.update(zip(batch.keys, map(_world, data["extra_fields"]), strict=True))
        try:
            metrics |= _metrics(found.rate, batch, groups_of(list(data["uid"]), batch.keys, worlds), worlds)
            return compute(self, batch, metrics)
        finally:
            worlds.clear()

    trainer._next_train_batch, trainer._compute_advantage = _next_train_batch, _compute_advantage


def _column(trainer: Any, found: noisy.Schedule, batch: Any) -> list[dict[str, Any]]:
    """Which rollouts meet the error, for each prompt of a batch."""
    step, config = trainer.global_steps, trainer.config
    rate = found.begin(max(step - 1, 0) // max(trainer.steps_per_epoch, 1))
    rollouts, seed = config.actor_rollout_ref.rollout.n, config.data.get("seed") or 0
    return [
        {"met": list(noisy.met(rate, rollouts, seed, step, *noisy.prompt_of(info))), "rate": rate}
        for info in batch["extra_info"]
    ]


def _world(fields: Any) -> bool:
    if noisy.DRAWN not in fields:
        raise UserError(
            "data.noisy is for the retry recipe: this rollout's agent loop does not say what it met"
        )
    return bool(fields[noisy.DRAWN])


def _metrics(rate: float, batch: Any, groups: Sequence[str], worlds: Mapping[str, bool]) -> dict[str, float]:
    """What is logged of a step: the rate, the share that had the error, the share left without a partner."""
    lonely = set(alone(groups, batch.keys))
    real = [row for row, tag in enumerate(batch.tags) if not tag.get("is_padding", False)]
    count = max(len(real), 1)
    return {
        "noisy/rate": rate,
        "noisy/drawn": sum(worlds[batch.keys[row]] for row in real) / count,
        "noisy/alone": sum(row in lonely for row in real) / count,
    }


def _install_state(trainer: Any) -> None:
    update, save, load = trainer._val_metrics_update, trainer._save_checkpoint, trainer._load_checkpoint

    @wraps(update)
    def _val_metrics_update(self: Any, *args: Any, **more: Any) -> dict[str, float]:
        found: dict[str, float] = update(self, *args, **more)
        plan, seen = schedule(self), noisy.seen(found)
        if not plan.settings.on:
            return found
        # A resumed run validates where it begins, also at a step where the whole run would not have.
        every, step = self.config.trainer.test_freq, self.global_steps
        if seen is not None and (step == 0 or (every > 0 and step % every == 0)):
            plan.validated(step, seen)
            if self._rbtc_saved == step:  # the checkpoint of this step was written before its validation
                _write(self, plan)
        return found | {"noisy/rate": plan.rate}

    @wraps(save)
    def _save_checkpoint(self: Any) -> Any:
        plan = schedule(self)
        if plan.settings.on:  # first, so that no checkpoint that verl calls complete lacks it
            _write(self, plan)
            self._rbtc_saved = self.global_steps
        return save(self)

    @wraps(load)
    def _load_checkpoint(self: Any) -> Any:
        plan = schedule(self)  # a wrong setting ends here, before anything is trained
        done = load(self)
        if plan.settings.on and self.global_steps > 0:
            _read(self, plan)
        return done

    trainer._val_metrics_update = _val_metrics_update
    trainer._save_checkpoint, trainer._load_checkpoint = _save_checkpoint, _load_checkpoint


def _folder(trainer: Any, step: int) -> Path:
    return Path(trainer.config.trainer.default_local_dir) / f"global_step_{step}"


def _write(trainer: Any, plan: noisy.Schedule) -> None:
    with atomic_file(_folder(trainer, trainer.global_steps) / STATE, replace=True) as path:
        path.write_text(json.dumps(plan.state, indent=1) + "\n")


def _read(trainer: Any, plan: noisy.Schedule) -> None:
    config = trainer.config.trainer
    resumed = config.resume_mode == "resume_path"
    path = (Path(config.resume_from_path) if resumed else _folder(trainer, trainer.global_steps)) / STATE
    if not path.is_file():
        # A run that begins to use data.noisy with a checkpoint made without it.
        _LOG.warning("data.noisy: no %s, the rate begins at %s", path, plan.rate)
        return
    try:
        plan.restore(json.loads(path.read_text()))
    except ValueError as error:
        raise UserError(f"{path} cannot be read: {error}") from None
