"""The reward of a rollout whose first call met a transition error.

    R(a)          ToolRL's reward of the attempt `a` against the unchanged gold (toolrl_dr/reward.py)
    no error met  R(first attempt)
    gave up       the minimum: after the error no further call was made
    else          max(minimum, R(a) - penalty · n), a being the attempt right after the error

`n` counts what a deployed agent should not do: repeating a wrong call unchanged, and retrying more than
`max_retries` times. Repeating a right call is how one gets over a transient fault, so it is free; only after
a 401 it counts too, because the credentials will not be better the second time.
"""

from collections.abc import Mapping
from typing import Any

from robustbench_tc.train_recipes.toolrl_dr import reward as toolrl

AUTH_ERROR = "transient_auth_error"


def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: str,
    extra_info: Mapping[str, Any] | None = None,
    *,
    penalty: float = 0.5,
    max_retries: int = 2,
    **variant: Any,
) -> dict[str, float]:
    """The reward as verl's managers call it; `variant` goes to ToolRL's reward.

    The agent loop leaves its attempts in `extra_info`: `attempts`, the model's texts in order, and
    `error_attempt`, the index of the one that met the error, or -1. Without them `solution_str` is the one
    attempt. Besides ToolRL's parts the result says whether an error was met, whether the model gave up, how
    often it retried and what was charged.
    """
    info = extra_info or {}
    attempts = list(info.get("attempts") or [solution_str])
    met = info.get("error_attempt", -1)
    met = -1 if met is None else int(met)

    def score(text: str) -> dict[str, float]:
        return toolrl.compute_score(data_source, text, ground_truth, info, **variant)

    if met < 0:
        return score(attempts[0]) | {"met_error": 0.0, "gave_up": 0.0, "retries": 0.0, "charged": 0.0}
    after = attempts[met + 1 :]
    retries = sum(makes_call(text) for text in after)
    if not after or not makes_call(after[0]):
        parts = score("")  # an empty answer has no format and no call: the minimum
        return parts | {"met_error": 1.0, "gave_up": 1.0, "retries": float(retries), "charged": 0.0}
    parts = score(after[0])
    repeated = _calls(after[0]) == _calls(attempts[met])
    right = _calls(after[0]) == toolrl.decode_calls(ground_truth)
    auth = (info.get("retry") or {}).get("type_code") == AUTH_ERROR
    charges = int(repeated and (auth or not right)) + int(retries > max_retries)
    total = max(score("")["score"], parts["score"] - penalty * charges)
    return parts | {
        "score": total,
        "met_error": 1.0,
        "gave_up": 0.0,
        "retries": float(retries),
        "charged": parts["score"] - total,
    }


def makes_call(text: str) -> bool:
    """Whether an attempt opens a tool-call block: broken calls are attempts too."""
    return "<tool_call>" in text


def _calls(text: str) -> Any:
    """The calls of an attempt; where they do not decode, the block's text."""
    found = toolrl.decode_calls(text)
    return found if found is not None else text.partition("<tool_call>")[2].strip()
