"""The reward of a mixed batch: each row's own, which the row names, with the keys of both."""

from collections.abc import Mapping
from typing import Any

from robustbench_tc.eval.score import reward as toolrl
from robustbench_tc.train_recipes.retry import reward as retry

SINGLE, RETRY = "toolrl_dr", "retry"
"""`extra_info.recipe`: which recipe's rollout and reward a row has."""


def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: str,
    extra_info: Mapping[str, Any] | None = None,
    *,
    penalty: float = 0.5,
    **variant: Any,
) -> dict[str, float]:
    """As verl's managers call it; `penalty` is of `retry`, `variant` goes to ToolRL's reward.

    Every row has the keys of `retry`. ValueError for a row that names no recipe of these: a mistake of the
    set-up, as another `data_source` is.
    """
    recipe = (extra_info or {}).get("recipe")
    if recipe == RETRY:
        return retry.compute_score(
            data_source, solution_str, ground_truth, extra_info, penalty=penalty, **variant
        )
    if recipe == SINGLE:
        parts = toolrl.compute_score(data_source, solution_str, ground_truth, extra_info, **variant)
        return retry.single_turn(parts)
    raise ValueError(
        f"no recipe {recipe!r}: rows of a mixture name toolrl_dr or retry "
        "(python -m robustbench_tc.train_recipes.mixture.rows writes them)"
    )
