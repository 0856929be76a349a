"""Logs as the files of a folder of cases: what `rbtc cases import` writes."""

import json
import os
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from robustbench_tc.errors import UserError
from robustbench_tc.eval.score.matchers.patterns import compiled
from robustbench_tc.own.cases import PROBLEM
from robustbench_tc.own.cases_file import Checker
from robustbench_tc.own.files import BYTES, decoded, read_bytes
from robustbench_tc.own.tools import parse_tools, read_tools
from robustbench_tc.schema import Json
from robustbench_tc.shown import Line, Part

from .log_files import Log, Refused, read_log
from .proposals import Proposal, Proposals, case_files, redacted
from .redact import Redactor

NOTE = "Proposed by logs. Names and addresses of people were not removed."
SHOWN = 10
"""Refused lines that are shown."""
FILES = 20
"""Times `files.BYTES`: what an import writes at most."""


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """What an import made of logs."""

    files: tuple[str, ...]
    """In the folder."""
    cases: int
    no_call: int
    """Of them: conversations without calls."""
    problems: int
    """Of them: those that cannot be built as they stand."""
    tools: int
    conversations: int
    left_out: dict[str, int]
    """What of the logs makes no case, by its reason."""
    refused: tuple[Refused, ...]
    """Lines that cannot be read."""
    messages: int
    """Of all conversations: names of people in them are not removed."""
    replaced: dict[str, int]
    """Different values that reserved ones took the place of, by kind."""
    folder: str

    def shown(self) -> Iterator[Part]:
        """What was proposed, left out and replaced, and the next command."""
        yield (
            f"{self.cases:,} cases of {self.conversations:,} conversations: {self.no_call:,} without a call, "
            f"{self.problems:,} that cannot be built as they stand"
        )
        for line in self.refused[:SHOWN]:
            yield Line(f"{line.log}:{line.line}: refused: {line.why}", aside=True)
        if len(self.refused) > SHOWN:
            yield Line(f"{len(self.refused) - SHOWN:,} more lines refused (--json names them)", aside=True)
        for why, count in self.left_out.items():
            yield f"left out: {why}: {count:,}"
        kinds = ", ".join(f"{kind} {count:,}" for kind, count in sorted(self.replaced.items()))
        yield f"replaced by reserved values: {kinds or 'nothing'}"
        yield f"Names of people are not removed: they may stand in any of {self.messages:,} messages."
        yield f"wrote {', '.join(self.files)} in {self.folder}"
        yield f"next: rbtc cases review {shlex.quote(f'{self.folder}/cases.yaml')}"


def make(
    logs: Sequence[Path],
    tools: Sequence[Path],
    out: Path,
    redact: Path | None,
    progress: Callable[[str], None],
) -> tuple[Imported, dict[str, bytes]]:
    """The files of an import into the folder `out`, and what to say of it. Raises UserError.

    `redact`: a file of patterns of what is to be replaced beside what `Redactor` knows.
    """
    stems = Counter(path.stem for path in logs)
    if (twice := next((stem for stem, n in stems.items() if n > 1), None)) is not None:
        raise UserError(f"two logs are called {twice}: ids are made from the name; rename one")
    given = [tool for path in tools for tool in read_tools(path)]
    public = [json.dumps([one.tool.name, one.tool.description, one.tool.parameters]) for one in given]
    hide = Redactor(read_patterns(redact) if redact else (), keep=public)
    log = read_log(*logs, progress=progress)
    progress("looking for e-mails, numbers and keys")
    for path in logs:
        hide.text(path.stem)
    for conversation in log.conversations:
        redacted(conversation, hide)
    names = [Path(os.path.relpath(path.resolve(), out)).as_posix() for path in tools]
    files: dict[str, bytes] = {}
    if not given:
        data = _brought(log, hide)
        given = list(parse_tools(data, "tools", f"the tools of {logs[0].name}"))
        names = ["tools.json"]
        files[names[0]] = data
    checker = Checker(given, out / "cases.yaml")
    proposals = Proposals(checker.tools, checker.problem)
    progress("making cases")
    cases = _cases(log, proposals, hide)
    if not cases:
        said = "; ".join(f"{why}: {n:,}" for why, n in (proposals.left + Counter(log.left)).items())
        raise UserError(f"{logs[0]}: no case can be made from it" + (f" ({said})" if said else ""))
    files |= case_files(names, cases, BYTES, NOTE)
    made = Imported(
        files=tuple(files),
        cases=len(cases),
        no_call=sum(case["expect"] == "no_call" for case in cases),
        problems=sum(PROBLEM in case for case in cases),
        tools=len(given),
        conversations=len(log.conversations),
        left_out=log.left | proposals.left,
        refused=log.refused,
        messages=sum(len(one.messages) for one in log.conversations),
        replaced=dict(hide.counts),
        folder=str(out),
    )
    return made, files


def read_patterns(path: Path) -> list[Any]:
    """The patterns of a file, one a line, but blank lines and those that begin with #. Raises UserError."""
    found = []
    lines = decoded(read_bytes(path, "a file of patterns"), str(path)).splitlines()
    for number, line in enumerate(lines, 1):
        if line.strip() and not line.startswith("#"):
            try:
                found.append(compiled(line))
                if found[-1].search(""):
                    raise ValueError("is found in an empty text")
            except ValueError as error:
                raise UserError(f"{path}:{number}: the pattern {line[:60]!r} {error}") from None
    if not found:
        raise UserError(f"{path}: holds no pattern")
    return found


def _cases(log: Log, proposals: Proposals, hide: Redactor) -> list[Proposal]:
    cases: list[Proposal] = []
    size = 0
    for conversation in log.conversations:
        name = re.sub(r"[^\w.-]|^\.+", "-", hide.text(conversation.log)) or "log"
        for case in proposals.propose_cases(name, redacted(conversation, hide)):
            cases.append(case)
            size += len(json.dumps(case))
            if size > FILES * BYTES:
                raise UserError(f"{name}: its cases take more than {FILES * BYTES:,} bytes; split the log")
    return cases


def _brought(log: Log, hide: Redactor) -> bytes:
    """A tools file of what the logs bring, each name once: the first definition stands."""
    found: dict[str, Json] = {}
    for conversation in log.conversations:
        for one in conversation.tools or ():
            if one.name not in found:
                body = {
                    "name": one.name,
                    "description": one.tool.description,
                    "parameters": one.tool.parameters,
                }
                found[one.name] = {"type": "function", "function": hide.apply(body)}
    if not found:
        raise UserError("the logs do not list the tools: name a tools file with --tools")
    data = json.dumps(list(found.values()), ensure_ascii=False, indent=1).encode() + b"\n"
    if len(data) > BYTES:
        raise UserError(
            f"the tools of the logs take {len(data):,} bytes, at most {BYTES:,} are read: use --tools"
        )
    return data
