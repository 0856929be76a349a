"""What the answer of a tool is: an error of some kind, cut off, nothing, or as it should be."""

import json
import re
from typing import NamedTuple

import msgspec

from robustbench_tc.schema import Json

from .scenes import loaded

LONGEST = 4_000
"""Characters of an answer that are looked at; an error is short."""


class Kind(NamedTuple):
    """A fault as a log shows it."""

    name: str
    plan: str | None
    """The plan's kind that it becomes; None: a door has none."""
    words: str
    same: tuple[str, ...] = ()
    """Other kinds of the plan that a log cannot tell from it."""


KINDS = (
    Kind(
        "rate limit",
        "transient_rate_limit",
        r"\b429\b|rate.?limit|too many requests|quota (?:exceeded|exhausted)|throttl",
    ),
    Kind(
        "credentials refused",
        "transient_auth_error",
        r"\b40[13]\b|unauthori[sz]ed|forbidden|(?:access|permission) denied|not authenticated"
        r"|(?:invalid|expired|missing|wrong) (?:api.?key|credentials?|(?:access )?token)"
        r"|credentials are (?:invalid|expired)",
    ),
    Kind(
        "time-out",
        "transient_timeout",
        r"\b(?:408|504)\b|time[ds]?[ -]?out|deadline exceeded|took too long",
        ("timeout_after_effect",),
    ),
    Kind(
        "server error",
        "transient_server_error",
        r"\b50[0-35-9]\b|internal (?:server )?error|bad gateway|service (?:is )?unavailable|overloaded"
        r"|temporarily unavailable",
    ),
    Kind(
        "no connection",
        "transient_server_error",
        r"connection (?:was )?(?:refused|reset|aborted|closed|error|failed)|network (?:is )?error"
        r"|unreachable|econn\w+|broken pipe|name resolution|could not connect",
    ),
    Kind(
        "schema changed",
        "transient_schema_drift",
        r"schema validation|(?:does|did) not match (?:the |its )?(?:\w+ ){0,4}schema"
        r"|(?:extra|unexpected) fields?",
    ),
    Kind(
        "answer broken",
        "transient_malformed_response",
        r"malformed|(?:could|can) ?not be parsed|invalid json|not valid json|unexpected (?:token|end of)"
        r"|json ?decode|truncated",
    ),
    Kind("not found", None, r"\b404\b|not found|no such|does(?: not|n't) exist|unknown (?:tool|function)"),
    Kind(
        "arguments refused",
        None,
        r"\b4(?:00|22)\b|validation error|is required|required (?:property|field|parameter|argument)"
        r"|(?:invalid|missing|unexpected|bad) (?:\w+ )?(?:arguments?|parameters?|values?|inputs?|request)",
    ),
    Kind("other error", None, r""),
)
"""The first whose words are there; the last three are no fault of the tools, or none that a plan has."""

SLOW, TRUNCATED, EMPTY = (
    Kind(*names, "") for names in (("slow", "latency"), ("cut short", "truncated"), ("empty", "empty_result"))
)
"""What no words tell."""
CUT_BY_THE_LOG = Kind("cut where the log cuts", None, "")
"""Several answers are as long as the longest, and cut there."""
PERHAPS_EMPTY = Kind("empty, with nothing to compare", None, "")
"""No other conversation made the same call and was answered something."""

_STARTS = re.compile(
    r"\W{0,3}\s*(?:tool |an? |the )?(?:error|exception|traceback|fail(?:ed|ure)"
    r"|http[ /](?!(?:[\d.]+ )?[123]\d\d\b)|[45]\d\d\b(?![\d\W]*$)"  # 450 alone is a value
    r"|tool execution|malformed|schema validation|time[ds]?[ -]?out|request (?:failed|timed)|connection "
    r"|rate.?limit|too many|unauthori|forbidden|access denied|permission denied|internal (?:server )?error"
    r"|service unavailable|bad gateway|gateway time|(?:openai|httpx|requests|urllib|aiohttp|asyncio|json)\."
    r"|\w{2,40}(?:error|exception|timeout)\b)",
    re.IGNORECASE,
)
_NAMES = ("error", "errors", "exception", "error_message", "errorMessage", "fault")
_FAILED = re.compile(r"(?i)[45]\d\d|error|failed|failure")
_CODES = ("status", "status_code", "statusCode", "code", "http_status")


def kind_of(text: str) -> Kind | None:
    """The kind of an answer; None for one that is no error."""
    said = error_of(text)
    if said is None:
        return None
    return next(kind for kind in KINDS if re.search(kind.words, said, re.IGNORECASE))


def error_of(text: str) -> str | None:
    """The error that an answer is; None for one that is none, whatever it speaks of."""
    short = text[:LONGEST]
    if short.lstrip()[:1] in ("{", "["):
        found = loaded(text)
        if isinstance(found, list) and len(found) == 1:
            found = found[0]
        if isinstance(found, dict | list):
            failed = isinstance(found, dict) and _failed(found)
            return json.dumps(found, ensure_ascii=False)[:LONGEST] if failed else None
    return short if _STARTS.match(short.lstrip()) else None


def is_empty(text: str) -> bool:
    """Whether an answer holds nothing."""
    return text.strip() in ("", "[]", "{}", '""', "null")


def is_cut(text: str) -> bool:
    """Whether an answer begins as JSON and ends before that does."""
    try:
        # A number that ends in one of these is cut too, and the library calls it malformed.
        msgspec.json.decode(text.rstrip("+-.eE").encode(errors="replace"))
    except (msgspec.DecodeError, RecursionError) as error:
        return text.lstrip()[:1] in ("{", "[") and "truncated" in str(error)
    return False


def _failed(found: dict[str, Json]) -> bool:
    """Whether one of an object's own keys says that it is an error."""
    codes = [found.get(name) for name in _CODES]
    return (
        any(found.get(name) for name in _NAMES)
        or found.get("isError") is True
        or found.get("is_error") is True
        or found.get("success") is False
        or found.get("ok") is False
        or any(_FAILED.fullmatch(str(code)) for code in codes)
    )


def bare(text: str) -> str:
    """An answer out of the object that Gemini's SDK puts around a text."""
    found = loaded(text) if text.startswith('{"result"') else None
    inner = found["result"] if isinstance(found, dict) and len(found) == 1 else None
    return inner if isinstance(inner, str) else text
