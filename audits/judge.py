"""Who judges texts: judgments that ship with the package, those of a file, or a model behind an endpoint.

Of several judges a later one is asked about what the earlier ones have not judged.
"""

import asyncio
import re
from collections.abc import Callable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias, TypeVar

import msgspec

from robustbench_tc import taxonomy
from robustbench_tc.errors import UserError
from robustbench_tc.llm import ChatRequest, Client, Endpoint, LLMError, Store
from robustbench_tc.schema import Json, dumps

from .rows import NewTool, Pair

TRIES = 3
"""How often a judge is asked for an answer that can be read."""

MAX_TOKENS = 2048
MAX_TOKENS_REASONING = 8192
"""Tokens of a judgment; with room for reasoning where the model reasons."""

REASON = 400
"""Characters of a reason that are kept."""


class Judgment(msgspec.Struct, frozen=True):
    """A judge's score of one pair."""

    score: int
    """1 to 5, by the rubric of the paraphrase audit."""
    reason: str
    judge: str
    pinned: bool = False
    """It ships with the package, under the hash of the text: nobody can write it beside a build."""


class Answer(msgspec.Struct, frozen=True):
    """A judge's answer to whether a new tool could answer the query."""

    could_answer: bool
    reason: str
    judge: str
    pinned: bool = False


class Unjudged(msgspec.Struct, frozen=True):
    """Why there is no judgment."""

    why: str


Item: TypeAlias = Pair | NewTool
Verdict: TypeAlias = Judgment | Answer | Unjudged


class Judge(Protocol):
    """Scores pairs, and says which new tools could answer the query."""

    name: str
    live: bool
    """Its judgments are a model's of this build: it must have seen through the canaries among them."""

    def judge(self, items: Sequence[Item]) -> list[Verdict]:
        """Of pairs a `Judgment` each, of new tools an `Answer`, in order; for what is not judged the reason.

        The items are all of one kind.
        """
        ...


class Recorded:
    """Judgments that somebody wrote down; `find` gives a pair's and `find_answer` a new tool's, or None."""

    live = False

    def __init__(
        self,
        find: Callable[[Pair], Judgment | None],
        name: str = "recorded",
        find_answer: Callable[[NewTool], Answer | None] = lambda tool: None,
    ) -> None:
        self.name = name
        self._find = find
        self._find_answer = find_answer

    def judge(self, items: Sequence[Item]) -> list[Verdict]:
        found = (self._find(one) if isinstance(one, Pair) else self._find_answer(one) for one in items)
        missing = Unjudged("no recorded judgment of this text or tool: name a judge with --judge")
        return [one or missing for one in found]


def in_turn(ask: Sequence[Callable[[Sequence[Item]], list[Verdict]]], items: Sequence[Item]) -> list[Verdict]:
    """The verdicts on `items`: each of `ask` is asked about what those before left unjudged."""
    found: list[Verdict] = [Unjudged("nobody was asked") for _ in items]
    for one in ask:
        left = [at for at, verdict in enumerate(found) if isinstance(verdict, Unjudged)]
        for at, verdict in zip(left, one([items[at] for at in left]) if left else [], strict=True):
            found[at] = verdict
    return found


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


class EndpointJudge:
    """A model as a judge, one request per pair, answers as structured output.

    The texts are sent as JSON data of their own message; nothing in them is an instruction. Answers are kept
    in `store`, so that the same audit asks nothing twice.
    """

    live = True

    def __init__(self, endpoint: Endpoint, *, store: Path, max_requests: int | None = None) -> None:
        self.name = endpoint.model
        self.endpoint = endpoint
        self._store = store
        self._structured = True
        self._max_requests = max_requests

    def judge(self, items: Sequence[Item]) -> list[Verdict]:
        """One request per pair with the prompt `equivalence.v1`, per tool with `redundant.v1`.

        Raises UserError when a limit is reached.
        """
        if items and isinstance(items[0], Pair):
            return [
                one if isinstance(one, Unjudged) else Judgment(one.score, one.reason[:REASON], self.name)
                for one in self._all("equivalence.v1", [_shown(pair) for pair in items], _Score)
            ]
        return [
            one if isinstance(one, Unjudged) else Answer(one.could_answer, one.reason[:REASON], self.name)
            for one in self._all("redundant.v1", [_shown(tool) for tool in items], _CouldAnswer)
        ]

    def _all(self, name: str, asked: Sequence[Json], kind: type[_T]) -> list[_T | Unjudged]:
        """A judgment of each, all asked under the prompt of this name."""
        system = prompt(name)

        async def run() -> list[_T | Unjudged]:
            with Store(self._store) as store:
                async with Client(self.endpoint, store=store, max_requests=self._max_requests) as client:
                    try:
                        async with asyncio.TaskGroup() as group:
                            tasks = [group.create_task(self._ask(client, system, one, kind)) for one in asked]
                    except BaseExceptionGroup as several:  # the first says what to fix
                        raise several.exceptions[0] from None
            return [task.result() for task in tasks]

        return asyncio.run(run())

    async def _ask(self, client: Client, system: str, data: Json, kind: type[_T]) -> _T | Unjudged:
        """One judgment. A model whose answers cannot be read is asked again, then left out."""
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
            why = "the answer is not a judgment"
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


def _shown(item: Item) -> Json:
    """What a judge is shown of a pair or a new tool."""
    if isinstance(item, Pair):
        return {"kind": taxonomy.get(item.kind).judged_as, "first": item.before, "second": item.after}
    tool = {name: getattr(item, name) for name in ("name", "description", "parameters")}
    return {"request": item.query, "tool": tool}


def read(text: str, kind: type[_T]) -> _T | None:
    """The last JSON object of an answer, thoughts and fences apart; None where there is no such judgment."""
    text = text.rpartition("</think>")[2][-8_000:]
    for found in reversed(re.findall(r"\{[^{}]*\}", text)):
        try:
            return msgspec.json.decode(found, type=kind)
        except ValueError:  # an object in front of it may be the judgment
            continue
    return None


def prompt(name: str) -> str:
    """A prompt of the judge, by its file's name in `audits/prompts`."""
    return files("robustbench_tc.audits").joinpath(f"prompts/{name}.txt").read_text("utf-8").strip()
