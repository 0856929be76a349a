"""One run of an agent on one row: which of its calls belong to which reply, and what they are answered with.

A model's reply is a batch of calls that ends with the reply; an agent that makes its calls with `Task.call`
shows no such end. So here a batch is what was called before the first of it was answered, and, where the
batch is the one that is scored, also what follows until it has as many calls as the longest accepted answer.
Calls beyond are answered and count for nothing: they are what an agent does with the results.
"""

import asyncio
import threading
from collections import Counter

import msgspec

from robustbench_tc.llm import Completion
from robustbench_tc.schema import Json, Sample

from .. import wire
from ..score import answered_with_success
from ..scripted import Results, in_order, result_text
from .task import MAX_CALLS, Reply, call_of


class Invocation:
    """What an agent calls while it works on one request, from one thread or several."""

    def __init__(self, row: Sample, number: int, results: Results, *, mode: str = "fc") -> None:
        """`number`: the pass that the request begins with, from 1."""
        self._row, self._first, self._results = row, number, results
        self._no_calls: list[dict[str, str]] | None = None if mode == "prompt" else []
        self._names = wire.WireNames(row.tools)
        self._answered = wire.answered(row)
        self._both = answered_with_success(row)
        self._in_order = in_order(row)
        self._longest = max((1, *(len(golden) for golden in row.golden_answers)))
        self._lock = threading.Lock()
        self._batches: list[list[tuple[str, str]]] = [[]]
        """Of each pass from the first on: names and arguments."""
        self._delivered = False
        """Whether a call of the last batch was answered."""
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
        called = call_of(name, arguments)
        with self._lock:
            if self._over:
                raise RuntimeError("this request has been answered: its tools can no longer be called")
            self._calls += 1
            if self._calls > MAX_CALLS:
                raise RuntimeError(f"more than {MAX_CALLS:,} calls for one request")
            place, batch = self._last(), self._batches[-1]
            answered = place <= self._answered
            # How many calls a batch takes once one of them was answered.
            full = len(batch) >= (1 if answered and not self._both else self._longest)
            if self._delivered and full and answered:
                self._batches.append([called])
                self._delivered = False
                return place + 1
            if not self._delivered or not full:
                batch.append(called)
            return place

    def _last(self) -> int:
        """The pass that is under way."""
        return self._first + len(self._batches) - 1

    def _answer(self, place: int, name: str) -> str:
        with self._lock:
            self._delivered = self._delivered or place == self._last()
            if place <= self._answered:
                return self._row.injected_error or ""
            known = self._names.back(name)
            self._used[known] += 1
            return result_text(self._results, known, self._used[known] - 1)

    def close(self) -> None:
        """Takes no further call: the agent has answered, or was given up."""
        self._over = True

    def completions(self, reply: Reply, seconds: float) -> list[Completion]:
        """The replies of this run, one for each pass that it reached; the returned reply, of `reply_of`, ends
        the last.

        Without a call `tool_calls` is `[]` in function-calling mode, so that the text is not read for any.
        """
        self.close()
        batches = [batch for batch in self._batches if batch]
        place = self._first + len(batches) - 1
        made = sum(map(len, batches[max(0, self._answered + 1 - self._first) :]))
        if not batches or place <= self._answered or made < self._in_order:
            batches.append(list(reply.calls))
        found = []
        for number, batch in enumerate(batches, self._first):
            prefix = "call_" if number == 1 else f"call_{number}_"
            calls = [
                {"id": f"{prefix}{i}", "name": name, "arguments": arguments}
                for i, (name, arguments) in enumerate(batch)
            ]
            reason = "tool_calls" if batch else "stop"
            found.append(Completion(text="", tool_calls=calls or self._no_calls, finish_reason=reason))
        found[-1] = msgspec.structs.replace(
            found[-1],
            text=reply.text,
            prompt_tokens=reply.tokens("prompt_tokens"),
            completion_tokens=reply.tokens("completion_tokens"),
            latency_s=seconds,
        )
        return found
