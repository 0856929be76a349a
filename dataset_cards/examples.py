"""One real row per type for the card: small enough to read, and shown as its diff against the clean row."""

from collections.abc import Sequence

import msgspec

from robustbench_tc import schema, sources
from robustbench_tc.schema import Change, Sample

TEXT = 280
"""Characters of a text before it is cut."""

CHANGES = 5
"""Changes shown of a row."""


class Example(msgspec.Struct, frozen=True):
    """A row of the release."""

    id: str
    lines: tuple[str, ...]
    """What was changed, or for clean rows and run-time errors what the row says."""

    @property
    def block(self) -> str:
        """As a fenced block that no text inside can close."""
        text = "\n".join(self.lines)
        fence = "```"
        while fence in text:
            fence += "`"
        return f"{fence}text\n{text}\n{fence}"


def example_of(rows: Sequence[Sample]) -> Example:
    """The row with the shortest diff and query."""
    row = min(
        rows,
        key=lambda row: (
            getattr(sources.find(row.source), "shown_last", False),
            len(schema.dumps(row.changes)) + len(_query(row)) + len(schema.dumps(row.golden_answers[0])),
            row.id,
        ),
    )
    lines = [f"row: {cut(row.id)}"]
    if not any(change.path.startswith("/messages") for change in row.changes):
        lines.append(f"user: {cut(_query(row))}")
    lines += diff_lines(row.changes)
    if row.injected_error:
        lines.append(f"first call is answered with: {row.injected_error}")
    lines.append(f"golden answer: {cut(schema.dumps(row.golden_answers[0]))}")
    return Example(row.id, tuple(lines))


def diff_lines(changes: Sequence[Change]) -> list[str]:
    """The first changes as removed and added lines, long texts cut."""
    lines = [line for change in changes[:CHANGES] for line in _lines(change)]
    if len(changes) > CHANGES:
        lines.append(f"… and {len(changes) - CHANGES} more changes")
    return lines


def _query(row: Sample) -> str:
    users = [message.content for message in row.messages if message.role == "user"]
    return users[-1] if users else ""


def _lines(change: Change) -> list[str]:
    if change.before is None:
        return [f"+ {change.path}: {cut(_text(change.after))}"]
    if change.after is None:
        return [f"- {change.path}: {cut(_text(change.before))}"]
    return [f"- {change.path}: {cut(_text(change.before))}", f"+ {change.path}: {cut(_text(change.after))}"]


def _text(value: object) -> str:
    return value if isinstance(value, str) else schema.dumps(value)


def cut(text: str) -> str:
    """A text in one line, and no longer than a card can show."""
    line = " ".join(text.split())
    return line if len(line) <= TEXT else f"{line[:TEXT]}…"
