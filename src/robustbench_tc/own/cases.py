"""What a case is: a request of a user's own, and which calls fulfil it.

`read_cases` makes them from a cases file. In an answer a parameter holds a plain value or a matcher
(`matchers`), not a list of accepted values; the builder puts it into the list that the row contract wants.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from robustbench_tc.errors import UserError
from robustbench_tc.schema import Call, Json, Tool

from .files import LARGE, read_bytes

ChatMessage: TypeAlias = dict[str, Json]
"""An OpenAI chat message: role, content, and on earlier turns `tool_calls` and `tool_call_id`."""


class OwnTool(msgspec.Struct, frozen=True, kw_only=True):
    """One tool of a user's files."""

    tool: Tool
    """As a row lists it. Its name is the file's, or `prefix:name` where two files bring the same name."""
    prefix: str
    """The stem of its file, or a live server's own name."""
    name: str
    """As its file writes it."""
    read_only: bool = False
    """By the file's own word (MCP: `readOnlyHint`) or by `read_only:` of the cases."""
    idempotent: bool = False


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """One acceptable answer to a turn."""

    kind: Literal["calls", "no_call", "ask"] = "calls"
    calls: tuple[Call, ...] = ()
    """Names as rows list them; parameters hold plain values or matchers."""
    places: tuple[int, ...] = ()
    """For each call the index of its tool in `CaseFile.tools`."""


class CaseTurn(msgspec.Struct, frozen=True, kw_only=True):
    """One request, and what is right in it. The first answer is the gold of history and of perturbing."""

    messages: tuple[ChatMessage, ...]
    """What this turn adds, ending with the user's message. The first turn: the system message too."""
    answers: tuple[Answer, ...]
    ordered: bool = False
    extra: bool = False
    """`extra: allow`: arguments that the answer does not name do not count."""
    results: Mapping[str, tuple[Json, ...]] = {}
    """By tool name as rows list it: what it answers, used in turn, the last repeats. Objects are JSON values,
    a text is a text."""
    line: int = 0
    """In the cases file, from 1."""


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One case: one turn, or several with the gold history between them."""

    id: str
    turns: tuple[CaseTurn, ...]
    line: int
    reviewed: bool = True
    """False: a proposed case that nobody has accepted."""


class LeftOut(msgspec.Struct, frozen=True):
    """A proposed case that makes no rows."""

    id: str
    line: int
    reason: Literal["dropped", "not_buildable"]


class CaseFile(msgspec.Struct, frozen=True, kw_only=True):
    """A cases file, with the tools that it names."""

    tools: tuple[OwnTool, ...]
    """In the order of `tools:` and of each file."""
    cases: tuple[Case, ...]
    files: Sequence[Path] = ()
    """What it was read from: the cases file, then its tool files."""
    notes: tuple[str, ...] = ()
    """What was read differently than one might think, a line each: shown to the user."""
    left_out: tuple[LeftOut, ...] = ()
    """Proposed cases that a review dropped, and those that cannot be built as they stand."""


NO_RESULT: dict[str, Json] = {"status": "ok"}
"""What a tool without a stated result answers."""


Decision: TypeAlias = Literal["accept", "edit", "drop"]

PROPOSED_BY = "proposed_by"
"""The key of a proposed case: a log and its line, `draft`, or the model that wrote it."""
PROBLEM = "problem"
"""The key of a proposal that cannot be built as it stands: why."""


class Review(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the file."""

    id: str
    sha256: str
    """Of the case as it was decided about: `fingerprint`."""
    decision: Decision
    by: str
    at: str
    """UTC, as ISO writes it."""


Reviews: TypeAlias = dict[tuple[str, str], Review]
"""By id and sha256 the last decision about a case as it stood."""


def fingerprint(case: Json) -> str:
    """The sha256 of a case as JSON with its keys in order: what it says counts, not how it is written."""
    text = json.dumps(case, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def place(cases: Path) -> Path:
    """Where the decisions about a cases file stand."""
    return cases.with_name(f"{cases.stem}.review.jsonl")


def read_reviews(cases: Path) -> Reviews:
    """The decisions about a cases file, if somebody has made any. Raises UserError for a broken file."""
    path = place(cases)
    found: Reviews = {}
    if path.is_symlink() or path.exists():
        for number, line in enumerate(read_bytes(path, "a file of reviews", LARGE).split(b"\n"), 1):
            if not line.strip():
                continue
            try:
                review = msgspec.json.decode(line, type=Review)
            except (ValueError, RecursionError):
                raise UserError(f"{path}:{number}: not a decision; remove the line") from None
            found[review.id, review.sha256] = review
    return found
