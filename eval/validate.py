"""The self-check: every golden answer, written in its source's format, must score 1.0 by its own scorer."""

from collections.abc import Mapping

from robustbench_tc.safe_text import shortened
from robustbench_tc.schema import Sample, dumps

from . import wire
from .parse import parse
from .prompts.calls import DECLINED, render_calls
from .score import score, scoring_tools
from .score.golden import concrete, with_surfaces


def self_check(sample: Sample, clean: Sample | None = None) -> str | None:
    """Why some golden answer of `sample` does not score 1.0 against `clean` (default: itself), or None.

    Each answer goes through parser and scorer twice: as text in the sample's output format, and as native
    calls. Builders refuse samples with a reason.
    """
    clean = clean or sample
    tools = scoring_tools(sample, clean)
    if not sample.golden_answers:
        return "no golden answer"
    for number, golden in enumerate(sample.golden_answers):
        calls = concrete(golden, tools, source=sample.source)
        text = render_calls(calls, sample.output_format) if calls else DECLINED
        for way, raw, tool_calls in (("text", text, None), ("native", None, wire.native(calls))):
            parsed = parse(raw, source=sample.source, tools=sample.tools, tool_calls=tool_calls)
            if parsed.calls != calls:
                return f"answer {number} as {way}: reads back as {shortened(dumps(parsed.calls), 200)}"
            found = score(
                parsed.calls,
                source=sample.source,
                category=sample.category,
                golden_answers=sample.golden_answers,
                tools=tools,
            )
            if not found.correct:
                return f"answer {number} as {way}: scores {found.score:g} ({found.reason})"
    return None


def taken(sample: Sample, surfaces: Mapping[str, str]) -> bool:
    """Whether the scorer takes the sample's first golden call with `surfaces` in the place of its values."""
    tools = scoring_tools(sample, sample)
    calls = concrete(with_surfaces(sample.golden_answers[0], surfaces), tools, source=sample.source)
    return score(
        calls,
        source=sample.source,
        category=sample.category,
        golden_answers=sample.golden_answers,
        tools=tools,
    ).correct
