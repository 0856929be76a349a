"""The journal of a door: a JSON line for each exchange, with what was changed in it and what the model said.

It never holds a header, nor a key that a server's error quotes, nor a path of this machine. It is bounded:
long texts are cut, and a full journal takes no more lines. Many doors may share one: each opens and cuts it
under a lock, and after that only appends.
"""

import fcntl
import hashlib
import mmap
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict

import msgspec

from robustbench_tc.credentials import NONE, Secrets, is_long
from robustbench_tc.errors import UserError
from robustbench_tc.option import Tell, silent
from robustbench_tc.schema import Json

from .plan import Plan, Session


def door_id(*server: str) -> str:
    """A door, by what it stands before: its address, or its folder and command."""
    return hashlib.sha256(repr(server).encode()).hexdigest()[:12]


LLM: Literal["llm"] = "llm"
MCP: Literal["mcp"] = "mcp"
LEFT = 499
"""The status of an exchange whose agent left before its reply was whole."""
OTHER_TOOLS = "tools_are_not_the_cases"
"""Why a request did not get its type: it lists no tool of its case."""
MOST_BYTES = 2**28
"""Of a journal."""
MOST_TEXT = 100_000
"""Characters of one text in it."""


class Replaced(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A result that a fault changed, or held up."""

    call: str
    """Its id."""
    tool: str
    """As the agent registered it; a tool that the door put there by its own name."""
    kind: str
    label: str = "after_effect"
    """`after_effect`: the call had been carried out. `before_effect`: it was not, and will not be.
    `no_effect`: the door itself answers the tool. Of a spared result: why it was spared."""
    seconds: float = 0.0
    """How much later the result came."""


class Opened(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a door carried out: stands in the first line that it wrote."""

    bench: str | None = None
    """The plan's dataset: its name on the Hub, or its folder as seen from the journal's."""
    fingerprint: str | None = None
    """Of that dataset, as run folders have it."""
    types: tuple[str, ...] = ()
    defend: tuple[str, ...] = ()


class Called(TypedDict):
    """A call among what a model said."""

    id: str
    name: str
    arguments: str


class Reply(TypedDict, total=False):
    """What a model said."""

    text: str | None
    tool_calls: list[Called] | None
    finish_reason: str | None


class Kept(msgspec.Struct, frozen=True):
    """What the agent never saw of one reply."""

    before: list[Json]
    """Replies that were answered by the door, and its answers."""
    reply: dict[str, Json]
    """The reply as the model wrote it."""
    calls: list[str]
    """Ids of the calls that went out."""
    answers: list[Json]
    """Of the calls that did not."""
    refused: list[int]
    """Which of `before` are replies that a defence answered, and asked on."""


class Asked(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the agent says in a request, in the form of chat messages: cases are made of it."""

    messages: list[Json]
    after: int = 0
    """So many messages, and the reply to them, are in the session's lines before. 0: it begins anew."""
    tools: list[Json] | None = None
    """What the agent offers, where it begins anew."""


class Exchange(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One request of the agent's and its reply; of the MCP door (`door: mcp`) one call and its result."""

    v: Literal[2] = 2
    """The form of the line."""
    door: Literal["llm", "mcp"] = LLM
    """The kind of door that wrote the line."""
    by: str = ""
    """The door: the name of the server that it stands before, or a digest (`door_id`); the same when it is
    started again."""
    ended: float = 0.0
    """When the reply or result went out; seconds since the epoch."""
    began: float | None = None
    """MCP: when the call came."""
    opening: float | None = None
    """MCP: when a client began the session, at this door or at another of the same process, by starting it or
    by `initialize`."""
    lists: list[str] | None = None
    """MCP, in the session's first line of a door, which is no call: names of the server's tools."""
    opened: Opened | None = None
    """In a door's first line alone."""
    session: str
    repeat: Annotated[int, msgspec.Meta(ge=0, le=10**9)]
    number: int = 0
    """MCP: of the call among the session's at this door, from 1."""
    model: str | None = None
    """The model that the request names."""
    type: str = "clean"
    """The type that the session gets."""
    row: str | None = None
    """The row of the dataset that was put to the model."""
    skipped: str | None = None
    """Why this request did not get the type: a reason in a word."""
    turn: Annotated[int, msgspec.Meta(ge=0, le=10**9)] = 0
    """How many replies with calls stand before this reply in what the model saw."""
    replaced: list[Replaced] = []
    spared: list[Replaced] = []
    """Results that a fault was meant for and that the plan does not allow to replace."""
    asked: Asked | None = None
    replies: list[Reply] = []
    """What the model said, in the names that it saw: text, tool_calls, finish_reason; several where the door
    answered calls itself and asked again."""
    held: list[dict[str, Json]] = []
    """Calls that never reached the agent, or (MCP) the server: id, name, answer."""
    executed: int | None = None
    """MCP: how often the server was asked to carry the call out."""
    key: bytes | None = None
    """Of the conversation (`chat.keys_of`), where a reply to it goes out, or went out before, other than the
    model wrote it; of this session and type alone."""
    kept: Kept | None = None
    """What a door that is started again has to put back there; None: nothing."""
    status: int = 200
    error: str | None = None

    @classmethod
    def of_session(cls, session: Session, **said: Any) -> "Exchange":
        """A line of a session."""
        return cls(session=str(session), repeat=session.repeat, **said)


class Journal:
    """Writes lines, beside other doors' journals of the same file."""

    def __init__(
        self,
        path: Path | None,
        plan: Plan | None = None,
        *,
        fingerprint: str | None = None,
    ) -> None:
        """Adds to the file at `path`. None: keeps nothing. `fingerprint`: of the plan's dataset."""
        self._opened: Opened | None = None
        self._file: int | None = None
        self._next, self._looked_at = 0, 0
        """The number of the next session without a name, and how many bytes of the file that comes from."""
        if path is None:
            return
        if plan is not None:
            bench = plan.bench
            if bench is not None and Path(bench).is_dir():
                bench = os.path.relpath(Path(bench).resolve(), path.resolve().parent)
            found = bench and fingerprint
            self._opened = Opened(bench=bench, fingerprint=found, types=plan.types, defend=plan.defend)
        path.parent.mkdir(parents=True, exist_ok=True)
        if os.path.lexists(path) and (path.is_symlink() or not path.is_file()):
            raise UserError(_NOT_OURS.format(path))
        self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        with _locked(self._file):
            _cut_the_last_line(path, self._file)

    def write(self, exchange: Exchange, secrets: Secrets) -> None:
        """One line, whole or not at all, with `***` for what is secret."""
        exchange.error = exchange.error and secrets.blanked(exchange.error)
        if self._file is None:
            return
        exchange.opened, self._opened = self._opened, None
        exchange.ended = exchange.ended or time.time()
        line = encoded(exchange)
        for secret in filter(is_long, secrets.keys):
            line = line.replace(msgspec.json.encode(secret)[1:-1], b"***")
        with _locked(self._file):
            before = os.fstat(self._file).st_size
            written = 0
            if before + len(line) <= MOST_BYTES:
                with suppress(OSError):  # no room: as a line that was written in part
                    written = os.write(self._file, line)
            if written < len(line):
                os.ftruncate(self._file, before)

    def next_session(self, by: str) -> Session:
        """The next session of those without a name; a line of the door takes it, so that no other has it."""
        with nullcontext() if self._file is None else _locked(self._file):
            if self._file is not None and (size := os.fstat(self._file).st_size):
                with mmap.mmap(self._file, 0, access=mmap.ACCESS_READ) as whole:
                    taken = map(int, _TAKEN.findall(whole, self._looked_at))
                    self._next = max([self._next, *(number + 1 for number in taken)])
                self._looked_at = size
            session = Session(NAMELESS, self._next)
            self._next += 1
            self.write(Exchange.of_session(session, door=MCP, by=by), NONE)
        return session

    def close(self) -> None:
        """No line can be written any more."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


NAMELESS = "client"
"""The case of sessions that their client gives no name."""
_TAKEN = re.compile(rb'"session":"%b\.(\d{1,9})"' % NAMELESS.encode())
_NOT_OURS = "{} is there already and not a journal of a door: choose another --journal"


@contextmanager
def _locked(file: int) -> Iterator[None]:
    """Alone with the file, of all doors."""
    fcntl.flock(file, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(file, fcntl.LOCK_UN)


def _cut_the_last_line(path: Path, file: int) -> None:
    """Takes away a last line that was not finished. Raises UserError for a file that is no journal."""
    if os.fstat(file).st_size == 0:
        return
    with mmap.mmap(file, 0, access=mmap.ACCESS_READ) as whole:
        first, end = whole[: whole.find(b"\n") + 1], whole.rfind(b"\n") + 1
    try:
        msgspec.json.decode(first, type=Exchange)
    except (ValueError, RecursionError):
        raise UserError(_NOT_OURS.format(path)) from None
    os.ftruncate(file, end)


def encoded(exchange: Exchange) -> bytes:
    """An exchange as its line: long texts cut, but for what is to be put back; lone surrogates as Python
    writes them."""
    with suppress(UnicodeEncodeError):
        short = msgspec.json.encode(exchange)
        if len(short) <= MOST_TEXT:  # then no text is longer
            return short + b"\n"
    plain = msgspec.to_builtins(exchange)
    line = {name: _cut(value, MOST_BYTES if name == "kept" else MOST_TEXT) for name, value in plain.items()}
    return msgspec.json.encode(line) + b"\n"


def _cut(value: Any, most: int) -> Any:
    if isinstance(value, str):
        end = "… (cut)" if len(value) > most else ""
        return (value[:most] + end).encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {key: _cut(inner, most) for key, inner in value.items()}
    return [_cut(inner, most) for inner in value] if isinstance(value, list | tuple) else value


def kept_lines(path: Path) -> Iterator[Exchange]:
    """The lines that tell what the doors of before kept of their conversations."""
    with path.open("rb") as file:
        for line in file:
            if b'"key":"' in line:
                with suppress(ValueError, RecursionError):  # not ours, or edited: `read_exchanges` says so
                    yield msgspec.json.decode(line, type=Exchange)


def read_exchanges(path: Path, say: Tell = silent) -> list[Exchange]:
    """The exchanges of a journal, in order; `say` is told where the door was killed while it wrote.

    Raises UserError naming the line that is none.
    """
    if not path.is_file():
        raise UserError(f"{path}: there is no journal of a door (`rbtc proxy --journal` writes one)")
    found: list[Exchange] = []
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                if line.strip():
                    found.append(msgspec.json.decode(line, type=Exchange))
            except (ValueError, RecursionError) as error:
                if line.endswith(b"\n") or number == 1:
                    raise UserError(f"{path}:{number}: not a line of a door's journal: {error}") from None
                say(f"{path}: its last line is cut off, because the door was killed; that line is ignored")
    if not found:
        raise UserError(f"{path}: this journal holds no exchange yet: run your agent through the door first")
    return found
