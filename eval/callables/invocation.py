"""One run of an agent on one row: which of its calls belong to which reply, and what they are answered with.

A model's reply is a batch of calls that ends with the reply; an agent that makes its calls with `Task.call`
shows no such end. So here a batch is what was called before the first of it was answered, and, where the
batch is the one that is scored, also what follows until it has as many calls as the longest accepted answer.
Calls beyond are answered and count for nothing: they are what an agent does with the results.
"""

import asyncio
import threading
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from robustbench_tc.llm import Completion
from robustbench_tc.schema import Json, Sample

from .. import wire
from ..score import answered_with_success
from ..scripted import Results, in_order, result_text
from .task import MAX_CALLS, Reply, arguments_of, calls_of, name_of, text_of, tokens_of


class Served(NamedTuple):
    """One call, answered."""

    name: str
    arguments: str


class Invocation:
    """What an agent calls while it works on one request, from one thread or several."""

    def __init__(self, row: Sample, number: int, results: Results, *, mode: str = "fc") -> None:
        """`number`: the pass that the request begins with, from 1."""
        self._row = row
        self._first = number
        self._results = results
        self._no_calls: list[dict[str, str]] | None = None if mode == "prompt" else []
        self._names = wire.WireNames(row.tools)
        self._answered = wire.answered(row)
        self._both = answered_with_success(row)
        self._in_order = in_order(row)
        self._longest = max((1, *(len(golden) for golden in row.golden_answers)))
        self._lock = threading.Lock()
        self._batches: list[list[Served]] = [[]]
        self._delivered = False
        self._used: Counter[str] = Counter()
        self._calls = 0
        self._over = False

    def call(self, name: str, arguments: Json = None) -> str:
        """`Task.call`."""
        return self._answer(self._begin(name, arguments), name)

    async def acall(self, name: str, arguments: Json = None) -> str:
        """`Task.acall`: gives way once, so that calls awaited together begin before one is answered."""
        place = self._begin(name, arguments)
        await asyncio.sleep(0)
        return self._answer(place, name)

    def _begin(self, name: str, arguments: Json) -> int:
        """Notes a call; the pass that it belongs to."""
        served = Served(name_of(name), arguments_of(arguments))
        with self._lock:
            if self._over:
                raise RuntimeError("this request has been answered: its tools can no longer be called")
            self._calls += 1
            if self._calls > MAX_CALLS:
                raise RuntimeError(f"more than {MAX_CALLS:,} calls for one request")
            place = self._first + len(self._batches) - 1
            batch = self._batches[-1]
            full = not self._takes_more(place, len(batch))
            if self._delivered and full and place <= self._answered:
                self._batches.append([served])
                self._delivered = False
                return place + 1
            if not self._delivered or not full:
                batch.append(served)
            return place

    def _takes_more(self, place: int, size: int) -> bool:
        """Whether a batch goes on after its first answer."""
        if place <= self._answered and not self._both:
            return size == 0
        return size < self._longest

    def _answer(self, place: int, name: str) -> str:
        with self._lock:
            if place == self._first + len(self._batches) - 1:
                self._delivered = True
            if place <= self._answered:
                return self._row.injected_error or ""
            known = self._names.back(name)
            self._used[known] += 1
            return result_text(self._results, known, self._used[known] - 1)

    def close(self) -> None:
        """Takes no further call: the agent has answered, or was given up."""
        with self._lock:
            self._over = True

    def completions(self, reply: Reply, seconds: float) -> list[Completion]:
        """The replies of this run, one for each pass that it reached; the returned reply ends the last.

        Without a call `tool_calls` is `[]` in function-calling mode, so that the text is not read for any.
        Raises Unreadable for a reply that is none.
        """
        returned, said = [Served(*one) for one in calls_of(reply)], text_of(reply)
        self.close()
        with self._lock:
            batches = [batch for batch in self._batches if batch]
        place = self._first + len(batches) - 1
        made = sum(map(len, batches[max(0, self._answered + 1 - self._first) :]))
        if not batches or place <= self._answered or made < self._in_order:
            batches.append(returned)
        found = []
        for index, batch in enumerate(batches):
            last = index == len(batches) - 1
            found.append(
                Completion(
                    text=said if last else "",
                    tool_calls=_wire(batch, self._first + index) or self._no_calls,
                    finish_reason="tool_calls" if batch else "stop",
                    prompt_tokens=tokens_of(reply.usage, "prompt_tokens") if last else None,
                    completion_tokens=tokens_of(reply.usage, "completion_tokens") if last else None,
                    latency_s=seconds if last else 0.0,
                )
            )
        return found


def _wire(batch: Sequence[Served], number: int) -> list[dict[str, str]]:
    prefix = "call_" if number == 1 else f"call_{number}_"
    return [
        {"id": f"{prefix}{i}", "name": call.name, "arguments": call.arguments} for i, call in enumerate(batch)
    ]
