"""Which parameter of a request a server refuses: it is left out of every later one, and noted.

The wordings are those of OpenAI, Azure, vLLM, SGLang, Mistral, Groq, xAI, DeepSeek, Anthropic and Gemini.
"""

import re
from collections.abc import Iterable

from .errors import LLMError

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
