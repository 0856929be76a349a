"""The files of a log as a `Log`."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from robustbench_tc.errors import UserError
from robustbench_tc.option import Tell, silent
from robustbench_tc.own.cases import OwnTool
from robustbench_tc.own.files import (
    BYTES,
    HOOKS,
    Unreadable,
    after_blanks,
    check_depth,
    check_surrogates,
    decode_text,
    size_of,
)
from robustbench_tc.own.tools import parse_tools
from robustbench_tc.schema import Json

from . import formats
from .chat import Conversation, Log, Refused
from .steps import Step, conversations

LINE = BYTES
"""Bytes of a line."""
FILE = 32 * BYTES
"""Bytes of a log."""
_HOOKS = HOOKS | {"parse_constant": float}
"""Of Python's logs: NaN may stand in a record beside its messages."""
_UTF_16_OR_32 = (b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff")


def values(path: Path) -> Iterator[tuple[int, Json] | Refused]:
    """The values of a log with their lines, and the lines that are none.

    JSON lines; or one JSON text, or several one after the other, over as many lines as they take, if such a
    file has at most `LINE` bytes. Of a list that fills the file the entries are given. Raises UserError where
    nothing of the file can be read.
    """
    size = size_of(path, "a log", FILE)
    with path.open("rb") as file:
        if file.read(4).startswith(_UTF_16_OR_32):
            raise UserError(f"{path}: not UTF-8; save it as UTF-8")
        file.seek(0)
        if size <= LINE and isinstance(next(_lines(path.name, file), None), Refused):
            file.seek(0)
            found = _texts(file.read())
            if found is not None:
                yield from found
                return
        file.seek(0)
        yield from _lines(path.name, file)


def _lines(log: str, file: Any) -> Iterator[tuple[int, Json] | Refused]:
    number = 0
    while line := file.readline(LINE + 1):
        number += 1
        if len(line) > LINE and not line.endswith(b"\n"):
            size = len(line)
            while rest := file.readline(LINE):  # passed over, never held in one piece
                size += len(rest)
                if rest.endswith(b"\n"):
                    break
            yield Refused(log, number, f"{size:,} bytes: at most {LINE:,} a line are read")
            continue
        if not line.strip():
            continue
        try:
            yield number, decode_text(line.decode("utf-8-sig" if number == 1 else "utf-8"), _HOOKS)
        except UnicodeDecodeError:
            yield Refused(log, number, "not UTF-8")
        except Unreadable as error:
            yield Refused(log, number, str(error))


def _texts(data: bytes) -> list[tuple[int, Json]] | None:
    """The values of a file that is not JSON lines; None where it is not JSON from beginning to end."""
    try:
        text = data.decode("utf-8-sig")
        check_depth(data)
        found, is_list = _scan(text)
        check_surrogates(text, [value for _, value in found])
    except (ValueError, RecursionError):
        return None
    values = [value for _, value in found]
    return [(found[0][0], values)] if is_list and _is_conversation(values) else found


def _is_conversation(value: Json) -> bool:
    """Whether a value is a list of messages, and not of records."""

    def is_record(one: Json) -> bool:
        return not isinstance(one, dict) or ("call_id" not in one and formats.format_of(one) is not None)

    return isinstance(value, list) and bool(value) and not any(map(is_record, value))


def _scan(text: str) -> tuple[list[tuple[int, Json]], bool]:
    """The values with their lines, and whether they are the entries of one list. Raises ValueError."""
    decoder = json.JSONDecoder(**_HOOKS)
    found = []
    line, counted = 1, 0
    at = after_blanks(text, 0)
    if is_list := text.startswith("[", at):
        at = after_blanks(text, at + 1)
    while at < len(text) and not (is_list and text[at] == "]"):
        line, counted = line + text.count("\n", counted, at), at
        value, at = decoder.raw_decode(text, at)
        found.append((line, value))
        at = after_blanks(text, at)
        if is_list and text.startswith(",", at):
            at = after_blanks(text, at + 1)
        elif is_list and not text.startswith("]", at):
            raise ValueError
    if is_list and after_blanks(text, at + 1) < len(text):
        raise ValueError
    return found, is_list


NOTHING = "records in which no message was recorded"


def read_log(*paths: Path, progress: Tell = silent) -> Log:
    """The conversations of log files, in the formats of `formats`.

    A line that cannot be read is refused by its number, the rest is read. Raises UserError where nothing is.
    """
    reader = _Reader()
    for number, path in enumerate(paths):
        progress(f"reading {path.name}")
        reader.read(number, path)
    return reader.log(paths)


class _Reader:
    """Reads the files of a log, of which a conversation may stand in several."""

    def __init__(self) -> None:
        self.refused: list[Refused] = []
        self.left: Counter[str] = Counter()
        self.steps: list[Step] = []
        self.tools: dict[bytes, tuple[OwnTool, ...]] = {}
        """By their bytes: most lines of a log bring the same."""

    def read(self, number: int, path: Path) -> None:
        """Reads a file. Raises UserError where nothing of it can be read."""
        before, refused, ignored = len(self.steps), list[Refused](), Counter[str]()
        for found in values(path):
            if isinstance(found, Refused):
                refused.append(found)
                continue
            line, value = found
            is_list = isinstance(value, list) and value and not _is_conversation(value)
            for part in value if is_list else [value]:
                try:
                    self.part(part, path, (number, line), refused, ignored)
                except Unreadable as error:
                    refused.append(Refused(path.name, line, str(error)))
        self.refused += refused
        self.left += ignored
        if len(self.steps) == before:
            why = f"no messages: {', '.join(ignored)}" if ignored else "the file is empty"
            if refused:
                why = f"no conversation can be read; line {refused[0].line}: {refused[0].why}"
            raise UserError(f"{path}: {why}")

    def part(
        self,
        value: Json,
        path: Path,
        place: tuple[int, int],
        refused: list[Refused],
        ignored: Counter[str],
    ) -> None:
        """Takes note of the steps of a record."""
        if isinstance(value, list):
            value = {"messages": value}
        found = formats.format_of(value)
        if found is None:
            raise Unreadable(formats.UNKNOWN)
        try:
            records = list(found.records(value)) if found.records else [value]
            if not records:
                raise Unreadable("nothing is in it")
            for record in records:
                try:
                    step = found.read(record)
                except Unreadable as error:
                    refused.append(Refused(path.name, place[1], f"{found.name}: {error}"))
                    continue
                if step is None:
                    ignored[f"{found.name}: {NOTHING}"] += 1
                else:
                    step.log, step.place = path.stem, place
                    self.steps.append(step)
        except Unreadable as error:
            raise Unreadable(f"{found.name}: {error}") from None

    def read_tools(self, given: Json) -> tuple[OwnTool, ...] | None:
        """The tools that a conversation brings, those that are built into a provider left out."""
        if not isinstance(given, list):
            return None
        own = [one for one in given if not _is_built_in(one)]
        if not own:
            return None
        data = json.dumps(own, ensure_ascii=False).encode()
        key = hashlib.sha256(data).digest()
        if key not in self.tools:
            try:
                self.tools[key] = parse_tools(data, "tools", "tools")
            except UserError:
                raise Unreadable("its tools cannot be read (`rbtc lint` says why, of a file)") from None
        return self.tools[key]

    def log(self, paths: Sequence[Path]) -> Log:
        """What was read."""
        found: list[Conversation] = []
        for step in conversations(self.steps, self.left):
            number, line = step.place
            try:
                tools = self.read_tools(step.tools)
            except Unreadable as error:
                self.refused.append(Refused(paths[number].name, line, str(error)))
                continue
            name = step.id or f"{step.log}-{line}"
            found.append(Conversation(name, step.log, line, step.messages, tools))
        self.refused.sort(key=_place)
        if not found:
            said = "; ".join(f"line {one.line}: {one.why}" for one in self.refused[:1])
            said = said or "; ".join(f"{why}: {count:,}" for why, count in self.left.items() if count)
            raise UserError(f"{', '.join(map(str, paths))}: no conversation can be read; {said}")
        return Log(tuple(found), tuple(self.refused), dict(+self.left))


def _place(refused: Refused) -> tuple[str, int]:
    return refused.log, refused.line


def _is_built_in(tool: Json) -> bool:
    if not isinstance(tool, dict) or tool.get("type") in (None, "function", "custom"):
        return False
    return not tool.keys() & {"function", "parameters", "inputSchema", "input_schema"}
