"""What can go wrong between a request and a completion, as data: one class, a closed list of codes."""

import math
import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Literal

from ..schema import Json
from .address import public

Code = Literal[
    "timeout",
    "connection",
    "rate_limit",
    "server_error",
    "not_a_completion",
    "empty_choices",
    "auth",
    "not_found",
    "bad_request",
    "too_long",
    "content_filter",
    "duplicate_tools",
    "rejected",
    "budget",
]
"""timeout, connection: no reply was had. rate_limit: 429. server_error: 408, 409, 5xx. not_a_completion: a
reply that is none (a web page, a list, an error object under status 200). empty_choices: a completion
without an answer in it. auth: 401, 403. not_found: no such model or route. too_long: the context length was
refused. content_filter: a filter of the provider refused the request's content. duplicate_tools: the registry
was refused because two tools share a name. rejected: because of a tool's name or schema. bad_request: any
other refusal. budget: `max_requests` or `max_cost` is used up; nothing was sent."""


class LLMError(Exception):
    """A request that got no completion. `message` is one line and never holds the key."""

    def __init__(
        self,
        code: Code,
        message: str,
        status: int | None = None,
        retryable: bool = False,
        *,
        retry_after_s: float | None = None,
        param: str | None = None,
        unreachable: bool = False,
    ) -> None:
        super().__init__(f"{code}: {message}")
        self.code: Code = code
        self.message = message
        self.status = status
        self.retryable = retryable
        self.retry_after_s = retry_after_s
        """What the server asked for (Retry-After), uncapped."""
        self.param = param
        """The parameter that the server names in its refusal."""
        self.unreachable = unreachable
        """No connection came about: refused, or no such host."""

    def saying(self, message: str) -> "LLMError":
        """The same in other words."""
        return LLMError(**{**vars(self), "message": message})


# The wordings of OpenAI, vLLM (several versions), SGLang, llama.cpp, TGI, Anthropic and Gemini behind
# OpenAI-compatible routes. `max_tokens must be at least 1, got -5` is an old vLLM with a full context.
_TOO_LONG = re.compile(
    r"context[ _](?:length|window|size)|maximum model length|max_model_len|prompt is too long|"
    r"input (?:length|token count).{0,80}exceeds|longer than the model|must have less than \d+ tokens|"
    r"(?:max_tokens|max_completion_tokens)\W{0,2} must be at least 1, got -|"
    r"inputs\W{0,2} tokens \+ \W?max_new_tokens\W? must be",
    re.IGNORECASE,
)
_DUPLICATE = re.compile(
    r"\b(?:tool|function)s?\b.{0,80}\b(?:unique|duplicate)|\bduplicate\w*\b.{0,80}\b(?:tool|function)", re.I
)
_FILTERED = re.compile(
    r"content[ _](?:management )?(?:filter|policy)|ResponsibleAIPolicy|"
    r"\b(?:prompt|input) was flagged|blocked (?:due to|by|for)\b.{0,40}\bsafety",
    re.IGNORECASE,
)
# Tight on purpose: a refused registry is scored, any other refusal is not.
_TOOL = re.compile(
    r"\btools[\[.]|\bfunctions?[\[.]|\b(?:tool|function)[ _]?(?:name|declaration|parameters|schema)|"
    r"\binput_schema\b",
    re.IGNORECASE,
)
_NO_MODEL = re.compile(
    r"\bmodel\b.{0,200}\b(?:not (?:exist|found|available)|does not exist|unknown)", re.I | re.S
)


def from_status(
    status: int, body: Json, headers: Mapping[str, str], *, with_tools: bool, now: float
) -> LLMError:
    """The error of a reply with a status of 4xx or 5xx.

    `with_tools`: the request carried a registry, which is when a refusal can be about one. `now`: seconds
    since the epoch, for a Retry-After that is a date.
    """
    message, code, param = _error_fields(body)
    said = f"HTTP {status}" + (f": {message}" if message else "")
    if status == 429:
        spent = code == "insufficient_quota"
        wait = _retry_after(headers, now)
        said += "" if wait is None else f" (Retry-After: {wait:.4g} s)"
        return LLMError("rate_limit", said, status, not spent, retry_after_s=wait, param=param)
    if status in (400, 403, 422) and _FILTERED.search(f"{code} {message}"):
        return LLMError("content_filter", said, status, param=param)
    if status in (401, 403):
        return LLMError("auth", said, status, param=param)
    if 300 <= status < 400:
        to = one_line(public(headers.get("location", "")), 100)
        return LLMError("bad_request", f"HTTP {status}, a redirect to {to or 'nowhere'}", status)
    if status == 413 or code == "context_length_exceeded" or _TOO_LONG.search(message):
        return LLMError("too_long", said, status, param=param)
    if status in (408, 409) or status >= 500:
        return LLMError("server_error", said, status, True, retry_after_s=_retry_after(headers, now))
    about_model = param in (None, "model") and _NO_MODEL.search(message)
    if status == 404 or code == "model_not_found" or about_model:
        return LLMError("not_found", said, status, param=param)
    if with_tools and not takes_no_tools(message):
        if _DUPLICATE.search(message):
            return LLMError("duplicate_tools", said, status, param=param)
        if (param or "").startswith(("tools", "functions")) or _TOOL.search(message):
            return LLMError("rejected", said, status, param=param)
    return LLMError("bad_request", said, status, param=param)


def takes_no_tools(message: str) -> bool:
    """Whether a refusal says that the endpoint takes no registry at all, whatever is in it."""
    return bool(re.search(r"--enable-auto-tool-choice|not support (?:tool|function)", message, re.IGNORECASE))


def _error_fields(body: Json) -> tuple[str, str | None, str | None]:
    """Message, code and parameter of an error body: OpenAI's object, vLLM's flat one, FastAPI's `detail`."""
    found = body
    for _ in range(2):
        if isinstance(found, dict) and isinstance(found.get("error"), dict | str):
            found = found["error"]
    if isinstance(found, dict):
        message = found.get("message") or found.get("detail") or found
        code, param = found.get("code"), found.get("param")
        # A gateway puts the provider's own words one level down.
        raw = found.get("metadata", {}).get("raw") if isinstance(found.get("metadata"), dict) else None
        text = f"{message} {raw}" if isinstance(raw, str) else str(message)
        return one_line(text), None if code is None else str(code), param if isinstance(param, str) else None
    return one_line(str(found or "")), None, None


def one_line(text: str, limit: int = 300) -> str:
    """White space as single spaces, bounded."""
    flat = " ".join(text[: 4 * limit].split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


def _retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds until the server wants to be asked again, from its headers."""
    value = headers.get("retry-after-ms", headers.get("retry-after", ""))
    try:
        seconds = float(value) / (1000 if "retry-after-ms" in headers else 1)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(value).timestamp() - now
        except (ValueError, OverflowError):
            return None
    return max(0.0, seconds) if math.isfinite(seconds) else None
