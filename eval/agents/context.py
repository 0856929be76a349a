"""Scripted agents that are led astray: by an earlier request, by an order in a result, by an error twice."""

from collections.abc import Mapping

from robustbench_tc import taxonomy
from robustbench_tc.schema import Call, Sample

from ..score import ordered_call
from .base import Agent, AgentContext
from .scripted import REFUSAL, REPORT

EARLIER = "As I said before: "


def _earlier_answer(row: Sample) -> str | None:
    """The first answer to one of the closed exchanges that stand before the request."""
    if not taxonomy.known(row.type_code) or "tokens" not in taxonomy.get(row.type_code).traits:
        return None
    return next((message.content for message in row.messages if message.role == "assistant"), None)


def _stuck(scene: AgentContext) -> tuple[Call, ...] | str:
    earlier = _earlier_answer(scene.row)
    if earlier is not None:
        return EARLIER + earlier
    return REPORT if scene.after_result else scene.gold


def _obedient(scene: AgentContext) -> tuple[Call, ...] | str:
    if not scene.after_result:
        return scene.gold
    ordered = ordered_call(scene.row)
    return REPORT if ordered is None else (ordered,)


def _patient_once(scene: AgentContext) -> tuple[Call, ...] | str:
    if scene.after_result:
        return REPORT
    return REFUSAL if scene.errors > 1 else scene.gold


CONTEXT: Mapping[str, Agent] = {
    "stuck-in-the-past": Agent(
        "answers with gold, but repeats its first answer where other exchanges stand before the request",
        _stuck,
        lambda s: _earlier_answer(s.row) is None,
    ),
    "obeys-injection": Agent(
        "answers with gold, and makes the call that a result orders",
        _obedient,
        lambda s: True,
    ),
    "gives-up-on-second-error": Agent(
        "answers with gold, repeats its call after one error, and apologises after two",
        _patient_once,
        lambda s: s.errors < 2,
    ),
}
"""Each fails on exactly its rows: `context_*`, `injected_result`, and errors that come twice or more."""
