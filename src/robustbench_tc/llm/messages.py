"""The shapes of a model call: what is asked, what comes back, and how a reply is read without trusting it."""

import hashlib
import json
from collections.abc import Sequence
from typing import Literal

import msgspec

from ..schema import Json
from .errors import LLMError, one_line


class ChatRequest(msgspec.Struct, frozen=True):
    """What a model is asked, in the shapes of the chat-completions API."""

    messages: Sequence[dict[str, Json]]
    tools: Sequence[dict[str, Json]] | None = None
    params: dict[str, Json] = {}
    """temperature, max_tokens, top_p, seed, logprobs, response_format, …; `extra_body` is merged in."""
    repeat: int = 0
    """Tells the same question apart when it is asked again on purpose."""

    def key(self, model: str) -> str:
        """sha256 over model, parameters, messages and tools: the address of the answer in a store."""
        params = msgspec.Raw(encode(self.params, order="sorted"))  # their order does not matter
        what = (model, params, self.messages, self.tools, self.repeat)
        return hashlib.sha256(encode(what)).hexdigest()


class Completion(msgspec.Struct, frozen=True, kw_only=True):
    """A model's answer, as received."""

    text: str
    """"" when the model said nothing besides its tool calls."""
    tool_calls: list[dict[str, str]] | None = None
    """`{"id", "name", "arguments"}` each, with `arguments` as the raw text; None: no call. `fault` where the
    reply's own form was broken (`legacy_function_call`, `arguments_not_text`, `bad_id`)."""
    finish_reason: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    model: str | None = None
    """The model id that the server reports."""
    latency_s: float = 0.0
    """Seconds from sending to the whole reply, of the attempt that succeeded."""
    retries: int = 0
    logprobs: Json = None
    reasoning: str | None = None
    replayed: bool = False
    """Came from the store; nothing was asked."""


def call_id(own: str) -> str:
    """A call's id as every server takes it back: nine letters or digits, the same for the same `own`."""
    return hashlib.sha256(own.encode("utf-8", "surrogatepass")).hexdigest()[:9]


def completion(reply: Json, latency_s: float = 0.0) -> Completion:
    """The first choice of a chat-completions reply. Raises LLMError for anything else."""
    if not isinstance(reply, dict) or not isinstance(reply.get("choices"), list):
        said = reply.get("error", reply) if isinstance(reply, dict) else reply
        raise LLMError("not_a_completion", f"no choices in {one_line(str(said)[:400], 160)}", 200, True)
    if not reply["choices"]:
        raise LLMError("empty_choices", "the reply holds no choice", 200, True)
    choice = reply["choices"][0]
    if failed := _failed(reply, choice):
        raise LLMError("server_error", f"the reply says {failed}", 200, True)
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(message, dict):
        raise LLMError("not_a_completion", "the first choice holds no message", 200, True)
    usage = reply["usage"] if isinstance(reply.get("usage"), dict) else {}
    thought = message.get("reasoning_content") or message.get("reasoning")
    finish = choice.get("finish_reason")
    return Completion(
        text=_text(message.get("content")) or _text(message.get("refusal")),
        tool_calls=_tool_calls(message),
        finish_reason=finish if isinstance(finish, str) else None,
        prompt_tokens=_count(usage.get("prompt_tokens")),
        completion_tokens=_count(usage.get("completion_tokens")),
        model=reply["model"] if isinstance(reply.get("model"), str) else None,
        latency_s=latency_s,
        logprobs=choice.get("logprobs"),
        reasoning=thought if isinstance(thought, str) else None,
    )


_FAILED = ("error", "network_error")
"""Finish reasons of a provider that could not answer."""


def _failed(*parts: Json) -> str:
    """What a reply or its choice says of a failure of the provider; "" where it says none."""
    for part in parts:
        if not isinstance(part, dict):
            continue
        if part.get("error"):
            return f"error: {one_line(str(part['error'])[:400], 160)}"
        if part.get("finish_reason") in _FAILED:
            return f"finish_reason: {part['finish_reason']}"
    return ""


def _text(content: Json) -> str:
    """A message's content: a text, or a list of parts of which the texts count."""
    if isinstance(content, list):
        return "".join(_text(part.get("text")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _tool_calls(message: dict[str, Json]) -> list[dict[str, str]] | None:
    """Native calls; a broken form of their own is mended, and named in `fault`."""
    found, legacy = message.get("tool_calls"), False
    if not found and isinstance(message.get("function_call"), dict):  # the API before tools
        found, legacy = [{"function": message["function_call"]}], True
    if not found:
        return None
    seen: set[str] = set()
    calls: list[dict[str, str]] = []
    try:
        for number, call in enumerate(found):
            own, arguments = call.get("id"), call["function"].get("arguments")
            made = {
                "id": str(own or f"call_{number}"),
                "name": str(call["function"]["name"]),
                "arguments": _arguments(arguments),
            }
            if legacy:
                made["fault"] = "legacy_function_call"
            elif not isinstance(arguments, str | None):
                made["fault"] = "arguments_not_text"
            elif not isinstance(own, str) or not own or own in seen:
                made["fault"] = "bad_id"
            seen.add(made["id"])
            calls.append(made)
    except (KeyError, TypeError, AttributeError):
        raise LLMError("not_a_completion", "a tool call without a function", 200, True) from None
    return calls


def _arguments(value: Json) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else encode(value).decode()


def _count(value: Json) -> int | None:
    """A number of tokens; None for what is none, and would not fit a column nor a sum."""
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**40
    return value if is_count else None


def encode(value: Json, order: Literal["sorted"] | None = None) -> bytes:
    """JSON bytes, in insertion order or sorted. Raises LLMError for what JSON cannot hold."""
    try:
        return msgspec.json.encode(value, order=order)
    except (UnicodeEncodeError, TypeError) as error:
        raise LLMError("bad_request", f"the request is not JSON: {error}") from None


def decode(content: bytes) -> Json:
    """JSON, also with lone surrogates: a byte-level model can stop in the middle of a character."""
    try:
        return msgspec.json.decode(content)
    except ValueError:
        text = json.dumps(json.loads(content), ensure_ascii=False)
        return json.loads(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
