"""What differs between a clean row and its perturbed one, as pieces to show: for `rbtc show` and the pages of
the leaderboard.
"""

import difflib
import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from robustbench_tc.schema import Message, Sample, Tool

MOST = 250_000
"""Words on one side times words on the other that are compared one by one; longer ones differ as a whole."""

_RENAMED = re.compile(r"/tools/\d+/name")


class Piece(NamedTuple):
    """A stretch of text that both sides have, that only the clean one has, or only the perturbed one."""

    kind: Literal["same", "removed", "added"]
    text: str


def pieces(before: str, after: str) -> list[Piece]:
    """Both texts in one, word by word: without what was added they give `before`, without what was removed
    `after`, but for a space at the end."""
    left, right = before.split(" "), after.split(" ")
    start = _common(left, right)
    end = _common(left[start:][::-1], right[start:][::-1])
    found: list[Piece] = []

    def add(kind: Literal["same", "removed", "added"], words: Sequence[str]) -> None:
        if words:
            found.append(Piece(kind, " ".join(words) + " "))

    add("same", left[:start])
    mine, theirs = left[start : len(left) - end], right[start : len(right) - end]
    if len(mine) * len(theirs) > MOST:
        add("removed", mine)
        add("added", theirs)
    else:
        matcher = difflib.SequenceMatcher(None, mine, theirs, autojunk=False)
        for tag, a, b, c, d in matcher.get_opcodes():
            add("same" if tag == "equal" else "removed", mine[a:b])
            add("added", theirs[c:d] if tag != "equal" else ())
    add("same", left[len(left) - end :])
    return found


def _common(left: Sequence[str], right: Sequence[str]) -> int:
    pairs = zip(left, right, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(left), len(right)))


class MessagePair(NamedTuple):
    """A message of the clean row beside what has its place in the perturbed one; None: nothing."""

    before: Message | None
    after: Message | None


def conversations(clean: Sample, row: Sample) -> list[MessagePair]:
    """The messages of both rows in their order: as many on both sides stand one beside the other."""
    left, right = clean.messages, row.messages
    if len(left) == len(right):
        return [MessagePair(*pair) for pair in zip(left, right, strict=True)]
    before, after = ([(one.role, one.content) for one in side] for side in (left, right))
    found = []
    for tag, a, b, c, d in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag == "equal":
            found += [MessagePair(*pair) for pair in zip(left[a:b], right[c:d], strict=True)]
            continue
        found += [MessagePair(one, None) for one in left[a:b]]
        found += [MessagePair(None, one) for one in right[c:d]]
    return found


class ToolPair(NamedTuple):
    """A tool of the clean registry beside what has its place in the perturbed one; None: it has none."""

    before: Tool | None
    after: Tool | None

    @property
    def kind(self) -> Literal["same", "removed", "added", "changed"]:
        if self.before is None or self.after is None:
            return "added" if self.before is None else "removed"
        return "same" if self.before == self.after else "changed"


def registries(clean: Sample, row: Sample) -> list[ToolPair]:
    """The tools of both rows, in the perturbed row's order, with those that left at the end.

    Equal tools belong together; then one that bears its old name, or that the row's diff says was renamed.
    """
    left = list(clean.tools)
    before: dict[int, Tool] = {}
    for at, tool in enumerate(row.tools):
        if tool in left:
            before[at] = tool
            left.remove(tool)
    renamed = {
        change.path: change.before for change in row.changes if _RENAMED.fullmatch(change.path) is not None
    }
    for at, tool in enumerate(row.tools):
        name = renamed.get(f"/tools/{at}/name", tool.name)
        was = next((one for one in left if one.name == name), None)
        if at not in before and was is not None:
            before[at] = was
            left.remove(was)
    found = [ToolPair(before.get(at), tool) for at, tool in enumerate(row.tools)]
    return found + [ToolPair(tool, None) for tool in left]
