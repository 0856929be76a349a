"""Who scores text pairs: recorded judgments, or a model behind any OpenAI-compatible endpoint."""

import asyncio
import re
from collections.abc import Callable, Coroutine, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias, TypeVar

import msgspec

from robustbench_tc.errors import UserError
from robustbench_tc.llm import ChatRequest, Client, Endpoint, LLMError, Stats, Store
from robustbench_tc.schema import Json, dumps

from .rows import NewTool, Pair

TRIES = 3
"""How often a judge is asked for an answer that can be read."""

MAX_TOKENS = 2048
MAX_TOKENS_REASONING = 8192

REASON = 400
"""Characters of a reason that are kept."""


class Judgment(msgspec.Struct, frozen=True):
    """A judge's score of one pair."""

    score: int
    """1 to 5, by the rubric of the paraphrase audit."""
    reason: str
    judge: str


class Answer(msgspec.Struct, frozen=True):
    """A judge's answer to whether a new tool could answer the query."""

    could_answer: bool
    reason: str
    judge: str


class Unjudged(msgspec.Struct, frozen=True):
    """Why there is no judgment."""

    why: str


class Judge(Protocol):
    """Scores pairs, and says which new tools could answer the query."""

    name: str
    live: bool
    """A model is asked now: canaries are mixed in, and only the draw is judged."""

    def score(self, pairs: Sequence[Pair]) -> list[Judgment | Unjudged]: ...

    def could_answer(self, tools: Sequence[NewTool]) -> list[Answer | Unjudged]: ...


class Recorded:
    """Judgments that somebody wrote down; `find` gives a pair's, or None."""

    live = False

    def __init__(self, find: Callable[[Pair], Judgment | None], name: str = "recorded") -> None:
        self.name = name
        self._find = find

    def score(self, pairs: Sequence[Pair]) -> list[Judgment | Unjudged]:
        missing = Unjudged("no recorded judgment of this pair: name a judge with --judge")
        return [self._find(pair) or missing for pair in pairs]

    def could_answer(self, tools: Sequence[NewTool]) -> list[Answer | Unjudged]:
        return [Unjudged("nobody recorded an answer") for _ in tools]


class _Score(msgspec.Struct, frozen=True):
    reason: str
    score: Literal[1, 2, 3, 4, 5]


class _CouldAnswer(msgspec.Struct, frozen=True):
    reason: str
    could_answer: bool


_Kind: TypeAlias = type[_Score] | type[_CouldAnswer]
_T = TypeVar("_T")

_SCHEMAS: dict[_Kind, Json] = {
    _Score: {
        "type": "object",
        "properties": {"reason": {"type": "string"}, "score": {"type": "integer", "enum": [1, 2, 3, 4, 5]}},
        "required": ["reason", "score"],
        "additionalProperties": False,
    },
    _CouldAnswer: {
        "type": "object",
        "properties": {"reason": {"type": "string"}, "could_answer": {"type": "boolean"}},
        "required": ["reason", "could_answer"],
        "additionalProperties": False,
    },
}

_WHAT = {
    "realistic_typos": "a user's request; the second was typed in a hurry, and slips as such cost nothing",
    "query_paraphrase": "a user's request",
    "paraphrase_tool_description": "the description of a tool",
    "paraphrase_parameter_description": "the description of a tool's parameter",
}


class EndpointJudge:
    """A model as a judge, one request per pair, answers as structured output.

    The texts are sent as JSON data of their own message; nothing in them is an instruction. Answers are kept
    in `store`, so that the same audit asks nothing twice.
    """

    live = True

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        store: Path = Path(".rbtc/judgments.jsonl"),
        concurrency: int = 16,
        timeout_s: float = 300.0,
        max_requests: int | None = None,
        max_cost: float | None = None,
        price: tuple[float, float] | None = None,
        progress: Callable[[Stats], None] | None = None,
    ) -> None:
        self.name = endpoint.model
        self.endpoint = endpoint
        self._store = store
        self._structured = True
        self._options: dict[str, Any] = {
            "concurrency": concurrency,
            "timeout_s": timeout_s,
            "max_requests": max_requests,
            "max_cost": max_cost,
            "price": price,
            "progress": progress,
        }

    def score(self, pairs: Sequence[Pair]) -> list[Judgment | Unjudged]:
        system = prompt("equivalence.v1")

        async def one(client: Client, pair: Pair) -> Judgment | Unjudged:
            data = {"kind": _WHAT[pair.kind], "first": pair.before, "second": pair.after}
            found = await self._ask(client, system, data, _Score)
            if isinstance(found, Unjudged):
                return found
            return Judgment(found.score, found.reason[:REASON], self.name)

        return self._all(pairs, one)

    def could_answer(self, tools: Sequence[NewTool]) -> list[Answer | Unjudged]:
        system = prompt("redundant.v1")

        async def one(client: Client, new: NewTool) -> Answer | Unjudged:
            tool = {"name": new.name, "description": new.description, "parameters": new.parameters}
            found = await self._ask(client, system, {"request": new.query, "tool": tool}, _CouldAnswer)
            if isinstance(found, Unjudged):
                return found
            return Answer(found.could_answer, found.reason[:REASON], self.name)

        return self._all(tools, one)

    def _all(self, items: Sequence[Any], one: Callable[[Client, Any], Coroutine[Any, Any, _T]]) -> list[_T]:
        async def run() -> list[_T]:
            with Store(self._store) as store:
                async with Client(self.endpoint, store=store, **self._options) as client:
                    try:
                        async with asyncio.TaskGroup() as group:
                            tasks = [group.create_task(one(client, item)) for item in items]
                    except BaseExceptionGroup as several:  # the first says what to mend
                        raise several.exceptions[0] from None
            return [task.result() for task in tasks]

        return asyncio.run(run())

    async def _ask(self, client: Client, system: str, data: Json, kind: type[_T]) -> _T | Unjudged:
        """One judgment. A model whose answers cannot be read is asked anew, then left out."""
        messages = [{"role": "system", "content": system}, {"role": "user", "content": dumps(data)}]
        why = ""
        for attempt in range(TRIES):
            try:
                done = await self._complete(client, messages, kind, attempt)
            except LLMError as error:
                if error.code == "budget":
                    raise UserError(
                        f"{self.endpoint}: stopped, {error.message}; what was judged is kept in "
                        f"{self._store}: run again with a higher limit"
                    ) from None
                return Unjudged(f"{error.code}: {error.message}"[:160])
            found = read(done.text, kind)
            if found is not None:
                return found
            why = "the answer is no judgment"
        return Unjudged(why)

    async def _complete(
        self, client: Client, messages: list[dict[str, Json]], kind: Any, attempt: int
    ) -> Any:
        limit = MAX_TOKENS_REASONING if self.endpoint.is_reasoning else MAX_TOKENS
        params: dict[str, Json] = {"max_tokens": limit}
        if self._structured:
            schema = {"name": "judgment", "strict": True, "schema": _SCHEMAS[kind]}
            structured = {**params, "response_format": {"type": "json_schema", "json_schema": schema}}
            try:
                return await client.complete(ChatRequest(messages, params=structured, repeat=attempt))
            except LLMError as error:
                if error.code not in ("bad_request", "rejected"):
                    raise
                self._structured = False  # the endpoint cannot; the prompt asks for JSON anyway
        return await client.complete(ChatRequest(messages, params=params, repeat=attempt))


def read(text: str, kind: type[_T]) -> _T | None:
    """The last JSON object of an answer, thoughts and fences apart; None where there is no such judgment."""
    text = text.rpartition("</think>")[2][-8_000:]
    for found in reversed(re.findall(r"\{[^{}]*\}", text)):
        try:
            return msgspec.json.decode(found, type=kind)
        except ValueError:
            continue
    return None


def prompt(name: str) -> str:
    """A prompt of the judge, by its file's name in `audits/prompts`."""
    return files("robustbench_tc.audits").joinpath(f"prompts/{name}.txt").read_text("utf-8").strip()
