"""Golden answers written in every style and set into every setting must be read as the setting says.

Alone every row is tried in every style; in the other settings every so many rows, another part of them in each
setting, so that together all rows are visited.
"""

from collections.abc import Iterator, Sequence

import msgspec

from robustbench_tc.eval.parse import FORMATS, parse
from robustbench_tc.eval.parse.typed import types_of
from robustbench_tc.eval.score import score
from robustbench_tc.eval.score.golden import concrete
from robustbench_tc.schema import Call, Sample

from .settings import Outcome, settings
from .styles import STYLES, Style

RIGHT = 0.999
"""Of the calls that are made, so many must score right, in every style."""

ACCEPTED = 0.001
"""Of the calls in closed reasoning, and of the bare ones that are only spoken of, no more may count."""

FLAGGED = 0.99
"""Of the marked calls beside a refusal, so many must carry the flag."""


class StyleCheck(msgspec.Struct, kw_only=True):
    """Counts of one style: how many replies, and of how many of them the reader said what it must not."""

    name: str
    style: Style
    made: int = 0
    made_wrong: int = 0
    thought: int = 0
    thought_accepted: int = 0
    thought_unflagged: int = 0
    spoken: int = 0
    spoken_accepted: int = 0
    """Of a bare style."""
    spoken_unflagged: int = 0
    """Of a marked style: without `call_beside_refusal`."""
    examples: list[str] = []
    """Some replies that were read wrong."""

    @property
    def passed(self) -> bool:
        """Whether all four bars hold: RIGHT, ACCEPTED (twice) and FLAGGED."""
        return (
            self.made_wrong <= (1 - RIGHT) * self.made
            and self.thought_accepted <= ACCEPTED * self.thought
            and self.spoken_accepted <= ACCEPTED * self.spoken
            and self.spoken_unflagged <= (1 - FLAGGED) * self.spoken
        )

    def count(self, reply: str, outcome: Outcome, row: Sample, calls: tuple[Call, ...]) -> bool:
        """Counts one reply; False where it was read wrong."""
        parsed = parse(reply, source=row.source, tools=row.tools)
        if outcome == "made":
            self.made += 1
            right = parsed.calls == calls or _scores(parsed.calls, row)
            self.made_wrong += not right
            return right
        if outcome == "thought":
            self.thought += 1
            self.thought_accepted += bool(parsed.calls)
            self.thought_unflagged += "call_in_thought" not in parsed.flags
            return not parsed.calls
        self.spoken += 1
        if self.style.marked:
            right = bool(parsed.calls) and "call_beside_refusal" in parsed.flags
            self.spoken_unflagged += not right
            return right
        self.spoken_accepted += bool(parsed.calls)
        return not parsed.calls


def check(rows: Sequence[Sample], every: int, styles: Sequence[str] = ()) -> Iterator[StyleCheck]:
    """One result for each style, in the order of the table."""
    golds = [(row, concrete(row.golden_answers[0], row.tools, source=row.source)) for row in rows]
    for name in styles or STYLES:
        style = STYLES[name]
        written = [
            (row, calls, style.write(calls))
            for row, calls in golds
            if style.can_write(calls) and (FORMATS[style.code].values != "schema" or _as_declared(calls, row))
        ]
        result = StyleCheck(name=name, style=style)
        for number, (setting, around, outcome) in enumerate(settings()):
            if "in_harmony" in setting and "harmony" in name:
                continue  # harmony's messages do not nest
            for row, calls, text in written if setting == "alone" else written[number % every :: every]:
                reply = around.replace("{call}", text)
                if not result.count(reply, outcome, row, calls) and len(result.examples) < 5:
                    result.examples.append(f"{setting} {row.id}: {reply[:300]!r}")
        yield result


def _as_declared(calls: Sequence[Call], row: Sample) -> bool:
    """Whether no golden value contradicts its schema: a number or null where a text is declared has no form in a
    format that carries texts only and types them by the schema."""
    declared = {tool.name: tool.properties for tool in row.tools}
    return not any(
        types_of(declared.get(call.name, {}).get(key)) == {"string"} and not isinstance(value, str)
        for call in calls
        for key, value in call.parameters.items()
    )


def _scores(found: tuple[Call, ...], row: Sample) -> bool:
    return score(
        found,
        source=row.source,
        category=row.category,
        golden_answers=row.golden_answers,
        tools=row.tools,
    ).correct
