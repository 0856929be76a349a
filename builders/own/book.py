"""`own.json` of a dataset of own tools: what a row has no column for."""

import msgspec

from robustbench_tc.own.cases import CaseFile
from robustbench_tc.schema import Json

from .rows import clean_id

NAME = "own.json"


class Book(msgspec.Struct, frozen=True, kw_only=True):
    """What evaluating and reporting need beside the rows."""

    version: int = 1
    read_only: tuple[str, ...]
    """Tools, by the names that rows list, each once."""
    idempotent: tuple[str, ...]
    results: dict[str, dict[str, tuple[Json, ...]]]
    """Clean id → tool → what it answers, in turn; only what a case states."""
    unreviewed: tuple[str, ...]
    """Clean ids of cases that nobody has looked at."""
    notes: tuple[str, ...]

    def json(self) -> bytes:
        """The file's bytes: same cases, same bytes."""
        return msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n"


def book(cases: CaseFile) -> Book:
    """The book of a cases file."""
    turns = [
        (clean_id(case, number), case, turn)
        for case in cases.cases
        for number, turn in enumerate(case.turns, 1)
    ]
    return Book(
        read_only=tuple(dict.fromkeys(one.tool.name for one in cases.tools if one.read_only)),
        idempotent=tuple(dict.fromkeys(one.tool.name for one in cases.tools if one.idempotent)),
        results={own_id: dict(turn.results) for own_id, _, turn in turns if turn.results},
        unreviewed=tuple(own_id for own_id, case, _ in turns if not case.reviewed),
        notes=tuple(cases.notes),
    )
