"""The files of a log as a `Log`."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from operator import attrgetter
from pathlib import Path
from typing import BinaryIO, TypeAlias

import msgspec

from robustbench_tc.errors import UserError
from robustbench_tc.option import Tell, silent
from robustbench_tc.own.cases import OwnTool
from robustbench_tc.own.files import (
    BYTES,
    HOOKS,
    Unreadable,
    decode_text,
    scan,
    size_of,
)
from robustbench_tc.own.tools import parse_tools
from robustbench_tc.schema import Json

from . import formats
from .chat import Conversation, each, first_of
from .steps import Step, conversations

LINE = BYTES
"""Bytes of a line."""
FILE = 32 * BYTES
"""Bytes of a log."""
_HOOKS = HOOKS | {"parse_constant": float}
"""Of Python's logs: NaN may stand in a record beside its messages."""


class Refused(msgspec.Struct, frozen=True):
    """A line, or a part of one, that could not be read."""

    log: str
    """The name of its file."""
    line: int
    why: str
    """Without anything of the line's content."""


class Log(msgspec.Struct, frozen=True):
    """What stands in the files of a log."""

    conversations: tuple[Conversation, ...]
    refused: tuple[Refused, ...]
    left: dict[str, int] = {}
    """Records that are no conversation of their own, by what they are."""


Read: TypeAlias = tuple[int, Json | Unreadable]
"""A value of a log with its line, or why the line is none."""


def values(path: Path) -> Iterator[Read]:
    """The values of a log with their lines, and the lines that are none.

    JSON lines; or one JSON text, or several one after the other, over as many lines as they take, if such a
    file has at most `LINE` bytes. Of a list that fills the file the entries are given. Raises UserError where
    nothing of the file can be read.
    """
    size = size_of(path, "a log", FILE)
    with path.open("rb") as file:
        _, first = next(_lines(file), (0, None))
        file.seek(0)
        found = _texts(file.read()) if size <= LINE and isinstance(first, Unreadable) else None
        file.seek(0)
        yield from _lines(file) if found is None else found


def _lines(file: BinaryIO) -> Iterator[Read]:
    number = 0
    while line := file.readline(LINE + 1):
        number += 1
        if len(line) > LINE and not line.endswith(b"\n"):
            size = len(line)
            while not line.endswith(b"\n") and (line := file.readline(LINE)):  # never held in one piece
                size += len(line)
            yield number, Unreadable(f"{size:,} bytes: at most {LINE:,} a line are read")
        elif line.strip():
            try:
                yield number, decode_text(line.decode("utf-8-sig" if number == 1 else "utf-8"), _HOOKS)
            except UnicodeDecodeError:
                yield number, Unreadable("not UTF-8")
            except Unreadable as error:
                yield number, error


def _texts(data: bytes) -> list[Read] | None:
    """The values of a file that is not JSON lines; None where it is not JSON from beginning to end."""
    try:
        text = data.decode("utf-8-sig")
        is_list = text.lstrip()[:1] == "["
        found: list[Read] = list(
            scan(text.replace("[", " ", 1) if is_list else text, _HOOKS, is_list=is_list)
        )
        entries = [value for _, value in found]
    except (ValueError, RecursionError):
        return None
    return [(found[0][0], entries)] if is_list and formats.is_conversation(entries) else found


def read_log(*paths: Path, progress: Tell = silent) -> Log:
    """The conversations of log files, in the formats of `formats`.

    A conversation may stand in several of the files. A line that cannot be read is refused by its number, the
    rest is read. Raises UserError where nothing of a file is.
    """
    refused, left, steps = list[Refused](), Counter[str](), list[Step]()
    for number, path in enumerate(paths):
        progress(f"reading {path.name}")
        before = len(steps)
        for line, value in values(path):
            for one in [value] if isinstance(value, Unreadable) else formats.steps_of(value):
                if isinstance(one, Unreadable):
                    refused.append(Refused(path.name, line, str(one)))
                elif isinstance(one, str):
                    left[one] += 1
                else:
                    one.log, one.place = path.stem, (number, line)
                    steps.append(one)
        if len(steps) == before:
            raise UserError(f"{path}: {_nothing([one for one in refused if one.log == path.name], left)}")
    found: list[Conversation] = []
    known: dict[bytes, tuple[OwnTool, ...]] = {}
    for step in conversations(steps, left):
        number, line = step.place
        try:
            tools = _tools(step.tools, known)
        except Unreadable as error:
            refused.append(Refused(paths[number].name, line, str(error)))
        else:
            name = step.id or f"{step.log}-{line}"
            found.append(Conversation(name, step.log, line, step.messages, tools, step.runs))
    refused.sort(key=attrgetter("log", "line"))
    if not found:
        raise UserError(f"{', '.join(map(str, paths))}: {_nothing(refused, left)}")
    return Log(tuple(found), tuple(refused), dict(+left))


def _nothing(refused: Sequence[Refused], left: Counter[str]) -> str:
    """Why there is no conversation."""
    if refused:
        return f"no conversation can be read; line {refused[0].line}: {refused[0].why}"
    return f"no messages: {', '.join(+left)}" if +left else "the file is empty"


def _tools(given: Json, known: dict[bytes, tuple[OwnTool, ...]]) -> tuple[OwnTool, ...] | None:
    """The tools that a conversation brings, those that are built into a provider left out. `known`: by their
    bytes, as most lines of a log bring the same."""
    own = [one for one in each(given) if not _is_built_in(one)]
    if not own:
        return None
    data = json.dumps(own, ensure_ascii=False).encode()
    key = hashlib.sha256(data).digest()
    if key not in known:
        try:
            known[key] = parse_tools(data, "tools", "tools")
        except UserError:
            raise Unreadable("its tools cannot be read (`rbtc lint` says why, of a file)") from None
    return known[key]


def _is_built_in(tool: Json) -> bool:
    kind = first_of(tool, "type") or "function"
    schema = first_of(tool, "function", "parameters", "inputSchema", "input_schema")
    return kind not in ("function", "custom") and schema is None
