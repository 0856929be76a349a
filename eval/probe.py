"""`rbtc probe`: what a server does with the requests that a run makes, in fourteen short ones."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import msgspec

from robustbench_tc.compute import loop
from robustbench_tc.llm import ChatRequest, Client, Completion, Endpoint, LLMError, call_id, over_http
from robustbench_tc.schema import Json, Tool
from robustbench_tc.shown import Part, Table

from . import delivered, wire
from .read_reply import read
from .record import Finding

if TYPE_CHECKING:
    from .speakers import ModelSpeaker

MAX_TOKENS = 512
"""Of each reply: a model that thinks first needs some."""

TIMEOUT_S = 60.0

FIRST = ("canary", "system", "call", "two calls", "history")
"""What `rbtc eval` asks before its first row."""

Got = Completion | LLMError
Read = Callable[[str, Completion], list[Finding]]
"""From the model's name and its reply to findings."""


class Question(msgspec.Struct, frozen=True):
    """A request, how its reply is read, and what a refusal of it means."""

    check: str
    request: ChatRequest
    read: Read
    refused: str = ""
    needed: bool = False
    """Whether a run needs that the request is taken."""

    def findings(self, model: str, got: Got) -> list[Finding]:
        """What came of it."""
        if isinstance(got, Completion):
            return self.read(model, got)
        answer: Literal["no", "not in this form"] = "no" if self.needed else "not in this form"
        return [Finding(check=self.check, answer=answer, note=f"{self.refused} ({got})".strip())]


def _tool(
    name: str = "get_weather", properties: Mapping[str, Json] = {}, more: Mapping[str, Json] = {}
) -> Tool:
    """`more`: fields of the schema beside its properties."""
    found = {"city": {"type": "string"}, **properties}
    schema = {"type": "object", "properties": found, "required": ["city"], **more}
    return Tool(name, "Tells the weather in a city.", schema)


WEATHER = _tool()
USER = "What is the weather in Oslo now? Use the tool."
OSLO: dict[str, Json] = {
    "id": call_id("probe"),
    "type": "function",
    "function": {"name": WEATHER.name, "arguments": '{"city": "Oslo"}'},
}
PARAMETERS: dict[str, Json] = {"seed": 1, "temperature": 0.0, "max_tokens": MAX_TOKENS, "logprobs": True}


def _asked(text: str, *tools: Tool, **params: Json) -> ChatRequest:
    return _said([{"role": "user", "content": text}], *tools, **params)


def _said(messages: Sequence[dict[str, Json]], *tools: Tool, **params: Json) -> ChatRequest:
    # Names go out as they are here: whether a server takes them is the question.
    sent = [
        {
            "type": "function",
            "function": {"name": one.name, "description": one.description, "parameters": one.parameters},
        }
        for one in tools
    ]
    return ChatRequest(messages, sent or None, {"max_tokens": MAX_TOKENS, **params})


def _is(check: str, fine: bool, otherwise: str = "") -> list[Finding]:
    return [Finding(check=check, answer="yes") if fine else Finding(check=check, answer="no", note=otherwise)]


def _says(
    check: str, word: str, messages: Sequence[dict[str, Json]], *tools: Tool, otherwise: str, refused: str
) -> Question:
    """Whether a reply's text holds a word."""

    def read_text(model: str, got: Completion) -> list[Finding]:
        return _is(check, word in got.text.lower(), f"{otherwise} (it said {got.text[:60]!r})")

    return Question(check, _said(messages, *tools), read_text, refused)


def _takes(check: str, otherwise: str, tool: Tool, **params: Json) -> Question:
    """Whether a request is taken."""
    return Question(check, _asked(USER, tool, **params), lambda model, got: _is(check, True), otherwise)


def _calls(model: str, got: Completion) -> list[Finding]:
    """Whether tools are taken, a native call comes, and its arguments are an object."""
    tools = (WEATHER,)
    native = wire.names_back(tools, got.tool_calls)
    meant = read(
        got.text, native, source="bfcl_v3", tools=tools, model=model, mode="fc", reasoning=got.reasoning
    )
    reason = delivered.undelivered(native, meant, tools, got.finish_reason)
    means = f"{reason}: {delivered.MEANING[reason]}" if reason else ""
    found = _is("tools accepted", True)
    if native:
        return found + _is("native call", True) + _is("arguments", reason is None, means)
    none = f"no call: The model made no call (it said {got.text[:60]!r})"
    return found + _is("native call", False, means or none)


def _two(model: str, got: Completion) -> list[Finding]:
    calls = len(got.tool_calls or ())
    note = f"It made {calls}: rows that need several calls at once will be wrong."
    return _is("two calls in one reply", calls > 1, note)


def _parameters(model: str, got: Completion) -> list[Finding]:
    if got.logprobs is not None:
        return _is("sampling parameters", True)
    note = "logprobs: asked for and not returned."
    return [Finding(check="sampling parameters", answer="not in this form", note=note)]


SCHEMA = "Rows with such a schema will be rejected."
UNIT: dict[str, Json] = {"unit": {"type": "string"}}
DAY: dict[str, Json] = {"anyOf": [{"type": "string"}, {"type": "integer"}]}
CAPITAL = "What is the capital of France? Answer with the name of the city only."
BOTH = "What is the weather in Oslo and in Lima? Call the tool for both in one reply."
QUESTIONS: Mapping[str, Question] = {
    "canary": _says(
        "answers a question",
        "paris",
        [{"role": "user", "content": CAPITAL}],
        otherwise="Wrong weights, chat template or quantisation: no accuracy of this server means anything.",
        refused="A plain question is refused.",
    ),
    "system": _says(
        "system role",
        "wren",
        [
            {"role": "system", "content": "Your name is Wren."},
            {"role": "user", "content": "What is your name? Answer with the name only."},
        ],
        otherwise="The system message is not followed.",
        refused="The system text goes in front of the first user message (--system-as-user).",
    ),
    "call": Question("tools accepted", _asked(USER, WEATHER), _calls, "A run needs --mode prompt", True),
    "two calls": Question("two calls in one reply", _asked(BOTH, WEATHER), _two, needed=True),
    "history": _says(
        "result of a call",
        "17",
        [
            {"role": "user", "content": USER},
            {"role": "assistant", "content": "", "tool_calls": [OSLO]},
            {"role": "tool", "tool_call_id": OSLO["id"], "content": '{"degrees": 17}'},
        ],
        WEATHER,
        otherwise="The result is not used.",
        refused="Transition rows cannot be finished.",
    ),
    "tool_choice": _takes("tool_choice", "The benchmark does not use it.", WEATHER, tool_choice="required"),
    "dotted name": _takes(
        "names with dots", "They are sent with _ in place of each dot.", _tool("weather.now")
    ),
    "long name": _takes(
        "names of 64 characters",
        "Rows with such a name will be rejected.",
        _tool("get_weather_" + "n" * (64 - len("get_weather_"))),
    ),
    "$ref": _takes(
        "schema with $ref",
        SCHEMA,
        _tool(properties={"unit": {"$ref": "#/$defs/unit"}}, more={"$defs": UNIT}),
    ),
    "anyOf": _takes("schema with anyOf", SCHEMA, _tool(properties={"day": DAY})),
    "enum": _takes("enum with null", SCHEMA, _tool(properties={"unit": {"enum": ["C", "F", None]}})),
    "key": _takes("keys such as filter[x]", SCHEMA, _tool(properties={"filter[x]": {"type": "string"}})),
    "parameters": Question(
        "sampling parameters", _asked("Say hello.", **PARAMETERS), _parameters, needed=True
    ),
}


class Probed(msgspec.Struct, frozen=True, kw_only=True):
    """What a server does with the requests of a run."""

    findings: tuple[Finding, ...]
    eval: str
    """The command that fits the server."""

    @property
    def exit_code(self) -> int:
        """1 if a check fails that every run needs."""
        return int(bool(failed(self.findings)))

    def shown(self) -> Iterator[Part]:
        """A row for each check, and the command."""
        rows = [(one.check, one.answer, one.note) for one in self.findings]
        yield Table(("check", "answer", "meaning"), rows, folded=("answer", "meaning"))
        yield self.eval


def probed(endpoints: Sequence[Endpoint], long: int | None = None) -> Probed:
    """Asks a model at its addresses every question. `long`: also a request of so many words.

    Raises UserError where nobody answers.
    """
    first = endpoints[0]

    async def asked() -> list[Finding]:
        wire = over_http(endpoints, TIMEOUT_S)
        async with Client(first, wire=wire, concurrency=4, max_retries=1) as client:
            return await ask(client, first.model, long)

    found = loop.run(asked())
    named = first.model if first.provider == "openai" else f"{first.provider}:{first.model}"
    where = "".join(f" --base-url {one.base_url}" for one in endpoints if one.base_url)
    line = f"rbtc eval robustbench-tc --model {named}{where} --mode {mode(found)}"
    return Probed(findings=tuple(found), eval=line)


async def ask(client: Client, model: str, long: int | None = None) -> list[Finding]:
    """What the server does with every question, in their order, and with a request of so many words.

    Raises UserError where nobody answers, or the model or the key is unknown.
    """
    served = await client.served_models()
    listed = f"The server lists {', '.join(served[:5])}." if served else "The server lists no models."
    found = _is("model listed", model in served, listed)
    first, *rest = QUESTIONS.values()
    if long is not None:
        rest.append(_long(long))
    got = [await _got(client.complete(first.request))]
    got += await asyncio.gather(*(_got(client.complete(one.request)) for one in rest))
    for question, reply in zip((first, *rest), got, strict=True):
        found += question.findings(model, reply)
    if any(isinstance(reply, Completion) and reply.reasoning for reply in got):
        found.append(Finding(check="reasoning apart", answer="yes", note="Calls in it are not counted."))
    if left_out := client.stats.left_out:
        note = f"{', '.join(left_out)}: refused, so left out of the requests."
        found.append(Finding(check="parameters taken", answer="not in this form", note=note))
    return found


async def first(speaker: "ModelSpeaker", model: str, mode: str) -> tuple[Finding, ...]:
    """What `rbtc eval` asks before its first row; in prompt mode nothing about tools.

    Raises UserError where nobody answers.
    """
    found: list[Finding] = []
    for name in FIRST if mode == "fc" else FIRST[:2]:
        request = QUESTIONS[name].request
        tools = None if request.tools is None else [*request.tools]
        got = await _got(speaker.ask(wire.Ask([*request.messages], tools), 0))
        found += QUESTIONS[name].findings(model, got)
    return tuple(found)


async def _got(reply: Awaitable[Completion]) -> Got:
    try:
        return await reply
    except LLMError as error:
        return error


def _long(words: int) -> Question:
    """Whether a request of about so many tokens is taken."""
    check = f"{words} words"

    def tokens(model: str, got: Completion) -> list[Finding]:
        return [Finding(check=check, answer="yes", note=f"{got.prompt_tokens} tokens")]

    return Question(check, _asked("word " * words + "\nSay hello."), tokens, needed=True)


def failed(found: Sequence[Finding]) -> list[Finding]:
    """What `rbtc eval` warns of: checks whose answer is no, but for the list of models."""
    return [one for one in found if one.answer == "no" and one.check != "model listed"]


def mode(found: Sequence[Finding]) -> Literal["fc", "prompt"]:
    """The mode that fits the server: fc where native calls come."""
    return "fc" if any(one.check == "native call" and one.answer == "yes" for one in found) else "prompt"
