"""One real row per config or type for a card: small enough to read, a perturbed one as its diff."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from robustbench_tc import schema, sources, taxonomy
from robustbench_tc.io import parquet
from robustbench_tc.schema import Change, Sample

TEXT = 280
"""Characters of a text before it is cut."""

CHANGES = 5
"""Changes shown of a row."""

NEW_TOOLS = 3
"""So many of the tools that come in are shown of a live row."""


_CHANGES = msgspec.json.Decoder(tuple[Change, ...])


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
    sizes = {}
    for row in rows:
        users = [message.content for message in row.messages if message.role == "user"]
        query, gold = users[-1] if users else "", schema.dumps(row.golden_answers[0])
        late = getattr(sources.find(row.source), "shown_last", False)
        sizes[late, len(schema.dumps(row.changes)) + len(query) + len(gold), row.id] = row, query, gold
    row, query, gold = sizes[min(sizes)]
    lines = [f"row: {cut(row.id)}"]
    if not any(change.path.startswith("/messages") for change in row.changes):
        lines.append(f"user: {cut(query)}")
    lines += diff_lines(row.changes)
    if row.injected_error:
        lines.append(f"first call is answered with: {row.injected_error}")
    return Example(row.id, (*lines, f"golden answer: {cut(gold)}"))


def training_examples(folder: Path, configs: Mapping[str, Mapping[str, Sequence[str]]]) -> dict[str, Example]:
    """Per type the training row with the shortest diff, of the first config that has perturbed rows."""
    for splits in configs.values():
        best: dict[str, tuple[str, str]] = {}
        for row in parquet.read_rows([folder / path for path in splits.get("train", ())], ["extra_info"]):
            extra = schema.loads(row["extra_info"])
            code, text = extra.get("type_code", taxonomy.CLEAN), extra.get("changes", "[]")
            shorter = code not in best or len(text) < len(best[code][0])
            if code != taxonomy.CLEAN and text != "[]" and shorter:
                best[code] = text, str(extra["clean_id"])
        if best:
            return {
                code: Example(id_, (f"row: {id_}::{code}", *diff_lines(_CHANGES.decode(text))))
                for code, (text, id_) in sorted(best.items())
            }
    return {}


def live_example(config: Path) -> Example:
    """The shortest row of a live config."""
    columns = ["id", "turns", "golden_calls", "fault", "label", "tools"]
    rows = parquet.read_rows(parquet.shards(config), columns)
    row = min(rows, key=lambda row: (len(row["turns"]) + len(row["golden_calls"]), row["id"]))
    lines = [f"row: {row['id']}"]
    for turn, calls in zip(schema.loads(row["turns"]), schema.loads(row["golden_calls"]), strict=True):
        lines += [f"{message['role']}: {cut(message['content'])}" for message in turn["messages"]]
        lines += [f"  gold: {call['name']} {cut(schema.dumps(call['parameters']))}" for call in calls]
    if row["fault"] is not None:
        lines += [f"fault: {cut(row['fault'])}", f"label: {row['label']}"]
    new = [tool for tool in schema.loads(row["tools"]) if tool.get("distractor")]
    for tool in new[:NEW_TOOLS]:
        shown = {key: tool[key] for key in ("name", "description", "parameters")}
        lines.append(f"comes in: {cut(schema.dumps(shown))}")
    if len(new) > NEW_TOOLS:
        lines.append(f"comes in: {len(new) - NEW_TOOLS} more")
    return Example(row["id"], tuple(lines))


def diff_lines(changes: Sequence[Change]) -> list[str]:
    """The first changes as removed and added lines, long texts cut."""
    lines = [
        f"{sign} {change.path}: {cut(value if isinstance(value, str) else schema.dumps(value))}"
        for change in changes[:CHANGES]
        for sign, value in (("-", change.before), ("+", change.after))
        if value is not None
    ]
    if len(changes) > CHANGES:
        lines.append(f"… and {len(changes) - CHANGES} more changes")
    return lines


def cut(text: str) -> str:
    """A text in one line, and no longer than a card can show."""
    line = " ".join(text.split())
    return line if len(line) <= TEXT else f"{line[:TEXT]}…"
