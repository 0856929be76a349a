"""Reference agents: scripted models whose verdict on every row is known before anything is scored.

An agent is a pure function of the row it is asked about. Beside what it answers stands what that is worth
(`right`), worked out from the gold alone and not by the scorers: a benchmark that tells the agents apart
agrees with it on every single row. `agent_server.serving` puts one behind an OpenAI-compatible address.
"""

from collections.abc import Mapping

from robustbench_tc.errors import unknown
from robustbench_tc.schema import Sample

from .base import Agent, AgentContext
from .blind import BLIND, POLICIES, try_blind
from .language import LANGUAGE_AGENTS
from .null_models import NULL_MODELS
from .scripted import SCRIPTED

__all__ = [
    "AGENTS",
    "BLIND",
    "NULL_MODELS",
    "POLICIES",
    "Agent",
    "AgentContext",
    "agent",
    "is_right",
    "try_blind",
]

AGENTS: Mapping[str, Agent] = {**SCRIPTED, **LANGUAGE_AGENTS, **NULL_MODELS, **BLIND}


def agent(name: str) -> Agent:
    """The agent of that name. Raises UserError with near misses."""
    if name not in AGENTS:
        raise unknown("agent", name, AGENTS)
    return AGENTS[name]


def is_right(name: str, row: Sample, clean: Sample) -> bool:
    """Whether the agent's scored answer to the row is right, known before anything is scored."""
    found = agent(name)
    silent = isinstance(found.reply(AgentContext(row, clean, False)), str)
    return found.right(AgentContext(row, clean, row.injected_error is not None and not silent))
