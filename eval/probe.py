"""`rbtc probe`: what a server does with the requests that a run makes, in fourteen short ones."""

import asyncio
from collections.abc import Awaitable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from robustbench_tc.compute import loop
from robustbench_tc.llm import ChatRequest, Client, Completion, Endpoint, LLMError, over_http
from robustbench_tc.schema import Json, Tool
from robustbench_tc.shown import Part, Table

from . import delivered, wire
from .read_reply import read_reply
from .record import Answered, Finding

if TYPE_CHECKING:
    from .speakers import ModelSpeaker

MAX_TOKENS = 512
"""Of each reply: a model that thinks first needs some."""

TIMEOUT_S = 60.0

FIRST = ("canary", "system", "call", "two calls", "history")
"""What `rbtc eval` asks before its first row."""

Got = Completion | LLMError


class Question(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A request (`probe.json`), what its reply has to have, and what it means where it has not."""

    check: str
    messages: list[dict[str, Json]]
    tools: tuple[Tool, ...] = ()
    """Their names go out as they are here: whether a server takes them is the question."""
    params: dict[str, Json] = {}
    says: str = ""
    """A word of the reply's text."""
    calls: int = 0
    """So many native calls at least."""
    fine: str = ""
    otherwise: str = ""
    """The note where the reply has it, or not; `{said}`, `{calls}` and `{tokens}` are the reply's."""
    refused: str = ""
    """What a refusal of the request means."""
    needed: bool = False
    """Whether a run needs that the request is taken."""

    @property
    def request(self) -> ChatRequest:
        """As it is sent."""
        sent: list[dict[str, Json]] = [
            {"type": "function", "function": msgspec.to_builtins(one)} for one in self.tools
        ]
        return ChatRequest(self.messages, sent or None, {"max_tokens": MAX_TOKENS, **self.params})

    def findings(self, model: str, got: Got) -> list[Finding]:
        """What came of it."""
        if isinstance(got, LLMError):
            answer: Answered = "no" if self.needed else "not in this form"
            return [Finding(check=self.check, answer=answer, note=f"{self.refused} ({got})".strip())]
        if self.check == "tools accepted":
            return _calls(model, self.tools, got)
        calls = len(got.tool_calls or ())
        answer = "yes" if self.says in got.text.lower() and calls >= self.calls else "no"
        if "logprobs" in self.params and got.logprobs is None:
            answer = "not in this form"
        note = self.fine if answer == "yes" else self.otherwise
        said = note.format(said=got.text[:60], calls=calls, tokens=got.prompt_tokens)
        return [Finding(check=self.check, answer=answer, note=said)]


QUESTIONS = msgspec.json.decode(Path(__file__).with_suffix(".json").read_bytes(), type=dict[str, Question])


def _is(check: str, fine: bool, otherwise: str = "") -> list[Finding]:
    return [Finding(check=check, answer="yes") if fine else Finding(check=check, answer="no", note=otherwise)]


def _calls(model: str, tools: tuple[Tool, ...], got: Completion) -> list[Finding]:
    """Whether tools are taken, a native call comes, and its arguments are an object."""
    native = wire.names_back(tools, got.tool_calls)
    meant = read_reply(
        got.text, native, source="bfcl_v3", tools=tools, model=model, mode="fc", reasoning=got.reasoning
    )
    reason = delivered.undelivered(native, meant, tools, got.finish_reason)
    means = f"{reason}: {delivered.MEANING[reason]}" if reason else ""
    found = _is("tools accepted", True)
    if native:
        return found + _is("native call", True) + _is("arguments", reason is None, means)
    none = f"no call: The model made no call (it said {got.text[:60]!r})"
    return found + _is("native call", False, means or none)


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
        if found := failed(self.findings):
            yield f"exits with 1: every run needs {', '.join(repr(one.check) for one in found)}"
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
        said = "word " * long + "\nSay hello."
        many = [{"role": "user", "content": said}]
        rest.append(Question(f"{long} words", many, fine="{tokens} tokens", needed=True))
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

    A question whose retries are used up is the last: each other one would wait as long.
    Raises UserError where nobody answers.
    """
    found: list[Finding] = []
    for name in FIRST if mode == "fc" else FIRST[:2]:
        request = QUESTIONS[name].request
        tools = None if request.tools is None else [*request.tools]
        got = await _got(speaker.ask(wire.Ask([*request.messages], tools), 0))
        found += QUESTIONS[name].findings(model, got)
        if isinstance(got, LLMError) and got.retryable:
            break
    return tuple(found)


async def _got(reply: Awaitable[Completion]) -> Got:
    try:
        return await reply
    except LLMError as error:
        return error


def failed(found: Sequence[Finding]) -> list[Finding]:
    """What `rbtc eval` warns of: checks whose answer is no, but for the list of models."""
    return [one for one in found if one.answer == "no" and one.check != "model listed"]


def mode(found: Sequence[Finding]) -> Literal["fc", "prompt"]:
    """The mode that fits the server: fc where native calls come."""
    return "fc" if any(one.check == "native call" and one.answer == "yes" for one in found) else "prompt"
