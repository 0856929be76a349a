"""The book of a cases file: `own.json`."""

from collections.abc import Sequence

from robustbench_tc.own.book import Book, File
from robustbench_tc.own.cases import CaseFile

from .rows import clean_id


def book(cases: CaseFile, files: Sequence[File] = ()) -> Book:
    """What a dataset of these cases says beside its rows; `files`: what it was read from."""
    turns = [
        (clean_id(case, number), case, turn)
        for case in cases.cases
        for number, turn in enumerate(case.turns, 1)
    ]
    return Book(
        files=tuple(files),
        cases=len(cases.cases),
        turns=len(turns),
        read_only=tuple(dict.fromkeys(one.tool.name for one in cases.tools if one.read_only)),
        idempotent=tuple(dict.fromkeys(one.tool.name for one in cases.tools if one.idempotent)),
        results={own_id: dict(turn.results) for own_id, _, turn in turns if turn.results},
        unreviewed=tuple(own_id for own_id, case, _ in turns if not case.reviewed),
        notes=tuple(cases.notes),
    )
