"""The one client for every model call: generation, judging, inference, over any OpenAI-compatible endpoint.

    async with Client(parse_endpoint("qwen3-8b@http://localhost:8000/v1"), store=Store(path)) as client:
        done = await client.complete(ChatRequest(messages=[{"role": "user", "content": "…"}]))

A completion is data (`Completion`), and so is its absence (`LLMError`, errors.py). With a `Store`
(llm/store.py) an answer is on disk before it is returned, and no request is sent twice, also across runs.
Keys appear in no error, log or store: reply bytes and error texts are scrubbed where they come in.
"""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Self

import msgspec

from ..errors import UserError
from ..schema import Json
from .endpoint import Endpoint, public
from .errors import (
    LLMError,
    most_tokens,
    refused,
    refused_value,
    takes_no_system,
    takes_no_tools,
)
from .messages import ChatRequest, Completion
from .store import Store
from .transport import HttpTransport, Transport


class Stats(msgspec.Struct):
    """What a client did so far."""

    requests: int = 0
    """Requests sent, retries included."""
    answered: int = 0
    replayed: int = 0
    retries: int = 0
    errors: dict[str, int] = msgspec.field(default_factory=Counter)
    """Requests that ended without a completion, by code."""
    retried: dict[str, int] = msgspec.field(default_factory=Counter)
    """Attempts that failed and were made again, by code."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0
    """In the currency of the prices given; 0 without prices."""
    left_out: list[str] = msgspec.field(default_factory=list)
    """Parameters that the endpoint does not take and that were therefore not sent."""


class Client:
    """Asks one endpoint, at most `concurrency` requests at a time. Use it as an async context manager.

    408, 409, 429, 5xx, time-outs, lost connections and replies that are not a completion are asked again, up
    to `max_retries` times: after what Retry-After says, else after `backoff_s` doubled each time, never more
    than `max_wait_s`. `timeout_s` bounds each attempt as a whole.

    `max_requests` (retries count) and `max_cost` (with `price`: per million prompt and completion tokens)
    stop the client with an LLMError `budget`; up to `concurrency` requests under way may still end. A first
    request that shows that nothing will work (nobody there, wrong key, unknown model) raises a UserError.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        store: Store | None = None,
        concurrency: int = 16,
        timeout_s: float = 300.0,
        max_retries: int = 6,
        backoff_s: float = 0.5,
        max_wait_s: float = 60.0,
        max_requests: int | None = None,
        max_cost: float | None = None,
        price: tuple[float, float] | None = None,
        progress: Callable[[Stats], None] | None = None,
        system_as_user: bool = False,
        wire: Transport | None = None,
    ) -> None:
        """`system_as_user`: no system message is sent, as where the server refuses them. `wire`: another way
        to the model than a connection of the client's own; the client closes it. The endpoint then only names
        the model, and is taken as it is."""
        if concurrency < 1:
            raise UserError(f"concurrency {concurrency}: at least 1 request has to be under way")
        if max_cost is not None and price is None:
            raise UserError("a cost limit needs the prices per million prompt and completion tokens")
        self.endpoint = endpoint.resolved() if wire is None else endpoint
        self.store = store
        self.stats = Stats()
        self._max_retries = max_retries
        self._backoff_s = backoff_s
        self._max_wait_s = max_wait_s
        self._max_requests = max_requests
        self._max_cost = max_cost
        self._price = price
        self._progress = progress
        self._slots = asyncio.Semaphore(concurrency)
        self._under_way: dict[str, asyncio.Task[Completion]] = {}
        self._reached = False
        self._usage_missing = False
        self._hopeless: UserError | None = None
        self._jitter = random.Random(0)
        self._left_out = {"temperature", "max_tokens"} if endpoint.is_reasoning else set[str]()
        self._most_tokens: int | None = None
        self._system_as_user = system_as_user
        if system_as_user:
            self.stats.left_out.append(_NO_SYSTEM)
        self._wire: Transport = wire or HttpTransport(self.endpoint, timeout_s)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Gives up what is under way and closes the connections. The store stays open: it is the caller's."""
        tasks = list(self._under_way.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._wire.close()

    async def served_models(self) -> list[str]:
        """The models that the server lists within 10 seconds, sorted; none where it has no list."""
        try:
            async with asyncio.timeout(10.0):
                return sorted(await self._wire.served_models())
        except Exception:  # no server, or a list of something else: the list only completes a message
            return []

    async def complete(self, request: ChatRequest) -> Completion:
        """The model's answer; from the store when it is there, and kept there before it is returned.

        Raises LLMError when there is none, and UserError where a person has to fix something first.
        """
        if self.store is None:
            return await self._counted(request)
        key = request.key(self.endpoint.model)
        if (kept := self.store.get(key)) is not None:
            self.stats.replayed += 1
            self._tell()
            return _replayed(kept, self.store)
        task = self._under_way.get(key)
        if task is None:  # the same question asked twice at once is sent once
            task = asyncio.create_task(self._counted(request, key))
            self._under_way[key] = task
            task.add_done_callback(partial(self._forget, key))
        return await asyncio.shield(task)

    def _forget(self, key: str, task: asyncio.Task[Completion]) -> None:
        self._under_way.pop(key, None)
        if not task.cancelled():
            task.exception()  # seen, also when the caller is gone

    async def _counted(self, request: ChatRequest, key: str = "") -> Completion:
        """The answer, counted, and kept under the key."""
        try:
            done = await self._ask(request)
            if self.store is not None:
                record = {
                    "model": self.endpoint.model,
                    "request": msgspec.to_builtins(request),
                    "completion": msgspec.to_builtins(done),
                    "time": time.time(),
                }
                await self.store.put(key, record)
        except LLMError as error:
            self.stats.errors[error.code] += 1
            self._tell()
            raise
        self.stats.answered += 1
        self._tell()
        return done

    def _tell(self) -> None:
        if self._progress is not None:
            self._progress(self.stats)

    async def _ask(self, request: ChatRequest) -> Completion:
        """Asks until there is an answer or no sense in asking again."""
        retries = 0
        async with self._slots:
            if self._hopeless is not None:  # said once by the first; the others do not even ask
                raise UserError(str(self._hopeless))
            while True:
                body = self._body(request)
                try:
                    return msgspec.structs.replace(await self._attempt(body), retries=retries)
                except LLMError as error:
                    if (name := refused(error, body)) is not None:  # it need not be sent, and never is again
                        self._left_out.add(name)
                        continue
                    if self._learns(error, body):
                        continue
                    last = not error.retryable or retries >= self._max_retries
                    if blocked := await self._what_to_fix(error, body, last):
                        self._hopeless = blocked
                        raise blocked from None
                    if last:
                        raise
                    wait = self._wait_s(error, retries)
                    self.stats.retried[error.code] += 1
                retries += 1
                self.stats.retries += 1
                await asyncio.sleep(wait)

    def _learns(self, error: LLMError, body: dict[str, Json]) -> bool:
        """Whether the refusal says how the request has to be sent, now and from now on."""
        most = most_tokens(error)
        if most and any(isinstance(body.get(name), int) and body[name] > most for name in _LIMITS):
            self._most_tokens, note = most, f"max_tokens above {most}"
        elif takes_no_system(error) and any(one.get("role") == "system" for one in body["messages"]):
            self._system_as_user, note = True, _NO_SYSTEM
        else:
            return False
        if note not in self.stats.left_out:
            self.stats.left_out.append(note)
        return True

    def _wait_s(self, error: LLMError, retries: int) -> float:
        if error.retry_after_s is not None:
            return min(error.retry_after_s, self._max_wait_s)
        return min(self._backoff_s * 2.0**retries, self._max_wait_s) * self._jitter.uniform(0.75, 1.0)

    def _body(self, request: ChatRequest) -> dict[str, Json]:
        """The JSON to send: parameters that the endpoint does not take are left out."""
        params = dict(request.params)
        params |= params.pop("extra_body", None) or {}
        if "max_tokens" in self._left_out and "max_tokens" in params:
            params["max_completion_tokens"] = params.pop("max_tokens")
        for name in self._left_out & params.keys():
            del params[name]
            if name not in self.stats.left_out:
                self.stats.left_out.append(name)
        for name in _LIMITS if self._most_tokens is not None else ():
            if isinstance(params.get(name), int):
                params[name] = min(params[name], self._most_tokens)
        messages = list(request.messages)
        if self._system_as_user:
            messages = system_as_user(messages)
        body: dict[str, Json] = {"model": self.endpoint.model, "messages": messages}
        if request.tools is not None:
            body["tools"] = list(request.tools)
        return {**body, **params}

    async def _attempt(self, body: dict[str, Json]) -> Completion:
        """Sends one request. Raises LLMError."""
        self._within_budget()
        self.stats.requests += 1
        done = await self._wire.send(body)
        self._reached = True
        self._pay(done)
        return done

    def _within_budget(self) -> None:
        if self._max_requests is not None and self.stats.requests >= self._max_requests:
            raise LLMError(
                "budget", f"{self.stats.requests} requests sent, the limit is {self._max_requests}"
            )
        if self._max_cost is None:
            return
        if self._usage_missing:
            raise LLMError("budget", "the endpoint reports no token usage, so no cost limit can be kept")
        if self.stats.cost >= self._max_cost:
            raise LLMError("budget", f"{self.stats.cost:.4f} spent, the limit is {self._max_cost:g}")

    def _pay(self, done: Completion) -> None:
        asked, said = done.prompt_tokens, done.completion_tokens
        self._usage_missing = self._usage_missing or asked is None or said is None
        self.stats.prompt_tokens += asked or 0
        self.stats.completion_tokens += said or 0
        if self._price is not None:
            self.stats.cost += ((asked or 0) * self._price[0] + (said or 0) * self._price[1]) / 1e6

    async def _what_to_fix(self, error: LLMError, body: dict[str, Json], last: bool) -> UserError | None:
        """What a person has to fix first, when asking on could only repeat the error.

        `last`: this request is not going to be sent again.
        """
        if self._reached:
            return None
        if takes_no_tools(error.message):
            return UserError(
                f"{self.endpoint.model} at {self._where} takes no tools ({error.message}): "
                "use prompt mode, or start vLLM with --enable-auto-tool-choice and --tool-call-parser"
            )
        if error.unreachable and (error.code == "connection" or last):  # a busy server may accept late
            return UserError(
                f"nothing answers at {self._where} ({error.message}): start it or name another base URL"
            )
        if name := refused_value(error, body):
            return UserError(
                f"{self.endpoint.model} at {self._where} refuses the value of {name} ({error.message})"
            )
        if error.status is not None and 300 <= error.status < 400:
            return UserError(
                f"{self._where} answers with {error.message}, which is not followed: give the address "
                "that it redirects to"
            )
        if error.code == "auth":
            return UserError(
                f"{self._where} refuses the key ({error.message}): check {self.endpoint.key_name}"
            )
        if error.code == "not_found":
            served = await self.served_models()
            if served and self.endpoint.model not in served:
                known = ", ".join(served[:10]) + (", …" if len(served) > 10 else "")
                return UserError(
                    f"{self._where} does not serve the model {self.endpoint.model!r}: it serves {known}"
                )
            return UserError(
                f"{self._where} does not know the model {self.endpoint.model!r} or the address "
                f"({error.message}): check the model's name; a base URL usually ends in /v1"
            )
        return None

    @property
    def _where(self) -> str:
        return public(self.endpoint.base_url or "")


_NO_SYSTEM = "system role (its text stands before the first user message)"

_LIMITS = ("max_tokens", "max_completion_tokens")


def system_as_user(messages: Sequence[dict[str, Json]]) -> list[dict[str, Json]]:
    """The messages without a system role: its text stands before the first user message."""
    said = [str(one["content"]) for one in messages if one["role"] == "system"]
    rest = [one for one in messages if one["role"] != "system"]
    if not said:
        return rest
    if not rest or rest[0]["role"] != "user":
        rest = [{"role": "user", "content": ""}, *rest]
    text = "\n\n".join(filter(None, (*said, str(rest[0]["content"]))))
    return [{**rest[0], "content": text}, *rest[1:]]


def _replayed(record: dict[str, Json], store: Store) -> Completion:
    try:
        return msgspec.structs.replace(msgspec.convert(record["completion"], Completion), replayed=True)
    except (KeyError, ValueError):
        raise UserError(f"{store.path} holds other records than completions: name another file") from None
