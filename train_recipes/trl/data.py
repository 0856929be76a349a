"""Rows of the training data as TRL reads them, and their reward as TRL asks for it."""

import random
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from robustbench_tc.errors import UserError
from robustbench_tc.eval.score.reward import compute_score

from .. import validation
from ..dataset import read_rows
from ..validation import Row, Scored, best

Reward = Callable[..., list[float]]
CONFIGS = ("full", "mixed")
"""Configs that one answer is the whole of. The errors of `retry` come inside the rollout, which verl's
recipe has."""


def rows(shards: Sequence[Path], limit: int | None = None) -> list[dict[str, Any]]:
    """The first rows of a config: prompt (messages), data_source, ground_truth and extra_info each."""
    try:
        return [_row(row) for row in islice(read_rows(shards), limit)]
    except (KeyError, TypeError, ValueError):
        raise UserError(
            f"{shards[0].parent} has no training rows (prompt, data_source, reward_model, extra_info): "
            "`rbtc build toolrl-dr` makes them"
        ) from None


def _row(row: dict[str, Any]) -> dict[str, Any]:
    about = row["extra_info"]
    return {
        "prompt": [{"role": turn["role"], "content": turn["content"]} for turn in row["prompt"]],
        "data_source": row["data_source"],
        "ground_truth": row["reward_model"]["ground_truth"],
        "clean_id": about["clean_id"],
        "type_code": about["type_code"],
        "component": validation.row(about, row["reward_model"]["ground_truth"]).component,
    }


def text_of(completion: str | Sequence[dict[str, Any]]) -> str:
    """What the model wrote: TRL gives messages for a prompt of messages."""
    if isinstance(completion, str):
        return completion
    return "".join(str(turn.get("content") or "") for turn in completion)


def scores(
    completions: Sequence[str | Sequence[dict[str, Any]]],
    data_source: Sequence[str],
    ground_truth: Sequence[str],
) -> list[float]:
    """ToolRL's reward of each completion: the same numbers as in verl."""
    return [
        compute_score(source, text_of(completion), gold)["score"]
        for completion, source, gold in zip(completions, data_source, ground_truth, strict=True)
    ]


def reward(*, shuffled: int | None = None, held: list[Scored] | None = None) -> Reward:
    """A reward function for GRPOTrainer. It logs `score` and `at_maximum`, means over the batch.

    `held`: takes the answers to rows of the validation split (column `split`).

    `shuffled`: a seed; what is learnt from is then a permutation of the batch's rewards, and what is logged
    stays true. A trainer that improves on that learns from something else than the reward.
    """

    def toolrl(
        prompts: Any,
        completions: Sequence[Any],
        data_source: Sequence[str],
        ground_truth: Sequence[str],
        log_metric: Callable[[str, float], None] | None = None,
        trainer_state: Any = None,
        split: Sequence[str] = (),
        clean_id: Sequence[str] = (),
        component: Sequence[str] = (),
        **_: Any,
    ) -> list[float]:
        earned = scores(completions, data_source, ground_truth)
        if "validation" in split:
            about = map(Row, clean_id, component, map(best, ground_truth))
            if held is not None:
                held.extend(map(validation.scored, about, earned))
            return earned
        if log_metric is not None:
            top = [one >= best(gold) for one, gold in zip(earned, ground_truth, strict=True)]
            log_metric("score", sum(earned) / len(earned))
            log_metric("at_maximum", sum(top) / len(top))
        if shuffled is not None:
            step = getattr(trainer_state, "global_step", 0)
            random.Random(f"{shuffled} {step}").shuffle(earned)
        return earned

    return toolrl
