"""ToolRL's reward with the hidden cost of the chosen tools, for the reward-type rows.

A reward-type row offers the same function twice, at different prices or response times (`offers` in
extra_info: a list of {tool name: value}, the smaller value the better). With R ToolRL's reward:

    u(call) = 1                      the call takes the cheapest (fastest) of its offers
            = -(1 - best / value)    it takes another one: what it overpays, as a share of its value
    score   = R + weight · mean of u over the predicted calls that are in an offer

so with weight 0.25 the right tool earns up to 0.25 more, and a distractor five times as dear costs 0.2.
Rows without offers, and answers without a call to an offered tool, have R unchanged. The value is taken from
the data, not from the prompt: it is charged whether or not the model could read it.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from robustbench_tc.eval.score import reward as toolrl


def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: str,
    extra_info: Mapping[str, Any] | None = None,
    *,
    weight: float = 0.25,
    **variant: Any,
) -> dict[str, float]:
    """The shaped reward as verl's managers call it; `variant` goes to ToolRL's reward."""
    parts = toolrl.compute_score(data_source, solution_str, ground_truth, extra_info, **variant)
    text = toolrl.assistant_text(solution_str, variant.get("family", "qwen"))
    shaping = weight * thrift(toolrl.decode_calls(text) or [], (extra_info or {}).get("offers") or [])
    return parts | {"score": parts["score"] + shaping, "shaping_score": shaping}


def thrift(calls: Sequence[Any], offers: Sequence[Mapping[str, float]]) -> float:
    """Mean of `u` over the calls that are in an offer; 0 without one. In [-1, 1]."""
    worth = []
    for call in calls:
        name = call.get("name") if isinstance(call, dict) else None
        if not isinstance(name, str):
            continue
        offer = next((offer for offer in offers if name in offer), None)
        if offer is not None:
            best, value = min(offer.values()), offer[name]
            worth.append(1.0 if value <= best else -(1 - best / value))
    return math.fsum(worth) / len(worth) if worth else 0.0
