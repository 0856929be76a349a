"""A live run's journal as it was uploaded: read with bounds, and written again as it is stored.

Nothing is evaluated, and nothing of it is kept that is not part of an episode of the dataset. The keys of
lines are not believed: they follow from the row, the settings and the place in the episode.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

from robustbench_tc.eval.live import prompts
from robustbench_tc.eval.live.conversation import MAX_ARGUMENTS, MAX_TEXT
from robustbench_tc.eval.live.episode import MAX_NAME, Place, Results
from robustbench_tc.eval.record import Answer, Settings
from robustbench_tc.live import LiveRow
from robustbench_tc.schema import Json

from .limits import Limits
from .names import shown
from .reading import NativeCall
from .refusal import Refused

BEGINS = b'{"key":"'
"""How every line begins."""

MAKE = "upload the journal.jsonl of a run folder of `rbtc live run`, as it is"

_CUT_NOTE = 100
"""Characters that the harness adds to a text that it cut."""

_MOST = 2**53

Line = TypeVar("Line", Answer, Results)


class _Head(msgspec.Struct):
    key: str
    status: str = ""


class _Answer(Answer, frozen=True, kw_only=True):
    tool_calls: list[NativeCall] | None = None
    logprobs: msgspec.Raw = msgspec.Raw(b"null")
    """Never looked into."""


class Uploaded(NamedTuple):
    """A line as it came."""

    number: int
    text: bytes


def is_journal(path: Path) -> bool:
    """Whether an upload is a journal, by its first bytes."""
    with path.open("rb") as file:
        return file.read(len(BEGINS)) == BEGINS


def read(path: Path, episodes: int, limits: Limits) -> dict[str, Uploaded]:
    """The lines by key, of a journal of at most so many episodes. Raises Refused."""
    size, most = path.stat().st_size, episodes * limits.live_lines
    if size > limits.file_bytes:
        raise Refused("size", f"the journal has {size:,} bytes: at most {limits.file_bytes:,} are read")
    longest = 8 * limits.reply_chars
    found: dict[str, Uploaded] = {}
    failed: set[str] = set()
    with path.open("rb") as file:
        for number in range(1, most + 2):
            line = file.readline(longest + 1)
            if not line:
                return found
            if len(line) > longest:
                raise Refused("size", f"line {number} of the journal has more than {longest:,} bytes")
            if not line.endswith(b"\n"):
                raise Refused(
                    "format", f"the journal is cut off in line {number}: start the same `rbtc live run` again"
                )
            head = _decoded(line, _Head, number)
            if head.key in found and head.key not in failed:
                raise Refused("ids", f"line {number} of the journal is there twice: {MAKE}")
            found[head.key] = Uploaded(number, line)
            (failed.add if head.status == "request_error" else failed.discard)(head.key)
    raise Refused(
        "size", f"the journal has more than {most:,} lines, which is as many as {episodes:,} episodes take"
    )


def _decoded(line: bytes, kind: type[Any], number: int) -> Any:
    try:
        return msgspec.json.decode(line, type=kind)
    except RecursionError:
        raise Refused("format", f"line {number} of the journal is nested too deeply") from None
    except (ValueError, OverflowError) as error:
        raise Refused(
            "format", f"line {number} is not of a live run's journal ({shown(str(error), 160)}): {MAKE}"
        ) from None


class Journal:
    """Lines in memory, as `eval.live` reads a journal; notes which were asked for."""

    def __init__(self, lines: Mapping[str, dict[str, Json]]) -> None:
        self._lines = lines
        self.used: set[str] = set()

    def get(self, key: str) -> dict[str, Json] | None:
        """The record under `key`."""
        found = self._lines.get(key)
        if found is not None:
            self.used.add(key)
        return found


class Written(NamedTuple):
    """A journal as it is stored: the dataset's episodes in order, keys of the settings that are stored."""

    lines: dict[str, dict[str, Json]]
    unanswered: int
    """Episodes that ended in a request error: these have to be asked again."""

    @property
    def calls(self) -> int:
        """Calls that were made."""
        return sum(len(record.get("results", ())) for record in self.lines.values())

    def bytes(self) -> bytes:
        """The file."""
        return b"".join(
            msgspec.json.encode({"key": key, **record}) + b"\n" for key, record in self.lines.items()
        )

    def digest(self) -> str:
        """sha256 of the file."""
        return sha256(self.bytes()).hexdigest()


def load(path: Path) -> dict[str, dict[str, Json]]:
    """The lines of a stored journal by key. Raises ValueError."""
    found = {}
    for line in path.read_bytes().splitlines():
        record = msgspec.json.decode(line, type=dict[str, Any])
        key = record.pop("key", None)
        if not isinstance(key, str):
            raise ValueError("a line of the journal has no key")
        found[key] = record
    return found


def rewritten(
    found: dict[str, Uploaded], rows: Sequence[LiveRow], said: Settings, stored: Settings, limits: Limits
) -> Written:
    """The lines of the dataset's episodes, under the keys of the settings `stored`. Takes what it uses out of
    `found`. Raises Refused for a line that is not what it stands for, and for lines that are nobody's."""
    lines: dict[str, dict[str, Json]] = {}
    unanswered = 0
    for row in rows:
        for repeat in range(said.repeat):
            place = Place.of(row, said, repeat)
            mine = Place(row, stored, repeat, place.hash)
            for key, record in _episode(place, mine, found, limits):
                lines[key] = record
                unanswered += record.get("status") == "request_error"
    if found:
        first = min(found.values())
        raise Refused(
            "ids",
            f"{len(found):,} lines of the journal are of no episode of the dataset under the run's settings "
            f"(first line {first.number}): {MAKE}, with its own live_run.json",
        )
    return Written(lines, unanswered)


def _episode(
    place: Place, mine: Place, found: dict[str, Uploaded], limits: Limits
) -> Iterator[tuple[str, dict[str, Json]]]:
    last = 0
    number = 1
    while True:
        further = 0
        while (line := found.pop(place.key(number, further), None)) is not None:
            last = _behind(line, last, place)
            answer = _answer(line, limits)
            _refuse_other(line, place, (answer.number, answer.further), (number, further), answer)
            yield mine.key(number, further), msgspec.to_builtins(answer)
            further += 1
        if further == 0:
            return
        results_key = f"{place.key(number)}:results"
        if (line := found.pop(results_key, None)) is not None:
            last = _behind(line, last, place)
            results: Results = _decoded(line.text, Results, line.number)
            _refuse_other(line, place, results.number, number, results)
            record = msgspec.to_builtins(results)
            _is_text(record, line)
            yield f"{mine.key(number)}:results", record
        number += 1


def _behind(line: Uploaded, last: int, place: Place) -> int:
    """The line's number. Raises Refused for one that was written before what it follows from."""
    if line.number < last:
        raise Refused(
            "journal",
            f"{place.row.id}: line {line.number} of the journal stands before what led to it: {MAKE}",
        )
    return line.number


def _refuse_other(line: Uploaded, place: Place, at: object, wanted: object, said: Answer | Results) -> None:
    if (said.id, said.repeat, at) != (place.row.id, place.repeat, wanted):
        raise Refused(
            "ids",
            f"line {line.number} of the journal names {shown(said.id, 80)}, and its key is of "
            f"{place.row.id}: {MAKE}",
        )


def _answer(line: Uploaded, limits: Limits) -> Answer:
    """An answer as the harness keeps it. Raises Refused for one that it would have cut."""
    said: _Answer = _decoded(line.text, _Answer, line.number)
    where = f"line {line.number} of the journal"
    calls = said.tool_calls
    if calls is not None and len(calls) > prompts.MAX_CALLS + 1:
        raise Refused("size", f"{where} has {len(calls):,} calls, at most {prompts.MAX_CALLS + 1} are kept")
    bounds = [
        *((text, MAX_TEXT + _CUT_NOTE) for text in (said.text, said.reasoning)),
        *((text, limits.field_chars) for text in (said.error, said.finish_reason, said.served_model)),
        *((text, MAX_NAME) for call in calls or () for text in (call.name, call.id)),
        *((call.arguments, MAX_ARGUMENTS + 1) for call in calls or ()),
    ]
    for text, bound in bounds:
        if text is not None and len(text) > bound:
            raise Refused("size", f"{where}: {len(text):,} characters, at most {bound:,} are kept")
    for value in (said.prompt_tokens, said.completion_tokens, said.latency_s, said.retries):
        if value is not None and not (math.isfinite(value) and 0 <= value <= _MOST):
            raise Refused("format", f"{where}: {shown(str(value), 30)} is no number of tokens or seconds")
    made = Answer(
        **{
            name: getattr(said, name)
            for name in Answer.__struct_fields__
            if name not in ("tool_calls", "logprobs", "served_model", "has_call", "reused")
        },
        tool_calls=None
        if calls is None
        else [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in calls],
    )
    _is_text(msgspec.to_builtins(made), line)
    return made


def _is_text(record: object, line: Uploaded) -> None:
    """Raises Refused for what cannot be written again: half a surrogate pair, a number that is none."""
    try:
        msgspec.json.encode(record).decode()
    except (ValueError, TypeError, RecursionError, OverflowError):
        raise Refused(
            "format", f"line {line.number} of the journal holds what is not text (half a surrogate pair?)"
        ) from None
