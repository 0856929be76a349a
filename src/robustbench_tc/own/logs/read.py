"""A log file as a `Log`."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from robustbench_tc.errors import UserError
from robustbench_tc.own.cases import OwnTool
from robustbench_tc.own.files import (
    BYTES,
    HOOKS,
    Unreadable,
    after_blanks,
    check_depth,
    check_surrogates,
    decode,
    size_of,
)
from robustbench_tc.own.tools import parse_tools
from robustbench_tc.schema import Json

from . import spans
from .chat import Conversation, Log, Message, Refused, is_message, messages_of, read_messages

LINE = BYTES
"""Bytes of a line."""
FILE = 32 * BYTES
"""Bytes of a log."""
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
        if size <= LINE and not _is_json(file.readline().removeprefix(b"\xef\xbb\xbf")):
            file.seek(0)
            found = _texts(file.read())
            if found is not None:
                yield from found
                return
        file.seek(0)
        yield from _lines(file)


def _is_json(line: bytes) -> bool:
    try:
        decode(line)
    except Unreadable:
        return False
    return True


def _lines(file: Any) -> Iterator[tuple[int, Json] | Refused]:
    number = 0
    while line := file.readline(LINE + 1):
        number += 1
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
        if len(line) > LINE and not line.endswith(b"\n"):
            size = len(line)
            while rest := file.readline(LINE):  # passed over, never held in one piece
                size += len(rest)
                if rest.endswith(b"\n"):
                    break
            yield Refused(number, f"{size:,} bytes: at most {LINE:,} a line are read")
            continue
        if not line.strip():
            continue
        try:
            yield number, decode(line)
        except Unreadable as error:
            yield Refused(number, str(error))


def _texts(data: bytes) -> list[tuple[int, Json]] | None:
    """The values of a file that is not JSON lines; None where it is not JSON from beginning to end."""
    try:
        text = data.decode("utf-8-sig")
        check_depth(data)
        found, is_list = _scan(text)
        check_surrogates(text, [value for _, value in found])
    except (ValueError, RecursionError):
        return None
    if is_list and found and all(is_message(value) for _, value in found):
        return [(found[0][0], [value for _, value in found])]
    return found


def _scan(text: str) -> tuple[list[tuple[int, Json]], bool]:
    """The values with their lines, and whether they are the entries of one list. Raises ValueError."""
    decoder = json.JSONDecoder(**HOOKS)
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


UNKNOWN = "neither chat messages nor spans"


def read_log(path: Path) -> Log:
    """The conversations of a log: JSON lines of OpenAI's chat messages, or OpenTelemetry's GenAI spans.

    A line that cannot be read is refused by its number, the rest is read. Raises UserError where nothing is.
    """
    reader = _Reader(path)
    for found in values(path):
        if isinstance(found, Refused):
            reader.refused.append(found)
        else:
            reader.take(*found)
    return reader.log()


class _Reader:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.conversations: list[Conversation] = []
        self.refused: list[Refused] = []
        self.spans: list[spans.Span] = []
        self.ignored = 0
        self.tools: dict[bytes, tuple[OwnTool, ...]] = {}
        """By their bytes: most lines of a log bring the same."""

    def take(self, line: int, value: Json) -> None:
        """Reads what stands in a line: a conversation, spans, or a list of either."""
        parts = value if isinstance(value, list) and not all(map(is_message, value)) else [value]
        for part in parts or [None]:
            try:
                self.part(line, part)
            except Unreadable as error:
                self.refused.append(Refused(line, str(error)))

    def part(self, line: int, value: Json) -> None:
        if isinstance(value, list) and value:
            self.add("", line, read_messages(value), None)
            return
        if not isinstance(value, dict):
            raise Unreadable(UNKNOWN)
        messages = messages_of(value)
        if messages is not None:
            given = value.get("id")
            name = str(given) if isinstance(given, str | int) and not isinstance(given, bool) else ""
            self.add(name, line, messages, self.read_tools(value.get("tools")))
            return
        found = spans.spans_of(value)
        if found is None:
            raise Unreadable(UNKNOWN)
        for one in found:
            try:
                span = spans.read_span(one, line)
            except Unreadable as error:
                self.refused.append(Refused(line, f"a span: {error}"))
                continue
            if span is None:
                self.ignored += 1
            else:
                self.spans.append(span)

    def add(
        self, name: str, line: int, messages: tuple[Message, ...], tools: tuple[OwnTool, ...] | None
    ) -> None:
        self.conversations.append(Conversation(name or f"{self.path.stem}-{line}", line, messages, tools))

    def read_tools(self, given: Json) -> tuple[OwnTool, ...] | None:
        """The tools that a line brings, those that are built into a provider left out."""
        if not isinstance(given, list):
            return None
        own = [one for one in given if not _is_built_in(one)]
        if not own:
            return None
        data = json.dumps(own, ensure_ascii=False).encode()
        key = hashlib.sha256(data).digest()
        if key not in self.tools:
            try:
                self.tools[key] = parse_tools(data, self.path.stem, "tools")
            except UserError:
                raise Unreadable("its tools cannot be read (`rbtc lint` says why, of a file)") from None
        return self.tools[key]

    def log(self) -> Log:
        spoken, left = spans.conversations(self.spans)
        for one in spoken:
            try:
                tools = self.read_tools(one.tools)
            except Unreadable as error:
                self.refused.append(Refused(one.line, str(error)))
                continue
            self.add(one.id, one.line, one.messages, tools)
        self.conversations.sort(key=lambda one: one.line)
        self.refused.sort(key=lambda one: one.line)
        ignored = self.ignored + left
        if not self.conversations:
            raise UserError(f"{self.path}: {self.nothing(ignored)}")
        return Log(tuple(self.conversations), tuple(self.refused), ignored)

    def nothing(self, ignored: int) -> str:
        """Why there is no conversation in the file."""
        if self.refused:
            first = self.refused[0]
            return f"no conversation can be read; line {first.line}: {first.why}"
        if ignored:
            return f"none of its {ignored:,} spans holds GenAI messages; record content in them"
        return "the file is empty"


def _is_built_in(tool: Json) -> bool:
    if not isinstance(tool, dict) or tool.get("type") in (None, "function", "custom"):
        return False
    return not tool.keys() & {"function", "parameters", "inputSchema", "input_schema"}
