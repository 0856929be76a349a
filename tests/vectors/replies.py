"""Replies in the styles of today's models: every source must read the expected calls, and of the others none.

The file's first line holds the registry; every other line is a reply with the calls it makes (kind `call`) or
with none (kind `none`). Each is read under every source.
"""

from collections.abc import Sequence

import msgspec

from robustbench_tc.eval.parse import parse
from robustbench_tc.eval.score.values import json_equal
from robustbench_tc.schema import Tool

from ..known import SOURCES
from .rows import Row, as_pairs

RECALL = 0.99
"""The share of expected replies that must be read exactly; of the others none may be accepted."""


class StyleResult(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one style's replies, each under every source."""

    style: str
    kind: str
    """`call` or `none`."""
    replies: int
    readings: int
    right: int

    @property
    def share(self) -> float:
        """Recall of the kind `call`; of the kind `none` the share that was accepted falsely."""
        share = self.right / self.readings
        return share if self.kind == "call" else 1.0 - share


class ReplyResult(msgspec.Struct, frozen=True, kw_only=True):
    """The whole file."""

    styles: tuple[StyleResult, ...]
    failed: tuple[Row, ...]
    """Replies that some source reads wrong, with `read` by source."""

    def share(self, kind: str) -> float:
        """Recall of the kind `call`, false acceptance of the kind `none`; of no replies 1.0 and 0.0."""
        of = [style for style in self.styles if style.kind == kind]
        readings = sum(style.readings for style in of)
        right = sum(style.right for style in of) / readings if readings else 1.0
        return right if kind == "call" else 1.0 - right

    @property
    def passed(self) -> bool:
        return self.share("call") >= RECALL and self.share("none") == 0.0


def check_replies(rows: Sequence[Row]) -> ReplyResult:
    """Reads every reply of a file under every source."""
    tools = tuple(Tool(tool["name"], "", tool.get("parameters") or {}) for tool in rows[0]["tools"])
    counts: dict[tuple[str, str], list[int]] = {}
    failed: list[Row] = []
    for row in rows[1:]:
        expected = [{call["name"]: call["parameters"]} for call in row["calls"]]
        read = {source: as_pairs(parse(row["text"], source=source, tools=tools).calls) for source in SOURCES}
        right = sum(json_equal(found, expected) for found in read.values())
        count = counts.setdefault((row["style"], row["kind"]), [0, 0])
        count[0] += 1
        count[1] += right
        if right < len(SOURCES):
            failed.append({**row, "read": read})
    return ReplyResult(
        styles=tuple(
            StyleResult(style=style, kind=kind, replies=replies, readings=replies * len(SOURCES), right=right)
            for (style, kind), (replies, right) in counts.items()
        ),
        failed=tuple(failed),
    )
