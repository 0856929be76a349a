"""Scripted agents of the pack mixed: weaknesses whose losses add up, and some that cost more."""

import hashlib
from collections.abc import Mapping

from robustbench_tc import taxonomy

from .base import Agent, AgentContext

CLASSES = 8
"""Classes of samples, drawn by their clean ids."""

WEAK = {"realistic_typos": 0, "same_name_D": 1, "CD": 2}
"""Type → the class of samples that is lost under it, alone or mixed with others."""

AFTER_ERROR = 3
"""The class that is lost once a call was answered with an error."""

TOGETHER = 4
"""The class that is lost under two of these at once, and under none alone."""


def sample_class(clean_id: str) -> int:
    """A sample's class: it depends on its clean id alone."""
    digest = hashlib.sha256(clean_id.encode("utf-8", "surrogatepass")).digest()
    return digest[0] % CLASSES


def _fails(scene: AgentContext, *, together: bool) -> bool:
    """An error is known only once it came: a row that will be answered with one asks in the same words."""
    code = scene.row.type_code
    met = [WEAK[part] for part in taxonomy.parts(code) or (code,) if part in WEAK]
    met += [AFTER_ERROR] if scene.after_error else []
    drawn = sample_class(scene.row.clean_id)
    return drawn in met or (together and len(met) > 1 and drawn == TOGETHER)


MIXED: Mapping[str, Agent] = {
    "additive-weakness": Agent(
        "says nothing to an eighth of the samples under each of three types and after an error, mixed or not",
        lambda s: "" if _fails(s, together=False) else s.gold,
        lambda s: not _fails(s, together=False),
    ),
    "super-additive-weakness": Agent(
        "as additive-weakness, and says nothing to a further eighth wherever two of these come together",
        lambda s: "" if _fails(s, together=True) else s.gold,
        lambda s: not _fails(s, together=True),
    ),
}
