"""A reply read as its run asked for it: the one way from text and native calls to calls, whoever asks.

What decides beside the text: whether the model's chat template opens the thought (`models.toml`), whether the
reply was cut, what a server split off as reasoning, and the wire names of function-calling mode.
"""

from functools import cache

from robustbench_tc.schema import Json, Sample

from . import models, wire
from .parse import Parsed, parse


def read_reply(
    row: Sample,
    text: str | None,
    tool_calls: Json,
    *,
    model: str,
    mode: str,
    finish_reason: str | None = None,
    reasoning: str | None = None,
) -> Parsed:
    """The calls in a reply to `row`. `tool_calls` bear the registry's names already."""
    return parse(
        text,
        source=row.source,
        tools=row.tools,
        tool_calls=tool_calls,
        finish_reason=finish_reason,
        reasoning=reasoning,
        opens_thought=_opens_thought(model),
        name_back=(lambda name: wire.WireNames(row.tools).back(name)) if mode == "fc" else None,
    )


@cache
def _opens_thought(model: str) -> bool:
    entry = models.find(model)
    return entry is not None and entry.opens_thought
