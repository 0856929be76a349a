"""What of a batch is on disk and in files: which requests it has, its lines, what of them can be read."""

import asyncio
import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import msgspec

from ..errors import UserError
from ..io.store import Store
from ..schema import Json
from .address import public
from .errors import Code, LLMError, from_status, one_line
from .messages import Completion, completion, decode, encode
from .refused import refused
from .transport import MAX_REPLY_BYTES, Endpoint, scrub

ROUTE = "/v1/chat/completions"

MAX_REQUESTS = 50_000
MAX_BYTES = 100_000_000
"""Of one file; OpenAI takes so many requests, and 200 MB."""


@dataclass(eq=False, slots=True)
class Waiting:
    key: str
    digest: str
    body: dict[str, Json]
    done: "asyncio.Future[Completion]"

    def fail(self, error: Exception) -> None:
        if not self.done.done():
            self.done.set_exception(error)


class Batch(msgspec.Struct, kw_only=True):
    """A line of the book."""

    url: str
    model: str
    file: str
    """The server's name for the file of requests."""
    batch: str | None = None
    """The server's name for the batch; None: perhaps it was not made any more."""
    status: str | None = None
    """The last one, once it has ended."""
    requests: dict[str, str]
    """A digest of the body, by the request's name."""


def under_way(book: Store) -> list[str]:
    """Batches of a book that have not ended, as far as is known."""
    return [found.batch or f"of file {found.file}" for _, found in read_book(book) if _is_open(found)]


def _is_open(found: Batch) -> bool:
    return found.status is None and bool(found.requests)


def read_book(book: Store) -> Iterator[tuple[int, Batch]]:
    for key in sorted(book.keys()):
        try:
            yield int(key), msgspec.convert(book.get(key), Batch)
        except ValueError:
            raise UserError(f"{book.path} holds other records than batches: move it away") from None


def in_files(waiting: Iterable[Waiting]) -> Iterator[list[Waiting]]:
    """Parts that fit into a file; a request's name is in each of them once."""
    part: list[Waiting] = []
    names: set[str] = set()
    size = 0
    for one in waiting:
        length = len(encode(one.body)) + 200
        if part and (len(part) >= MAX_REQUESTS or size + length > MAX_BYTES or one.key in names):
            yield part
            part, names, size = [], set(), 0
        part.append(one)
        names.add(one.key)
        size += length
    if part:
        yield part


def given_name(found: Json, what: str) -> str:
    """A name that the server gave; it becomes part of an address."""
    if not isinstance(found, str) or not re.fullmatch(r"[\w.:=-]{1,200}", found) or found.strip(".") == "":
        raise LLMError("not_a_completion", f"the server gave the {what} no usable name", 200)
    return found


def counts(found: Json) -> str:
    if not isinstance(found, dict):
        return ""
    total, done, failed = (found.get(name) for name in ("total", "completed", "failed"))
    if not all(isinstance(one, int) for one in (total, done, failed)) or not total:
        return ""
    return f", {done} of {total} answered" + (f", {failed} failed" if failed else "")


def seconds(ended: dict[str, Json]) -> float:
    """From the batch's creation to its end, as the server says; 0 where it does not."""
    begun, over = ended.get("created_at"), ended.get("completed_at")
    return float(max(0, over - begun)) if isinstance(begun, int) and isinstance(over, int) else 0.0


def requests_file(members: Iterable[Waiting]) -> bytes:
    """One line a request, as the server reads them."""
    lines = ({"custom_id": one.key, "method": "POST", "url": ROUTE, "body": one.body} for one in members)
    return b"\n".join(map(encode, lines)) + b"\n"


def result_lines(content: bytes) -> dict[str, Json]:
    """Lines of a result file by the request's name; any other line is left out."""
    found: dict[str, Json] = {}
    for line in content.split(b"\n"):
        if not line.strip() or len(line) > MAX_REPLY_BYTES:
            continue
        try:
            read = decode(line)
        except (ValueError, RecursionError):
            continue  # its request has no result then: a failure with its reason, asked again
        if isinstance(read, dict) and isinstance(read.get("custom_id"), str):
            found.setdefault(read["custom_id"], read)
    return found


def outcome(line: Json, ended: dict[str, Json], asked: Waiting, endpoint: Endpoint) -> Completion:
    """What a line of an ended batch says; None: there is no line.

    Raises LLMError, and UserError where the batch as a whole was refused.
    """

    def failed(code: Code, message: str, status: int | None = None, param: str | None = None) -> LLMError:
        return LLMError(code, scrub(one_line(message), endpoint), status, param=param)

    if line is None:
        if ended["status"] == "failed":
            first = _first_error(ended)
            param = first.get("param")
            why = str(first.get("message") or "the server does not say why")
            found = failed("bad_request", why, 400, param if isinstance(param, str) else None)
            if refused(found, asked.body):
                raise found
            where = public(endpoint.base_url or "")
            raise UserError(f"{where}: batch {ended.get('id')} failed: {found.message}")
        raise failed("server_error", f"the batch is {ended['status']} and has no answer to it")
    response, error = line.get("response"), line.get("error")
    if isinstance(response, dict):
        status, body = response.get("status_code"), response.get("body")
        if isinstance(status, int) and status >= 400:
            said = from_status(status, body, {}, with_tools="tools" in asked.body, now=time.time())
            raise failed(said.code, said.message, status, said.param)
        return completion(body, seconds(ended))
    given = error if isinstance(error, dict) else {}
    words = [str(given[name]) for name in ("code", "message") if given.get(name)]
    raise failed("server_error", ": ".join(words) or "the batch has no answer to it")


def _first_error(ended: dict[str, Json]) -> dict[str, Json]:
    errors = ended.get("errors")
    listed = errors.get("data") if isinstance(errors, dict) else None
    return listed[0] if isinstance(listed, list) and listed and isinstance(listed[0], dict) else {}
