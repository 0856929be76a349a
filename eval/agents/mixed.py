"""Scripted agents of the pack mixed: weaknesses whose losses add up, and some that cost more than their sum."""

import hashlib
from collections.abc import Mapping

from robustbench_tc import taxonomy

from .base import Agent, AgentContext

CLASSES = 8
"""Classes of samples, drawn by their clean ids."""

WEAK = {"realistic_typos": 0, "same_name_D": 1, "CD": 2, "transient_rate_limit": 3}
"""Type → the class of samples that is lost under it, alone or mixed with others."""

TOGETHER = 4
"""The class that is lost under two types or more, and under none alone."""


def sample_class(clean_id: str) -> int:
    """A sample's class: it depends on its clean id alone."""
    digest = hashlib.sha256(clean_id.encode("utf-8", "surrogatepass")).digest()
    return digest[0] % CLASSES


def _fails(scene: AgentContext, *, together: bool) -> bool:
    code = scene.row.type_code
    parts = taxonomy.parts(code) or (code,)
    drawn = sample_class(scene.row.clean_id)
    alone = any(WEAK.get(part) == drawn for part in parts)
    return alone or (together and len(parts) > 1 and drawn == TOGETHER)


MIXED: Mapping[str, Agent] = {
    "additive-weakness": Agent(
        "says nothing to an eighth of the samples of each of four types, another eighth for each, mixed or not",
        lambda s: "" if _fails(s, together=False) else s.gold,
        lambda s: not _fails(s, together=False),
    ),
    "super-additive-weakness": Agent(
        "as additive-weakness, and says nothing to a further eighth wherever two types come together",
        lambda s: "" if _fails(s, together=True) else s.gold,
        lambda s: not _fails(s, together=True),
    ),
}
