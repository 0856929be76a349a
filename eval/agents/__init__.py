"""Reference agents: scripted models whose verdict on every row is known before anything is scored.

An agent is a pure function of the row it is asked about. Beside what it answers stands what that is worth
(`right`), worked out from the gold alone and not by the scorers: a benchmark that tells the agents apart
agrees with it on every single row.
"""

from collections.abc import Mapping

from robustbench_tc.errors import unknown
from robustbench_tc.schema import CONTROL_TOOLS, Call, Sample

from .. import wire
from ..prompts.calls import DECLINED
from ..score import has_to_ask
from .astray import ASTRAY
from .base import QUESTION, Agent, AgentContext
from .blind import BLIND, POLICIES, try_blind
from .scripted import NULL_MODELS, SCRIPTED

__all__ = [
    "AGENTS",
    "BLIND",
    "NULL_MODELS",
    "POLICIES",
    "SCRIPTED",
    "Agent",
    "AgentContext",
    "agent",
    "is_right",
    "reply",
    "try_blind",
]

AGENTS: Mapping[str, Agent] = {**SCRIPTED, **NULL_MODELS, **BLIND, **ASTRAY}


def agent(name: str) -> Agent:
    """The agent of that name. Raises UserError with near misses."""
    if name not in AGENTS:
        raise unknown("agent", name, AGENTS)
    return AGENTS[name]


def reply(name: str, scene: AgentContext) -> tuple[Call, ...] | str:
    """What the agent answers; an answer without calls is given in words."""
    said = agent(name).reply(scene)
    if said == ():
        return QUESTION if has_to_ask(scene.row) else DECLINED
    return said


def is_right(name: str, row: Sample, clean: Sample) -> bool:
    """Whether the agent's scored answer to the row is right, known before anything is scored.

    Where calling nothing is accepted, whatever is said without a call is right; saying nothing is not.
    """
    found = agent(name)
    first = scene = AgentContext(row, clean, False)
    while scene.errors < wire.answered(row) and not isinstance(reply(name, scene), str):
        scene = AgentContext(row, clean, True, scene.errors + 1)
    last = reply(name, scene)
    if not scene.after_result:
        if isinstance(last, str) and () in row.golden_answers:
            return last != "" and (not has_to_ask(row) or last.endswith("?"))
        return found.right(scene)
    leaves_it = bool(last.strip()) if isinstance(last, str) else all(c.name in CONTROL_TOOLS for c in last)
    return found.right(first) and leaves_it
