"""What a case is: a request of a user's own, and which calls fulfil it.

`read` makes them from a cases file. In an answer a parameter holds a plain value or a matcher (`matchers`),
not a list of accepted values; the builder puts it into the list that the row contract wants.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from robustbench_tc.schema import Call, Json, Tool

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
