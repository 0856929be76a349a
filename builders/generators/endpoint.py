"""Texts from a model behind OpenAI-compatible endpoints: asked, checked, asked again with the reason.

The prompts of the model-written types: one versioned text file per type, rendered with a request.

`prompts/KIND.vN.txt` holds the system text, a line of `=====`, and the user text, both Jinja templates. The
text to rewrite stands between markers that hold the request's hash, so that nothing in it can close them.
"""

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path

import jinja2
import msgspec

from robustbench_tc.compute import parallel
from robustbench_tc.compute.parallel import SERIAL, Workers
from robustbench_tc.errors import UserError
from robustbench_tc.llm import (
    ChatRequest,
    Client,
    Completion,
    Endpoint,
    LLMError,
    Stats,
    Store,
    over_http,
)
from robustbench_tc.schema import Json

from ..perturb.base import REGISTRY, Text, TextRequest
from .base import (
    ANSWER_SCHEMA,
    NO_ANSWER,
    Generator,
    Refuse,
    check,
    read_object,
    read_tools,
    writes_tools,
    writes_translations,
)

_FILE = re.compile(r"(.+)\.v(\d+)\.txt")
_ENVIRONMENT = jinja2.Environment(
    undefined=jinja2.StrictUndefined, autoescape=False, trim_blocks=True, lstrip_blocks=True
)


class Prompt(msgspec.Struct, frozen=True):
    """A type's prompt in its newest version."""

    kind: str
    version: str
    """`v1`: part of the label of every text that it made."""
    system: str
    user: str
    words: Mapping[str, str]
    """What stands for placeholders that several types fill each in its own way."""

    def messages(self, request: TextRequest) -> list[dict[str, Json]]:
        """The conversation that asks for the text."""
        values = {
            "mark": marker(request),
            "input": request.input,
            "tool": request.tool,
            "parameter": request.parameter,
            "keep": request.keep,
            **self.words,
            **{name: _json(value) for name, value in request.context.items()},
        }
        return [
            {"role": role, "content": _ENVIRONMENT.from_string(text).render(values)}
            for role, text in (("system", self.system), ("user", self.user))
        ]


def marker(request: TextRequest) -> str:
    """The word that opens and closes the text to rewrite."""
    return f"TEXT-{request.key[:12]}"


@cache
def prompt(kind: str) -> Prompt:
    """The newest prompt of a type: types that share one name it."""
    name = REGISTRY[kind].prompt or kind
    found = {
        int(match.group(2)): entry
        for entry in files("robustbench_tc.builders").joinpath("prompts").iterdir()
        if (match := _FILE.fullmatch(entry.name)) and match.group(1) == name
    }
    version = max(found)
    system, user = found[version].read_text("utf-8").split("\n=====\n")
    return Prompt(kind, f"v{version}", system.strip(), user.strip(), REGISTRY[kind].prompt_words)


def _json(value: Json) -> Json:
    """Structured context as JSON text, one item per line where it is a list of objects."""
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple) and value and isinstance(value[0], dict):
        return "\n".join(msgspec.json.encode(item).decode() for item in value)
    return msgspec.json.encode(value).decode()


TRIES = 3
"""How often a text is asked for, refusals included."""

TEMPERATURE = 0.7
"""Typing errors at 0 are the same few every time; reasoning endpoints never see it."""

MAX_TOKENS = 2048
MAX_TOKENS_REASONING = 8192
"""With room for the thoughts that count as completion."""

_TRANSLATION_SCHEMA: dict[str, Json] = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "value_map": {"type": "object", "additionalProperties": {"type": "string"}},
        "unmapped": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["text", "value_map", "unmapped"],
}

_FORMS: tuple[tuple[Callable[[str], bool], Json], ...] = (
    (writes_tools, {"type": "json_schema", "json_schema": {"name": "new_tools", "schema": ANSWER_SCHEMA}}),
    (
        writes_translations,
        {"type": "json_schema", "json_schema": {"name": "translation", "schema": _TRANSLATION_SCHEMA}},
    ),
)
"""What an endpoint with structured output is asked for, by the form of the answer; texts have none."""

_REFUSED = (
    """Your answer was refused: {reason}. Follow the rules, and reply with the whole corrected answer."""
)


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """How endpoints are asked; the same for every type of a build."""

    store: Path = Path(".rbtc/generations.jsonl")
    """Answers are kept here, so that the same build asks nothing twice."""
    concurrency: int = 16
    """Requests in flight at each address."""
    workers: Workers = SERIAL
    """With Ray an actor on the cluster asks each address; store, limits and checks stay here."""
    timeout_s: float = 300.0
    max_retries: int = 6
    max_requests: int | None = None
    """Requests that the whole build may send."""
    max_cost: float | None = None
    price: tuple[float, float] | None = None
    """Per million prompt and completion tokens, in the currency of `max_cost`."""

    def __post_init__(self) -> None:
        if self.max_cost is not None and self.price is None:
            raise UserError("--max-cost needs --price: what a million prompt and completion tokens cost")


class Spent(msgspec.Struct):
    """What the generators of one build have used up together."""

    requests: int = 0
    cost: float = 0.0


class Model(Generator):
    """One type's texts from one model: `openai:MODEL[@BASE_URL[,BASE_URL…]]`."""

    def __init__(
        self,
        kind: str,
        endpoint: Endpoint,
        settings: Settings | None = None,
        spent: Spent | None = None,
        also: Sequence[Endpoint] = (),
    ) -> None:
        """`also`: further addresses of the model."""
        self.endpoint = endpoint
        self._addresses = (endpoint, *also)
        self.prompt = prompt(kind)
        super().__init__(f"{endpoint.model}@{self.prompt.version}")
        self._settings = settings or Settings()
        self._spent = spent or Spent()
        self._form = next((form for is_asked, form in _FORMS if is_asked(kind)), None)
        self._structured = self._form is not None

    async def generate(self, requests: Sequence[TextRequest], refuse: Refuse) -> dict[str, Text | str]:
        """As `Generator.generate`: concurrently; a refused answer is sent back with its reason.

        Raises UserError where a limit is reached, and where not one text could be written.
        """
        settings, spent = self._settings, self._spent
        addresses = [one.resolved() for one in self._addresses]
        with Store(settings.store) as store, parallel.on_ray(settings.workers) as ray:
            async with Client(
                addresses[0],
                wire=over_http(addresses, settings.timeout_s, ray=ray, concurrency=settings.concurrency),
                store=store,
                concurrency=settings.concurrency * len(self._addresses),
                max_retries=settings.max_retries,
                max_requests=None
                if settings.max_requests is None
                else settings.max_requests - spent.requests,
                max_cost=None if settings.max_cost is None else settings.max_cost - spent.cost,
                price=settings.price,
            ) as client:
                try:
                    async with asyncio.TaskGroup() as group:
                        tasks = [
                            group.create_task(self._write(client, request, refuse)) for request in requests
                        ]
                except BaseExceptionGroup as several:  # the first says what to fix
                    raise several.exceptions[0] from None
                finally:
                    self._count(client.stats)
        answers = {request.key: task.result() for request, task in zip(requests, tasks, strict=True)}
        self._statistics.settle(answers)
        if answers and all(answer == NO_ANSWER for answer in answers.values()):
            errors = ", ".join(f"{code} {number}" for code, number in client.stats.errors.items())
            raise UserError(
                f"{self.endpoint}: none of {len(answers)} texts for {self.prompt.kind} was written "
                f"({errors}): look at the endpoint, or name another --generator"
            )
        return answers

    async def _write(self, client: Client, request: TextRequest, refuse: Refuse) -> Text | str:
        """One text: the accepted answer, or why there is none."""
        messages = self.prompt.messages(request)
        reason = ""
        for attempt in range(TRIES):
            self._statistics.retried += attempt > 0
            try:
                done = await self._ask(client, messages)
            except LLMError as error:
                if error.code == "budget":
                    raise UserError(
                        f"{self.endpoint}: stopped, {error.message}; what was answered is kept in "
                        f"{self._settings.store}: run again with a higher limit"
                    ) from None
                return NO_ANSWER
            answer = self._read(request, done)
            refused = _oversized(request, answer, done) or check(request, answer, refuse)
            if refused is None:
                return Text(answer, self.label)
            reason = refused
            self._statistics.refuse(request, done.text if answer is None else answer, reason)
            messages = [
                *messages,
                {"role": "assistant", "content": done.text},
                {"role": "user", "content": _REFUSED.format(reason=reason)},
            ]
        return f"refused: {reason}"

    async def _ask(self, client: Client, messages: list[dict[str, Json]]) -> Completion:
        limit = MAX_TOKENS_REASONING if self.endpoint.is_reasoning else MAX_TOKENS
        params: dict[str, Json] = {"temperature": TEMPERATURE, "max_tokens": limit}
        if self._structured:
            try:
                structured = {**params, "response_format": self._form}
                return await client.complete(ChatRequest(messages, params=structured))
            except LLMError as error:
                if error.code not in ("bad_request", "rejected"):
                    raise
                self._structured = False  # the endpoint cannot; the prompt asks for JSON anyway
        return await client.complete(ChatRequest(messages, params=params))

    def _read(self, request: TextRequest, done: Completion) -> Json:
        text = done.text.rpartition("</think>")[2].strip()
        if writes_tools(request.kind):
            return read_tools(text)
        return read_object(text) if writes_translations(request.kind) else unwrapped(text, request)

    def _count(self, stats: Stats) -> None:
        self._spent.requests += stats.requests
        self._spent.cost += stats.cost
        self._statistics.requests += stats.requests
        self._statistics.replayed += stats.replayed
        self._statistics.prompt_tokens += stats.prompt_tokens
        self._statistics.completion_tokens += stats.completion_tokens


def unwrapped(text: str, request: TextRequest) -> str:
    """A model's answer without what models like to put around it: markers, a code fence, quotation marks."""
    text = re.sub(rf"</?{marker(request)}>", "", text).strip()
    if fenced := re.fullmatch(r"```\w*\n(.*)\n```", text, re.DOTALL):
        text = fenced.group(1).strip()
    for quotes in ('""', "“”", "''"):
        inside = text[1:-1]
        around = text[:1] + text[-1:] == quotes and len(text) > 2 and not set(quotes) & set(inside)
        if around and not request.input.strip().startswith(quotes[0]):
            text = inside.strip()
    return text


def _oversized(request: TextRequest, answer: Json, done: Completion) -> str | None:
    """Why an answer is more than what was asked for: cut off, or with a speech around it."""
    if done.finish_reason == "length":
        return "it was cut off at the token limit"
    if writes_translations(request.kind) and isinstance(answer, dict):
        answer = answer.get("text")  # its map names parts of it: the acceptance check looks at them
    if not isinstance(answer, str):
        return None
    if "\n" in answer and "\n" not in request.input.strip():
        return "several lines for a text of one line"
    if len(answer) > 3 * len(request.input) + 100:
        return "it is far longer than the text"
    return None
