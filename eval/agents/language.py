"""The reference agent of the language pack: it understands everything and answers in the user's language."""

from collections.abc import Mapping

from robustbench_tc.languages import value_map
from robustbench_tc.schema import Call

from ..score import scoring_tools
from ..score.golden import concrete, with_surfaces
from .base import Agent, AgentContext


def _echoed(scene: AgentContext) -> tuple[Call, ...]:
    """Gold with the words of the request for the values that it has words for."""
    golden = with_surfaces(scene.row.golden_answers[0], value_map(scene.row))
    return concrete(golden, scoring_tools(scene.row, scene.clean), source=scene.row.source)


LANGUAGE_AGENTS: Mapping[str, Agent] = {
    "echoes-user-language": Agent(
        "answers with gold, and leaves values as the user wrote them in another language",
        _echoed,
        lambda scene: not value_map(scene.row),
    ),
}
