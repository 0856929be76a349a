"""What an agent of the user's gets for one request, and what it may give back."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from robustbench_tc.schema import Json, dumps

MAX_TEXT = 1_000_000
"""Characters of a reply, and of one call's arguments."""

MAX_CALLS = 1_000
"""Calls of one reply."""


class Failed(Exception):
    """The agent gave no reply; one line."""


@dataclass(kw_only=True)
class Reply:
    """An agent's answer to a request."""

    text: Annotated[str, Meta(max_length=MAX_TEXT)] = ""
    calls: Annotated[Sequence[Any], Meta(max_length=MAX_CALLS)] = ()
    """`{"name": …, "arguments": {…}}` each, as OpenAI's `tool_calls` have them, or `(name, arguments)`."""
    usage: Any = None
    """A dict with `prompt_tokens` and `completion_tokens`, where they are known."""

    def tokens(self, name: str) -> int | None:
        """A count of the usage; None where it says none."""
        found = self.usage.get(name) if isinstance(self.usage, dict) else None
        return found if type(found) is int and 0 <= found < 2**53 else None


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


def reply_of(given: object) -> Reply:
    """What an agent returned as a `Reply` whose calls are pairs of a name and arguments in JSON text.

    It may be a Reply, a text, a list of calls, None (nothing), or a dict: `{"text": …, "calls": […]}`, an
    OpenAI assistant message, or a chat completion. Raises TypeError and ValueError for what is no reply.
    """
    if isinstance(given, dict):
        given = _of_dict(given)
    elif given is None or isinstance(given, str):
        given = Reply(text=given or "")
    elif isinstance(given, list):
        given = Reply(calls=given)
    if not isinstance(given, Reply):
        raise TypeError(f"it returned {type(given).__name__}, which is not a reply")
    found = msgspec.convert(vars(given), Reply)
    return replace(found, calls=[_call(one) for one in found.calls])


def _of_dict(given: dict[str, Any]) -> Reply:
    match given:
        case {"choices": [{"message": dict() as message}, *_]}:
            said = message
        case {"content": _} | {"tool_calls": _}:
            said = given
        case _ if unknown := given.keys() - {"text", "calls", "usage"}:
            raise TypeError(f"it returned a dict with {min(unknown)!r}: its keys are text, calls and usage")
        case _:
            said = {"content": given.get("text"), "tool_calls": given.get("calls")}
    return Reply(text=said.get("content") or "", calls=said.get("tool_calls") or (), usage=given.get("usage"))


def _call(given: Any) -> tuple[str, str]:
    match given:
        case [name, arguments]:
            return call_of(name, arguments)
        case {"function": {"name": name} as inner} | ({"name": name} as inner):
            return call_of(name, inner.get("arguments", inner.get("parameters")))
        case dict():
            raise TypeError("a call has no name")
    raise TypeError(f'a call is {type(given).__name__}: write {{"name": …, "arguments": {{…}}}}')


def call_of(name: object, arguments: object) -> tuple[str, str]:
    """A call's name and its arguments as JSON text: of a dict, or a text taken as it is. Raises TypeError."""
    if not isinstance(name, str) or not name:
        raise TypeError(f"a call's name is {name!r:.80}, not a text")
    if arguments is None or isinstance(arguments, dict):
        try:
            arguments = dumps(arguments or {})
        except (TypeError, ValueError, RecursionError) as error:
            raise TypeError(f"a call's arguments are not JSON: {error}") from None
    if not isinstance(arguments, str):
        raise TypeError(f"a call's arguments are {type(arguments).__name__}, not a dict")
    if len(arguments) > MAX_TEXT:
        raise TypeError(
            f"a call's arguments have {len(arguments):,} characters; at most {MAX_TEXT:,} are taken"
        )
    return name[:1_000], arguments
