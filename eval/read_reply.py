"""A reply read as its run asked for it: the one way from text and native calls to calls, whoever asks.

What decides beside the text: whether the model's chat template opens the thought (`models.toml`), whether the
reply was cut, what a server split off as reasoning, and the wire names of function-calling mode.
"""

from collections.abc import Sequence

from robustbench_tc.schema import Json, Tool

from . import models, wire
from .parse import Parsed, Segment, parse


def read_reply(
    text: str | None,
    tool_calls: Json,
    *,
    source: str,
    tools: Sequence[Tool],
    model: str,
    mode: str,
    finish_reason: str | None = None,
    reasoning: str | None = None,
) -> Parsed:
    """The calls in a reply. `source`: whose order of forms is tried; `tool_calls` bear the registry's names
    already.

    None as `tool_calls`: no native call came, and the text is read. `[]`: an agent of the user's returned no
    call in function-calling mode, and its text is for its user.
    """
    if tool_calls == []:
        said = text or ""
        return Parsed((), None, () if said.strip() else ("empty_text",), (Segment("final", 0, len(said)),))
    entry = models.find(model)
    return parse(
        text,
        source=source,
        tools=tools,
        tool_calls=tool_calls,
        finish_reason=finish_reason,
        reasoning=reasoning,
        opens_thought=entry is not None and entry.opens_thought,
        name_back=(lambda name: wire.WireNames(tuple(tools)).back(name)) if mode == "fc" else None,
    )
