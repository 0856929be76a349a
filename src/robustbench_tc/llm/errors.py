"""What can go wrong between a request and a completion, as data: one class, a closed list of codes. And which
parameter of a request a server refuses: it is left out of every later one, and noted.
"""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from typing import Literal

from ..schema import Json
from .endpoint import public

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


@dataclass(eq=False)
class LLMError(Exception):
    """A request that got no completion."""

    code: Code
    message: str
    """One line, which never holds the key."""
    status: int | None = None
    retryable: bool = False
    retry_after_s: float | None = None
    """What the server asked for (Retry-After), uncapped."""
    param: str | None = None
    """The parameter that the server names in its refusal."""
    unreachable: bool = False
    """No connection came about: refused, or no such host."""

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"

    def saying(self, message: str) -> "LLMError":
        """The same in other words."""
        return replace(self, message=message)


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
    r"\b(?:tool|function)s?\b.{0,80}\b(?:unique|duplicate|already (?:exists|defined)|more than once)"
    r"|\bduplicate\w*\b.{0,80}\b(?:tool|function)",
    re.IGNORECASE,
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
    if 300 <= status < 400:
        to = one_line(public(headers.get("location", "")), 100)
        return LLMError("bad_request", f"HTTP {status}, a redirect to {to or 'nowhere'}", status)
    about_tools = with_tools and not takes_no_tools(message)
    about_model = param in (None, "model") and _NO_MODEL.search(message)
    of_tools = (param or "").startswith(("tools", "functions")) or _TOOL.search(message)
    kinds: dict[Code, object] = {  # the first that holds
        "rate_limit": status == 429,
        "content_filter": status in (400, 403, 422) and _FILTERED.search(f"{code} {message}"),
        "auth": status in (401, 403),
        "too_long": status == 413 or code == "context_length_exceeded" or _TOO_LONG.search(message),
        "server_error": status in (408, 409) or status >= 500,
        "not_found": status == 404 or code == "model_not_found" or about_model,
        "duplicate_tools": about_tools and _DUPLICATE.search(message),
        "rejected": about_tools and of_tools,
    }
    kind: Code = next((one for one, holds in kinds.items() if holds), "bad_request")
    if kind == "rate_limit":
        wait = _retry_after(headers, now)
        said += "" if wait is None else f" (Retry-After: {wait:.4g} s)"
        spent = code == "insufficient_quota"
        return LLMError(kind, said, status, not spent, retry_after_s=wait, param=param)
    if kind == "server_error":
        return LLMError(kind, said, status, True, retry_after_s=_retry_after(headers, now))
    return LLMError(kind, said, status, param=param)


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


# The wordings are those of OpenAI, Azure, vLLM, SGLang, Mistral, Groq, xAI, DeepSeek, Anthropic and Gemini.

KEPT = frozenset({"model", "messages", "tools"})
"""Without these a request is another question: never left out."""

_REFUSED = re.compile(
    r"unsupported|not support|n't support|not permitted|not allowed|unrecognized|"
    r"(?:unexpected|unknown) (?:keyword|parameter|argument|field|property|key|name)|not enabled|n't enabled|"
    r"may only be set|deprecated for this model|"
    r"extra_forbidden|cannot find field|not accepted|not a valid (?:parameter|argument)",
    re.IGNORECASE,
)
_VALUES = re.compile(
    r"unsupported[ _]value|supported values|valid (?:values|options)|expected one of|must be one of|"
    r"input should be|must be (?:between|at (?:least|most)|less|greater|in|a|an)\b",
    re.IGNORECASE,
)
_MOST_TOKENS = re.compile(
    r"max_(?:completion_)?tokens.{0,80}too large.{0,120}?at most (\d{1,9})\b", re.I | re.S
)
_NO_SYSTEM = re.compile(
    r"\bsystem\W{0,2} (?:role|message)s?\b.{0,40}\bnot (?:supported|allowed)|"
    r"not support (?:the )?\W?system\W? (?:role|message)",
    re.I,
)
_FIXED_BY_MODEL = ("temperature", "top_p", "presence_penalty", "frequency_penalty")
"""Reasoning models take the default of these only and call any other value unsupported: that is a refusal of
the parameter. For all others a refused value is a mistake that the user has to know of."""


def refused(error: LLMError, names: Iterable[str]) -> str | None:
    """The one of `names` that the server does not take at all; None for a refusal of something else."""
    if error.status not in (400, 403, 422) or error.code not in ("bad_request", "rejected", "auth"):
        return None
    if not _REFUSED.search(error.message):
        return None
    name = _named(error, names)
    if name is None or (name not in _FIXED_BY_MODEL and _VALUES.search(error.message)):
        return None
    return name


def most_tokens(error: LLMError) -> int | None:
    """How many tokens a reply may have, where the server refuses more; None for any other refusal."""
    if error.status not in (400, 422) or error.code != "bad_request":
        return None
    found = _MOST_TOKENS.search(error.message)
    return int(found[1]) if found else None


def takes_no_system(error: LLMError) -> bool:
    """Whether the server refuses system messages: chat templates such as Gemma's have no place for one."""
    return error.status is not None and _NO_SYSTEM.search(error.message) is not None


def refused_value(error: LLMError, names: Iterable[str]) -> str | None:
    """The one of `names` whose value the server refuses."""
    if error.status not in (400, 422) or error.code != "bad_request" or not _VALUES.search(error.message):
        return None
    return _named(error, names)


def _named(error: LLMError, names: Iterable[str]) -> str | None:
    """What the server names as the parameter, else the first name in its message."""
    places: list[tuple[int, str]] = []
    for name in names:
        if name in KEPT:
            continue
        if error.param is not None and error.param.rsplit(".", 1)[-1] in (name, _camel(name)):
            return name
        if found := _mention(name).search(error.message):
            places.append((found.start(), name))
    return min(places)[1] if places else None


def _mention(name: str) -> re.Pattern[str]:
    """A name in a message. One that is a word, too (`stop`, `seed`), counts only where it is set off."""
    either = "|".join(dict.fromkeys(map(re.escape, (name, _camel(name)))))
    if "_" in name or name in ("logprobs", "temperature"):
        return re.compile(rf"(?<![\w-])(?:{either})(?![\w-])", re.IGNORECASE)
    return re.compile(
        rf"[\"'`](?:{either})[\"'`]"
        rf"|(?:parameters?|arguments?|fields?|propert(?:y|ies)|supplied|model):? (?:{either})\b"
        rf"|(?:^|[.\s])(?:{either}): |(?:^|: )(?:{either}) is (?:not|un)",
        re.IGNORECASE,
    )


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)
