"""A cases file as what a build is made of: clean rows, and the book of what rows have no column for."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from robustbench_tc.builders.sources import Pool
from robustbench_tc.errors import UserError
from robustbench_tc.eval.validate import self_check
from robustbench_tc.io import marker
from robustbench_tc.own.book import Book, File
from robustbench_tc.own.cases import CaseFile
from robustbench_tc.own.mcp_tools import Server, keep_tools, list_tools
from robustbench_tc.own.read import read_cases

from .rows import clean_id, pool

BY_RULE = ("none", "realistic_typos=rule")
"""The generators of own cases, unless somebody is named: typing errors by rule, no other text."""


class OwnCases(NamedTuple):
    """The cases of a file and what they were read from."""

    pool: Pool
    book: Book


def read_own(cases: Path, server: Server | None, progress: Callable[[str], None]) -> OwnCases:
    """The cases, each golden answer checked. Raises UserError naming the case that cannot serve.

    `server`: its tools come after those of `tools:`, and are kept beside the cases (`keep_tools`).
    """
    read = _with_server(cases, server, progress)
    if not read.cases:
        raise UserError(
            f"{cases}: every case of it was dropped in its review, or cannot be built as it stands"
        )
    found = pool(read)
    for sample in found.samples:
        if reason := self_check(sample):
            case = sample.clean_id.partition("__")[2]
            line = next(one.line for one in read.cases if one.id in (case, case.rpartition(".")[0]))
            raise UserError(f"{cases}:{line}: case {case}: its golden answer is not right: {reason}")
    files = [File(name=path.name, sha256=marker.sha256(path)) for path in read.files]
    return OwnCases(found, book(read, files))


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
        notes=cases.notes,
    )


def _with_server(cases: Path, server: Server | None, progress: Callable[[str], None]) -> CaseFile:
    """The cases and their tools. What a server lists is kept beside the cases, as PREFIX.json."""
    progress(f"reading {cases.name}")
    if server is None:
        return read_cases(cases)
    progress(f"asking {server.title} for its tools")
    listed = list_tools(server)
    kept = cases.parent / f"{listed.prefix}.json"
    read = read_cases(cases, listed.tools(server.title))
    if kept in read.files:  # what it lists is what the file says
        return read
    keep_tools(kept, listed.json(), server.title)
    return msgspec.structs.replace(read, files=(*read.files, kept))
