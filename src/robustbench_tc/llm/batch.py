"""The Batch API of OpenAI-compatible servers: a file of requests in, a file of answers out, within 24 hours.

What waits together becomes one batch. Which requests are in which batch is on disk before a batch is made
(`book`, a store), so a killed run finds its batches again and pays for no answer twice.
"""

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
from typing import Any, TypeVar

import msgspec

from ..errors import UserError
from ..io.store import Store
from ..schema import Json
from .address import public
from .batch_book import (
    ROUTE,
    Batch,
    Waiting,
    counts,
    given_name,
    in_files,
    outcome,
    read_book,
    requests_file,
    result_lines,
)
from .errors import LLMError, one_line
from .messages import Completion, encode
from .transport import Endpoint, HttpTransport, hide

T = TypeVar("T")

asking: ContextVar[str] = ContextVar("asking")
"""Set around `send`: a name for the request that is the same in every session, and no other request's."""

QUIET_S = 2.0
"""A batch is made when for so long nobody else has asked."""

FIRST_POLL_S, POLL_S = 1.0, 30.0
"""Seconds between two looks at a batch: doubled from one to the other."""

PATIENCE, BACKOFF_S = 8, 1.0
"""Attempts at one call, and seconds between the first two of them, doubled each time up to a minute."""

TELL_S = 60.0
"""Seconds between two lines about a batch whose state has not changed."""

ENDED = ("completed", "failed", "expired", "cancelled")


class BatchTransport:
    """One address with a Batch API as a `Transport`. Every `send` has `asking` set.

    `note` gets a line when the state of a batch changes, and `made` the names of the batches that were
    worked with. What a batch has no answer to is an LLMError; what ends a batch as a whole a UserError.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        book: Store,
        *,
        timeout_s: float = 300.0,
        note: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.made: list[str] = []
        self._endpoint, self._book, self._note = endpoint, book, note
        self._http = HttpTransport(endpoint, timeout_s)
        self._timeout_s = max(timeout_s, 600.0)
        self._waiting: list[Waiting] = []
        self._arrived = 0
        self._collector: asyncio.Task[None] | None = None
        self._under_way: set[asyncio.Task[None]] = set()
        self._batches = {number: found for number, found in read_book(book) if found.url == endpoint.base_url}
        self._next = 1 + max((int(number) for number in book.keys()), default=0)  # noqa: SIM118
        self._served: set[tuple[int, str]] = set()

    async def served_models(self) -> list[str]:
        return await self._http.served_models()

    async def close(self) -> None:
        """Stops watching; batches go on at the server, and the next session finds them."""
        tasks = [*self._under_way, *((self._collector,) if self._collector else ())]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._http.close()

    async def send(self, body: dict[str, Json]) -> Completion:
        """The answer, when the batch that the request goes into has ended. Raises LLMError."""
        done: asyncio.Future[Completion] = asyncio.get_running_loop().create_future()
        digest = hashlib.sha256(encode(body)).hexdigest()[:16]
        self._waiting.append(Waiting(asking.get(), digest, body, done))
        self._arrived += 1
        if self._collector is None or self._collector.done():
            self._collector = asyncio.create_task(self._collect())
        return await done

    async def _collect(self) -> None:
        """Deals out what waits: to the batch that has it already, the rest to new ones."""
        while self._waiting:
            seen = -1
            while seen != self._arrived:
                seen = self._arrived
                await asyncio.sleep(QUIET_S)
            todo, self._waiting = self._waiting, []
            there: dict[int, list[Waiting]] = {}
            fresh = []
            for one in todo:
                number = self._find_batch(one)
                if number is None:
                    fresh.append(one)
                else:
                    there.setdefault(number, []).append(one)
            for number, members in there.items():
                self._start(self._go_on(number, members), members)
            for members in in_files(fresh):
                self._start(self._begin(members), members)

    def _start(self, work: Awaitable[None], members: Sequence[Waiting]) -> None:
        async def guarded() -> None:
            try:
                await work
            except LLMError as error:
                failed(UserError(f"{self._where}: {error.message}; the same command goes on"))
            except Exception as error:  # whatever it is, nobody is left waiting
                failed(error)

        def failed(error: Exception) -> None:
            for one in members:
                one.fail(error)

        task = asyncio.create_task(guarded())
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    def _find_batch(self, one: Waiting) -> int | None:
        """The last batch that the very request is in and that has not served it in this session."""
        for number in reversed(self._batches):
            held = self._batches[number].requests.get(one.key)
            if held == one.digest and (number, one.key) not in self._served:
                return number
        return None

    async def _begin(self, members: Sequence[Waiting]) -> None:
        """Uploads the requests, makes their batch and waits for it."""
        data = requests_file(members)

        async def upload(client: Any) -> str:
            found = await client.files.create(file=("requests.jsonl", data), purpose="batch")
            return given_name(getattr(found, "id", None), "file")

        file = await self._patiently(upload, "no Batch API")
        number, self._next = self._next, self._next + 1
        self._batches[number] = Batch(
            url=self._endpoint.base_url or "",
            model=self._endpoint.model,
            file=file,
            requests={one.key: one.digest for one in members},
        )
        await self._save(number)
        await self._make(number, look_first=False)
        await self._finish(number, members, resumed=False)

    async def _go_on(self, number: int, members: Sequence[Waiting]) -> None:
        """Waits for a batch of an earlier session."""
        was_over = self._batches[number].status is not None
        if self._batches[number].batch is None:
            await self._make(number, look_first=True)
        self._note(f"batch {self._batches[number].batch}: goes on, {len(members)} requests wait for it")
        await self._finish(number, members, resumed=was_over)

    async def _make(self, number: int, *, look_first: bool) -> None:
        """Makes the batch of an uploaded file, unless the server has it already."""
        one = self._batches[number]
        body = {"input_file_id": one.file, "endpoint": ROUTE, "completion_window": "24h"}
        looks = look_first

        async def make(client: Any) -> str:
            nonlocal looks
            if looks and (found := await self._made_already(client, one.file)):
                return found
            looks = True  # after a lost reply it may be there
            return given_name((await _json(client.post, "/batches", body=body)).get("id"), "batch")

        one.batch = await self._patiently(make, "no Batch API")
        await self._save(number)

    async def _made_already(self, client: Any, file: str) -> str | None:
        listed = (await _json(client.get, "/batches?limit=100")).get("data")
        for one in listed if isinstance(listed, list) else ():
            if isinstance(one, dict) and one.get("input_file_id") == file:
                return given_name(one.get("id"), "batch")
        return None

    async def _finish(self, number: int, members: Sequence[Waiting], *, resumed: bool) -> None:
        """Waits for the batch and hands every member its line.

        `resumed`: it had ended in an earlier session, which recorded its failures: they are asked again.
        """
        one = self._batches[number]
        name = one.batch or ""
        if name not in self.made:
            self.made.append(name)
        ended = await self._ended(name)
        if ended is None:
            self._note(f"batch {name}: the server does not know it any more: its requests are sent again")
            one.requests = {}
            await self._save(number)
            self._ask_again(members)
            return
        lines: dict[str, Json] = {}
        for field in ("output_file_id", "error_file_id"):
            if ended.get(field) is not None:
                lines |= {k: v for k, v in (await self._lines(ended[field])).items() if k not in lines}
        one.status = str(ended["status"])
        await self._save(number)
        again = []
        for member in members:
            self._served.add((number, member.key))
            try:
                done = outcome(lines.get(member.key), ended, member, self._endpoint)
            except LLMError as error:
                later = any(n > number and member.key in b.requests for n, b in self._batches.items())
                if resumed and not later:
                    again.append(member)
                else:
                    member.fail(error)
            except UserError as error:
                member.fail(error)
            else:
                if not member.done.done():
                    member.done.set_result(done)
        self._ask_again(again)

    def _ask_again(self, members: Sequence[Waiting]) -> None:
        if not members:
            return
        self._waiting += members
        self._arrived += len(members)
        if self._collector is None or self._collector.done():
            self._collector = asyncio.create_task(self._collect())

    async def _ended(self, name: str) -> dict[str, Json] | None:
        """The batch when it has ended; None where the server has none of that name."""
        wait, said, said_at, was = FIRST_POLL_S, "", 0.0, ""

        async def look(client: Any) -> dict[str, Json]:
            return await _json(client.get, f"/batches/{name}")

        while True:
            try:
                found = await self._patiently(look, None)
            except LLMError as error:
                if error.status == 404:
                    return None
                raise
            status = found.get("status")
            if not isinstance(status, str):
                raise LLMError("not_a_completion", f"batch {name} has no status")
            line = f"batch {name}: {one_line(status, 40)}{counts(found.get('request_counts'))}"
            now = time.monotonic()
            if line != said and (status != was or now - said_at >= TELL_S):
                self._note(line)
                said, said_at, was = line, now, status
            if status in ENDED:
                return found
            await asyncio.sleep(wait)
            wait = min(2 * wait, POLL_S)

    async def _lines(self, file: Json) -> dict[str, Json]:
        """Lines of a result file by the request's name; any other line is left out."""
        name = given_name(file, "file")

        async def fetch(client: Any) -> bytes:
            import httpx2

            reply = await client.get(
                f"/files/{name}/content",
                cast_to=httpx2.Response,
                options={"follow_redirects": True},  # some keep files elsewhere
            )
            return bytes(reply.content)

        return result_lines(hide(await self._patiently(fetch, None), self._endpoint))

    async def _save(self, number: int) -> None:
        await self._book.put(f"{number:06d}", msgspec.to_builtins(self._batches[number]))

    async def _patiently(self, call: Callable[[Any], Awaitable[T]], missing: str | None) -> T:
        """A call that is made again while it may yet succeed. Raises LLMError.

        `missing`: what a 404 shows, if it is not about something that may have gone; then a UserError.
        """
        for attempt in range(PATIENCE):
            try:
                return await self._http.call(call, self._timeout_s)
            except LLMError as error:
                if missing and error.status in (404, 405, 501):
                    raise UserError(
                        f"{self._where} has {missing} ({error.message}): leave --batch out"
                    ) from None
                if error.code == "auth":
                    raise UserError(
                        f"{self._where} refuses the key ({error.message}): check {self._endpoint.key_name}"
                    ) from None
                if error.unreachable and not self.made:
                    raise UserError(
                        f"nothing answers at {self._where} ({error.message}): "
                        "start it or name another base URL"
                    ) from None
                if not error.retryable or attempt == PATIENCE - 1:
                    raise
                wait = BACKOFF_S * 2.0**attempt if error.retry_after_s is None else error.retry_after_s
            await asyncio.sleep(min(wait, 60.0))
        raise AssertionError("unreachable")

    @property
    def _where(self) -> str:
        return public(self._endpoint.base_url or "")


async def _json(method: Callable[..., Awaitable[Any]], path: str, **options: Any) -> dict[str, Json]:
    """The object that the server answers with. Raises LLMError."""
    import httpx2

    reply = await method(path, cast_to=httpx2.Response, **options)
    try:
        found = msgspec.json.decode(reply.content)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise LLMError("not_a_completion", f"{path.partition('?')[0]}: no JSON object", 200, True)
    return found
