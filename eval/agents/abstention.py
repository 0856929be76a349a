"""Agents that know when to call nothing, or do not: what the pack `abstention` tells apart."""

from collections.abc import Mapping

from robustbench_tc.schema import CONTROL_TOOLS, Call, Sample

from ..prompts.calls import DECLINED
from .base import Agent, AgentContext


def wants_nothing(row: Sample) -> bool:
    """Whether no call is right in the row."""
    return not any(row.golden_answers)


def _some_call(scene: AgentContext) -> tuple[Call, ...]:
    """The gold; where there is none, the first tool other than the control tools, without arguments."""
    listed = (tool.name for tool in scene.row.tools if tool.name not in CONTROL_TOOLS)
    return scene.gold or tuple(Call(name, {}) for name in listed)[:1]


def _gold_has_gone(scene: AgentContext) -> bool:
    """Whether no tool of the clean row's first answer is listed any more."""
    wanted = {call.name for call in scene.clean.golden_answers[0]}
    return wanted.isdisjoint(tool.name for tool in scene.row.tools)


def _lacks_a_value(scene: AgentContext) -> bool:
    return scene.row.type_code == "missing_value"


def _clean_gold(scene: AgentContext) -> tuple[Call, ...]:
    """The clean row's answer, with the value that its request does not say."""
    return AgentContext(scene.clean, scene.clean, False).gold


ABSTENTION: Mapping[str, Agent] = {
    "always-calls": Agent(
        "answers with gold, and calls the first tool where no call is right",
        _some_call,
        lambda s: not wants_nothing(s.row),
    ),
    "never-calls": Agent(
        "says that no tool fits, whatever it is asked",
        lambda s: DECLINED,
        lambda s: () in s.row.golden_answers,
    ),
    "takes-what-is-left": Agent(
        "answers with gold, and where its tools are not listed calls the first that is",
        lambda s: _some_call(s) if _gold_has_gone(s) else s.gold,
        lambda s: not (wants_nothing(s.row) and _gold_has_gone(s)),
    ),
    "invents-values": Agent(
        "answers with gold, and makes up a value that the request does not say",
        lambda s: _clean_gold(s) if _lacks_a_value(s) else s.gold,
        lambda s: not _lacks_a_value(s),
    ),
}
