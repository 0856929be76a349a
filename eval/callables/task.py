"""What an agent of the user's gets for one request, and what it may give back."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from robustbench_tc.schema import Json, dumps

MAX_TEXT = 1_000_000
"""Characters of a reply, and of one call's arguments."""

MAX_CALLS = 1_000
"""Calls of one reply."""


@dataclass(kw_only=True)
class Reply:
    """An agent's answer to a request."""

    text: str = ""
    calls: Sequence[Any] = ()
    """`{"name": …, "arguments": {…}}` each, as OpenAI's `tool_calls` have them, or `(name, arguments)`."""
    usage: dict[str, int] | None = None
    """`prompt_tokens` and `completion_tokens`, where they are known."""


@dataclass(kw_only=True)
class Task:
    """One request to an agent. Nothing in it says whether, or how, the request is perturbed."""

    session: str
    """16 hex digits: the same while one request lasts, another for every request and repeat."""
    turn: int
    """From 1; above 1 the earlier turns stand in `messages`."""
    messages: list[dict[str, Json]]
    """OpenAI chat messages."""
    tools: list[dict[str, Json]]
    """OpenAI tools."""
    seed: int
    """Depends on the clean sample and the repeat alone, so a perturbed request has its clean one's."""
    state: dict[str, Any] = field(default_factory=dict)
    """The agent's own, kept while the session lasts."""
    call: Callable[..., str] = field(repr=False)
    """`call(name, arguments)` makes a call of a listed tool and returns what the tool answers, faults too.
    Raises TypeError for arguments that are no JSON object."""
    acall: Callable[..., Awaitable[str]] = field(repr=False)
    """As `call`. Calls that are awaited together are one batch."""


class Unreadable(ValueError):
    """What an agent gave back is no reply; one line."""


def reply_of(given: object) -> Reply:
    """What an agent returned as a `Reply`: that, a text, a list of calls, None (nothing), or a dict.

    A dict is `{"text": …, "calls": […]}`, an OpenAI assistant message, or a chat completion. Raises
    Unreadable.
    """
    if given is None:
        return Reply()
    if isinstance(given, str):
        return Reply(text=given)
    if isinstance(given, Reply):
        return given
    if isinstance(given, list):
        return Reply(calls=given)
    if not isinstance(given, dict):
        raise Unreadable(f"it returned {type(given).__name__}, which is no reply")
    choices = given.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        message, usage = choices[0].get("message"), given.get("usage")
        if isinstance(message, dict):
            return _message(message, usage)
    if "content" in given or "tool_calls" in given:
        return _message(given, given.get("usage"))
    if unknown := [name for name in given if name not in ("text", "calls", "usage")]:
        raise Unreadable(f"it returned a dict with {unknown[0]!r}: its keys are text, calls and usage")
    return Reply(text=given.get("text") or "", calls=given.get("calls") or (), usage=given.get("usage"))


def _message(message: dict[str, Any], usage: Any) -> Reply:
    return Reply(text=message.get("content") or "", calls=message.get("tool_calls") or (), usage=usage)


def text_of(reply: Reply) -> str:
    """The reply's text. Raises Unreadable."""
    if not isinstance(reply.text, str):
        raise Unreadable(f"its text is {type(reply.text).__name__}, not a text")
    if len(reply.text) > MAX_TEXT:
        raise Unreadable(f"its text has {len(reply.text):,} characters; at most {MAX_TEXT:,} are taken")
    return reply.text


def calls_of(reply: Reply) -> list[tuple[str, str]]:
    """The reply's calls as names and arguments in JSON text. Raises Unreadable."""
    if isinstance(reply.calls, str | bytes) or not isinstance(reply.calls, Sequence):
        raise Unreadable(f"its calls are {type(reply.calls).__name__}, not a list")
    if len(reply.calls) > MAX_CALLS:
        raise Unreadable(f"it makes {len(reply.calls):,} calls at once; at most {MAX_CALLS:,} are taken")
    try:
        return [_call(one) for one in reply.calls]
    except TypeError as error:
        raise Unreadable(str(error)) from None


def _call(given: Any) -> tuple[str, str]:
    if isinstance(given, tuple | list) and len(given) == 2:
        return name_of(given[0]), arguments_of(given[1])
    if not isinstance(given, dict):
        raise TypeError(f'a call is {type(given).__name__}: write {{"name": …, "arguments": {{…}}}}')
    inner = given["function"] if isinstance(given.get("function"), dict) else given
    if "name" not in inner:
        raise TypeError("a call has no name")
    return name_of(inner["name"]), arguments_of(inner.get("arguments", inner.get("parameters")))


def name_of(given: object) -> str:
    """A tool's name. Raises TypeError."""
    if not isinstance(given, str) or not given:
        raise TypeError(f"a call's name is {given!r:.80}, not a text")
    return given[:1_000]


def arguments_of(given: object) -> str:
    """A call's arguments as JSON text: of a dict, or a text taken as it is. Raises TypeError."""
    if given is None:
        return "{}"
    if isinstance(given, str):
        text = given
    elif isinstance(given, dict):
        try:
            text = dumps(given)
        except (TypeError, ValueError, RecursionError) as error:
            raise TypeError(f"a call's arguments are not JSON: {error}") from None
    else:
        raise TypeError(f"a call's arguments are {type(given).__name__}, not a dict")
    if len(text) > MAX_TEXT:
        raise TypeError(f"a call's arguments have {len(text):,} characters; at most {MAX_TEXT:,} are taken")
    return text


def tokens_of(usage: object, name: str) -> int | None:
    """A count of a reply's usage; None where it says none."""
    found = usage.get(name) if isinstance(usage, dict) else None
    return found if isinstance(found, int) and not isinstance(found, bool) and 0 <= found < 2**53 else None
