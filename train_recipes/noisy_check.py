"""What `data.noisy` asks of a config and of the data: for the trainer, and for `rbtc train check`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from robustbench_tc.errors import UserError

from . import noisy, validation
from .dataset import read_rows


def conflict(config: Any) -> str | None:
    """What of a config does not go together with its `data.noisy`, in one line. Raises UserError."""
    settings = noisy.noise(config.data.get("noisy"))
    if not settings.on:
        return None
    rollouts, name = config.actor_rollout_ref.rollout.n, str(config.algorithm.adv_estimator)
    if name != "grpo":
        return f"data.noisy normalises GRPO's groups: algorithm.adv_estimator is {name}"
    if rollouts < 4:
        return f"actor_rollout_ref.rollout.n is {rollouts}: data.noisy parts these rollouts, set 4 or more"
    if not config.trainer.get("use_v1", True):
        return "trainer.use_v1 is false: data.noisy needs verl's current trainer"
    if settings.adapt and config.trainer.test_freq <= 0:
        return f"trainer.test_freq is {config.trainer.test_freq}: data.noisy.adapt follows validation"
    return None


def readiness(config: Any, validates: Sequence[Path]) -> tuple[Literal["ok", "failed"], str] | None:
    """Whether a run with this config and these validation rows can begin, and why; None: off."""
    try:
        settings = noisy.noise(config.data.get("noisy"))
        fault = conflict(config)
    except UserError as error:
        return "failed", str(error)
    if fault is not None:
        return "failed", fault
    if not settings.on:
        return None
    rollouts = config.actor_rollout_ref.rollout.n
    mean = settings.rate * rollouts
    said = f"rate {settings.rate:g}: {mean:g} of {rollouts} rollouts in the mean meet the error"
    if not settings.adapt:
        return "ok", said
    found = pairs(validates)
    if not found:
        return "failed", (
            "no validation row with an error has a clean one beside it: data.noisy.adapt compares the two "
            "(build the configs retry and full into one folder)"
        )
    return "ok", f"{said}, then {settings.least:g} to {settings.most:g} by {found} validation pairs"


def pairs(shards: Sequence[Path]) -> int:
    """How many clean ids are validated on clean and with an error."""
    ids: dict[str, set[str]] = {}
    for row in read_rows(shards, ["extra_info", "reward_model"]):
        about = validation.row(row["extra_info"], row["reward_model"]["ground_truth"])
        ids.setdefault(about.component, set()).add(about.clean_id)
    return len(ids.get(validation.CLEAN, set()) & ids.get(validation.RETRY, set()))
