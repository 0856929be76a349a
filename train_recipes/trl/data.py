"""Rows of the training data as TRL reads them, and their reward as TRL asks for it."""

import random
from collections.abc import Callable, Sequence
from typing import Any

from robustbench_tc.builders.training_rows import TrainingRow
from robustbench_tc.schema import dumps, loads

from .. import validation
from ..reward import SINGLE, compute_score
from ..validation import Row, Scored, best


def rows(found: Sequence[TrainingRow], split: str = "train") -> list[dict[str, Any]]:
    """Rows with their columns as TRL takes them: a prompt of messages, and what the reward asks for."""
    made = []
    for row in found:
        about, gold = row.extra_info, row.reward_model["ground_truth"]
        made.append(
            {
                "prompt": [{"role": turn.role, "content": turn.content} for turn in row.prompt],
                "data_source": row.data_source,
                "ground_truth": gold,
                "clean_id": about["clean_id"],
                "type_code": about["type_code"],
                "component": validation.row(about, gold).component,
                "offers": dumps(about.get("offers") or []),
                "split": split,
            }
        )
    return made


def text_of(completion: str | Sequence[dict[str, Any]]) -> str:
    """What the model wrote: TRL gives messages for a prompt of messages."""
    if isinstance(completion, str):
        return completion
    return "".join(str(turn.get("content") or "") for turn in completion)


def scores(
    completions: Sequence[str | Sequence[dict[str, Any]]],
    data_source: Sequence[str],
    ground_truth: Sequence[str],
    offers: Sequence[str] = (),
    shaping: float = 0.0,
) -> list[float]:
    """The reward of each completion: the same numbers as in verl."""
    earned = []
    for number, (source, gold) in enumerate(zip(data_source, ground_truth, strict=True)):
        info = {"rollout": SINGLE, "offers": loads(offers[number]) if offers else []}
        answer = text_of(completions[number])
        earned.append(compute_score(source, answer, gold, info, shaping=shaping)["score"])
    return earned


def reward(
    *, shaping: float = 0.0, shuffled: int | None = None, held: list[Scored] | None = None
) -> Callable[..., list[float]]:
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
        offers: Sequence[str] = (),
        **_: Any,
    ) -> list[float]:
        earned = scores(completions, data_source, ground_truth, offers, shaping)
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
