"""Golden answers written in every style and set into every setting must be read as the setting says.

Alone every row is tried in every style; in the other settings every so many rows, another part of them in each
setting, so that together all rows are visited.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from robustbench_tc.errors import UserError
from robustbench_tc.eval.parse import FORMATS, parse
from robustbench_tc.eval.parse.typed import types_of
from robustbench_tc.eval.render import concrete
from robustbench_tc.eval.score import score
from robustbench_tc.io.parquet import read_rows, shards
from robustbench_tc.schema import Call, Sample, record
from robustbench_tc.taxonomy import CLEAN

from .settings import Setting, settings
from .styles import STYLES, Style

RIGHT = 0.999
"""Of the calls that are made, so many must score right, in every style."""

ACCEPTED = 0.001
"""Of the calls in closed reasoning, and of the bare ones that are only spoken of, no more may count."""

FLAGGED = 0.99
"""Of the marked calls beside a refusal, so many must carry the flag."""


class StyleCheck(msgspec.Struct, kw_only=True):
    """Counts of one style: how many replies, and of how many of them the reader said what it must not."""

    style: str
    code: str
    marked: bool
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


def clean_samples(release: Path) -> list[Sample]:
    """The clean rows of a release folder. Raises UserError where there are none."""
    files = shards(release / CLEAN) if (release / CLEAN).is_dir() else []
    if not files:
        raise UserError(f"not a release folder: {release}. Build one with `rbtc build`.")
    return [record(row, Sample) for row in read_rows(files)]


def check(rows: Sequence[Sample], every: int, styles: Sequence[str] = ()) -> Iterator[StyleCheck]:
    """One result for each style, in the order of the table."""
    golds = [(row, concrete(row.golden_answers[0], row.tools, source=row.source)) for row in rows]
    for style in STYLES.values():
        if styles and style.name not in styles:
            continue
        written = [
            (row, calls, style.write(calls))
            for row, calls in golds
            if style.can_write(calls) and (FORMATS[style.code].values != "schema" or _as_declared(calls, row))
        ]
        result = StyleCheck(style=style.name, code=style.code, marked=style.marked)
        for number, setting in enumerate(settings()):
            if not style.stands_in(setting.name):
                continue
            taken = written if setting.name == "alone" else written[number % every :: every]
            for row, calls, text in taken:
                _count(result, style, setting, row, calls, text)
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


def _count(
    result: StyleCheck, style: Style, setting: Setting, row: Sample, calls: tuple[Call, ...], text: str
) -> None:
    reply = setting.text.replace("{call}", text)
    parsed = parse(reply, source=row.source, tools=row.tools)
    wrong = False
    if setting.outcome == "made":
        wrong = not _is_right(parsed.calls, calls, row)
        result.made += 1
        result.made_wrong += wrong
    elif setting.outcome == "thought":
        wrong = bool(parsed.calls)
        result.thought += 1
        result.thought_accepted += wrong
        result.thought_unflagged += "call_in_thought" not in parsed.flags
    else:
        result.spoken += 1
        if style.marked:
            wrong = not parsed.calls or "call_beside_refusal" not in parsed.flags
            result.spoken_unflagged += wrong
        else:
            wrong = bool(parsed.calls)
            result.spoken_accepted += wrong
    if wrong and len(result.examples) < 5:
        result.examples.append(f"{setting.name} {row.id}: {reply[:300]!r} read as {parsed.calls!r:.200}")


def _is_right(found: tuple[Call, ...], calls: tuple[Call, ...], row: Sample) -> bool:
    if found == calls:
        return True
    return score(
        found,
        source=row.source,
        category=row.category,
        golden_answers=row.golden_answers,
        tools=row.tools,
    ).correct
