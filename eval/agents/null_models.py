"""Null models: agents that never read the request, or never act. What they score is what a table is worth.

A reply that lists the registry, quotes the gold or thinks of it without calling anything is worth nothing;
calling everything, or the first tool there is, is worth what the registry gives away. Their figures stand
under every table and are pinned by a test (answers.md section 5).
"""

from collections import Counter
from collections.abc import Mapping

from robustbench_tc.schema import CONTROL_TOOLS, Call, GoldenAnswer, Json, Sample, dumps

from ..prompts.calls import python_calls, render_calls
from .base import Agent, AgentContext, scorer, takes_junk

APOLOGY = "I am sorry, but I cannot help with that."


def _everything(scene: AgentContext) -> tuple[Call, ...]:
    return tuple(Call(tool.name, {}) for tool in scene.row.tools if tool.name not in CONTROL_TOOLS)


def _echo(scene: AgentContext) -> str:
    listed: list[Json] = [
        {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
        for tool in scene.row.tools
    ]
    return f"These are the tools:\n```json\n{dumps(listed)}\n```"


def _thought(scene: AgentContext) -> str:
    call = render_calls(scene.gold, scene.row.output_format)
    return f"<think>\nThe right call would be\n{call}\nbut I would rather not.\n</think>\n{APOLOGY}"


def _right_without_arguments(row: Sample, calls: tuple[Call, ...]) -> bool:
    """Whether calls without arguments are right, worked out from the gold alone."""
    names = Counter(call.name for call in calls)

    def fits(golden: GoldenAnswer) -> bool:
        wanted = Counter(call.name for call in golden)
        tolerated = scorer(row) == "toolalpaca" and wanted <= names and len(calls) <= 2 * len(golden)
        return tolerated or wanted == names

    return any(fits(one) and all(takes_junk(row, call, set()) for call in one) for one in row.golden_answers)


NULL_MODELS: Mapping[str, Agent] = {
    "registry-echo": Agent("lists the registry and calls nothing", _echo, lambda s: False),
    "calls-everything": Agent(
        "calls every tool but the control tools, without arguments",
        _everything,
        lambda s: _right_without_arguments(s.row, _everything(s)),
    ),
    "first-tool": Agent(
        "calls the first tool that is not a control tool, without arguments",
        lambda s: _everything(s)[:1],
        lambda s: _right_without_arguments(s.row, _everything(s)[:1]),
    ),
    "apology": Agent("apologises and calls nothing", lambda s: APOLOGY, lambda s: False),
    "quotes-the-gold": Agent(
        "reports the gold as a call that failed",
        lambda s: f"I already made this call: {python_calls(s.gold)}. It timed out. Please try again later.",
        lambda s: False,
    ),
    "thinks-the-gold": Agent("thinks of the gold, then apologises", _thought, lambda s: False),
}
