"""Agents that a disturbed registry leads astray: what the pack `registry` tells apart."""

import re
from collections.abc import Mapping

from robustbench_tc.schema import Call, Json, Sample

from ..prompts.calls import DECLINED
from ..score.ghosts import names_a_ghost
from ..score.golden import concrete
from ..score.tools import scoring_tools
from .base import JUNK, Agent, AgentContext

Reply = tuple[Call, ...] | str

_GHOST = re.compile(
    r"(?:ask me about|question about|speak of|Please use|with the tool|you to call|for this is) ([\w.-]+?)"
    r"(?= |,|\.(?:\s|$))"
)
"""How the types' words name a tool."""


def ghost(row: Sample, clean: Sample) -> str | None:
    """The tool that the row's messages name, beyond the clean ones, and nobody registered."""
    if not names_a_ghost(row.type_code):
        return None
    before = "\n".join(message.content for message in clean.messages)
    listed = {tool.name for tool in row.tools}
    found = (name for message in row.messages for name in _GHOST.findall(message.content))
    return next((name for name in found if name not in before and name not in listed), None)


def _calls_ghost(scene: AgentContext) -> Reply:
    name = ghost(scene.row, scene.clean)
    return scene.gold if name is None else (Call(name, {}),)


def _declines(scene: AgentContext) -> Reply:
    return scene.gold if ghost(scene.row, scene.clean) is None else DECLINED


def _old_types(scene: AgentContext) -> tuple[Call, ...]:
    """The gold, a parameter that was declared as a text given in the type that it had."""
    if scene.row.type_code != "type_shift":
        return scene.gold
    before = {tool.name: tool for tool in scene.clean.tools}
    now = {tool.name: tool for tool in scene.row.tools}
    shifted = {
        (name, key): str(before[name].properties[key].get("type"))
        for name, tool in now.items()
        for key, inner in tool.properties.items()
        if inner != before[name].properties[key]
    }
    return tuple(
        Call(
            call.name,
            {
                key: _typed(value, shifted[call.name, key]) if (call.name, key) in shifted else value
                for key, value in call.parameters.items()
            },
        )
        for call in scene.gold
    )


def _typed(text: Json, kind: str) -> Json:
    """The value that a text stands for in the type `kind`."""
    if kind == "integer":
        return int(text)
    if kind == "number":
        return float(text)
    if kind == "boolean":
        return text == "yes"
    return [part.strip() for part in str(text).split(",")]


def _skips(scene: AgentContext) -> tuple[Call, ...]:
    """The gold; where a prerequisite is due, the call that needs it."""
    if scene.row.type_code != "prerequisite":
        return scene.gold
    return AgentContext(scene.clean, scene.clean, False).gold


def _is_flooded(scene: AgentContext) -> bool:
    return scene.row.type_code.startswith("flood_")


def _drowns(scene: AgentContext) -> tuple[Call, ...]:
    """The gold; in a flood the first tool that came with it."""
    if not _is_flooded(scene):
        return scene.gold
    known = {tool.name for tool in scene.clean.tools}
    new = next(tool for tool in scene.row.tools if tool.name not in known)
    return (Call(new.name, dict.fromkeys(new.properties, JUNK)),)


def _is_noisy(scene: AgentContext) -> bool:
    """Whether noise touches the first golden answer."""
    return (
        scene.row.type_code.startswith("rot_")
        and scene.row.golden_answers[0] != scene.clean.golden_answers[0]
    )


def _clean_names(scene: AgentContext) -> tuple[Call, ...]:
    """The gold; under noise as it would be without."""
    if not _is_noisy(scene):
        return scene.gold
    clean = scene.clean
    return concrete(clean.golden_answers[0], scoring_tools(clean, clean), source=clean.source)


REGISTRY: Mapping[str, Agent] = {
    "calls-ghosts": Agent(
        "answers with gold, and calls a tool that is named and not registered",
        _calls_ghost,
        lambda s: ghost(s.row, s.clean) is None,
    ),
    "declines-ghosts": Agent(
        "answers with gold, and calls nothing where a tool is named that is not registered",
        _declines,
        lambda s: ghost(s.row, s.clean) is None or () in s.row.golden_answers,
    ),
    "keeps-old-types": Agent(
        "answers with gold, and gives numbers, lists and truth values where a text is asked for instead",
        _old_types,
        lambda s: s.row.type_code != "type_shift",
    ),
    "skips-prerequisites": Agent(
        "answers with gold, and makes the call that needs a token before the one that fetches it",
        _skips,
        lambda s: s.row.type_code != "prerequisite",
    ),
    "drowns-in-floods": Agent(
        "answers with gold, and in a flood takes the first tool that came with it",
        _drowns,
        lambda s: not _is_flooded(s),
    ),
    "repairs-noisy-names": Agent(
        "answers with gold, and writes noisy names as they would be without noise",
        _clean_names,
        lambda s: not _is_noisy(s),
    ),
}
