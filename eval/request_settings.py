"""What a user says about requests beside the model: decoding, system text, headers, cost; all checked.

What an answer depends on goes into the run's identity (`record.Settings`); a limit of cost does not, nor does
the value of a header, which may be a secret: of that only a digest is kept.
"""

import hashlib
import json
import math
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import UnionType
from typing import Any, TypeAlias, TypedDict

import msgspec

from robustbench_tc.errors import UserError
from robustbench_tc.schema import Json

from . import models
from .models import Model

OURS = ("model", "messages", "tools", "stream", "stream_options", "n")
"""Fields of a request's body that the harness itself fills in, or whose replies it could not read."""

_SECRET_NAME = re.compile(r"(?:^|_)(?:api_?key|secret|password|authorization|auth|token|headers?)$", re.I)

MAX_SYSTEM = 1_000_000
"""Characters of a system text."""

_NUMBERS: tuple[tuple[str, type | UnionType, float, float, str], ...] = (
    ("seed", int, -(2**63), 2**63 - 1, "a whole number of 64 bits"),
    ("temperature", int | float, 0, sys.float_info.max, "0 or more"),
    ("max_tokens", int, 1, 2**63 - 1, "1 or more"),
    ("top_p", int | float, math.ulp(0.0), 1, "a number above 0 and at most 1"),
    ("top_k", int, -1, 2**63 - 1, "1 or more (0 or -1: all)"),
)
"""Fields that are numbers: kind, least, most, and what to give instead of another."""

_CLIENTS_OWN = (
    "host",
    "content-length",
    "content-type",
    "transfer-encoding",
    "connection",
    "accept-encoding",
)


Headers: TypeAlias = tuple[tuple[str, str], ...]
"""Names and values."""


class RequestOptions(TypedDict, total=False):
    """Keywords of `evaluate` about the requests; each may be None or empty, which is the default."""

    seed: int | None
    """Repeat n is asked with seed + n."""
    temperature: float | None
    max_tokens: int | None
    logprobs: bool
    """Asks for log probabilities and keeps them."""
    top_p: float | None
    """Above 0, at most 1."""
    top_k: int | None
    """1 or more; 0 or -1: all, where a server knows that."""
    stop: str | Sequence[str]
    reasoning_effort: str | None
    """As the endpoint calls it: low, medium, high, …"""
    system: str | None
    """Stands in front of every system message, or is one."""
    system_as_user: bool
    """The system text stands before the first user message: for chat templates without a system role."""
    extra_body: Mapping[str, Json]
    """Further fields of the request's body, whatever the endpoint calls them; null leaves a default out."""
    headers: Mapping[str, str]
    """Sent with every request; the values are neither printed nor written anywhere."""
    chat_template_args: Mapping[str, Json]
    """For the chat template (`chat_template_kwargs`), over those of the models' table."""
    max_cost: float | None
    """In the currency of `price`, over all sessions of the run."""
    price: tuple[float, float] | None
    """Per million prompt and completion tokens."""


@dataclass(frozen=True, kw_only=True, repr=False)
class RequestSettings:
    """The same, checked. Its text form shows no header's value: it has none."""

    decoding: dict[str, Json]
    """What goes into the body of every request."""
    system: str | None = None
    system_as_user: bool = False
    headers: Headers = ()
    """Sorted: their order on the command line does not matter."""
    max_cost: float | None = None
    price: tuple[float, float] | None = None

    @property
    def identity(self) -> dict[str, Any]:
        """The fields of `record.Settings` that are said here."""
        names = tuple(name.lower() for name, _ in self.headers)
        return {"decoding": self.decoding, "system": self.system, "headers": names}

    @property
    def header_digests(self) -> dict[str, str]:
        """8 hex digits of each value: they show that it has changed, and are too short to confirm a guess.

        scrypt, so that guessing is slow as well.
        """
        return {
            name.lower(): hashlib.scrypt(
                value.encode(), salt=name.lower().encode(), n=2**12, r=8, p=1, dklen=4
            ).hex()
            for name, value in self.headers
        }


def settle(entry: Model | None, options: RequestOptions, agent: str | None = None) -> RequestSettings:
    """Checks the options. `entry`: the model's of the table; `agent`: the reference agent that is asked.

    Raises UserError for a wrong value.
    """
    if agent is not None and (options.get("system") is not None or options.get("system_as_user")):
        raise UserError("--agent answers the requests as they are: leave --system and --system-as-user out")
    price, max_cost = _price(options.get("price")), options.get("max_cost")
    if max_cost is not None:
        if not (_is_number(max_cost) and 0 <= max_cost < math.inf):
            raise UserError(f"max_cost {max_cost!r}: give 0 or more")
        if price is None:
            raise UserError(
                "a cost limit needs the prices per million prompt and completion tokens: --price IN,OUT"
            )
    return RequestSettings(
        decoding=_decoding(entry, options),
        system=_system(options.get("system")),
        system_as_user=options.get("system_as_user", False),
        headers=headers(options),
        max_cost=max_cost,
        price=price,
    )


def _decoding(entry: Model | None, options: RequestOptions) -> dict[str, Json]:
    """What is sent with every request: the models' table, or the paper's defaults, under what was given."""
    named = _named(options)
    extra = json_object("extra_body", options.get("extra_body") or {})
    for name in extra:
        if _SECRET_NAME.search(name):
            raise UserError(
                f"extra_body: {name} would be written into the run record: keys come from the environment, "
                "headers from --header"
            )
        if name in OURS:
            raise UserError(f"extra_body: {name} is what the harness itself sends: leave it out")
        if name in named:
            raise UserError(f"{name} stands both in extra_body and as an option of its own: give it once")
    found = entry.decoding() if entry is not None else dict(models.DEFAULT_DECODING)
    found |= named
    template = json_object("chat_template_args", options.get("chat_template_args") or {})
    if template and "chat_template_kwargs" in extra:
        raise UserError("chat_template_kwargs stands in extra_body: give it there or as chat_template_args")
    if entry is not None and entry.thinking == "off":
        template = {**models.NO_THINKING, **template}
    if template:
        found["chat_template_kwargs"] = dict(sorted(template.items()))
    for name, value in extra.items():
        if value is None:  # how a default is left out
            found.pop(name, None)
        else:
            found[name] = value
    return found


def _named(options: RequestOptions) -> dict[str, Json]:
    """The fields that have an option of their own, those that were given."""
    named: dict[str, Json] = {}
    for name, kind, least, most, said in _NUMBERS:
        value: Any = options.get(name)
        if value is None:
            continue
        fits = isinstance(value, kind) and not isinstance(value, bool)
        if not (fits and least <= value <= most):
            raise UserError(f"{name} {value!r}: give {said}")
        named[name] = value
    if stop := options.get("stop"):
        named["stop"] = _stop(stop)
    if (effort := options.get("reasoning_effort")) is not None:
        if not isinstance(effort, str) or not re.fullmatch(r"[\w-]{1,40}", effort):
            raise UserError(f"reasoning_effort {effort!r}: give one word, such as low, medium or high")
        named["reasoning_effort"] = effort
    if options.get("logprobs"):
        named["logprobs"] = True
    return named


def by_name(value: Json) -> Json:
    """JSON with the names of every object sorted: equal for equal settings, in whatever order they came."""
    if isinstance(value, dict):
        return {name: by_name(value[name]) for name in sorted(value)}
    return [by_name(one) for one in value] if isinstance(value, list | tuple) else value


def json_object(what: str, value: Any) -> dict[str, Json]:
    """A JSON object; raises UserError for what JSON cannot say."""
    if not isinstance(value, Mapping):
        raise UserError(f"{what}: expected names with values (a JSON object)")
    try:
        found: dict[str, Json] = json.loads(json.dumps(dict(value), allow_nan=False))
        msgspec.json.encode(found)  # which takes whole characters only
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise UserError(f"{what}: JSON cannot hold it: {error}") from None
    return found


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _stop(stop: object) -> list[str]:
    texts = [stop] if isinstance(stop, str) else list(stop) if isinstance(stop, list | tuple) else [None]
    if any(not isinstance(text, str) or not text for text in texts):
        raise UserError("stop: give texts that are not empty")
    return texts  # type: ignore[return-value]


def _system(text: str | None) -> str | None:
    if text is None:
        return None
    if not text.strip():
        raise UserError("system: the text is empty")
    if len(text) > MAX_SYSTEM:
        raise UserError(f"system: {len(text)} characters; at most {MAX_SYSTEM} are taken")
    return text.strip("\n")


def _price(price: Sequence[float] | None) -> tuple[float, float] | None:
    if price is None:
        return None
    if len(price) != 2 or not all(_is_number(one) and 0 <= one < math.inf for one in price):
        raise UserError("price: give two numbers, 0 or more, per million prompt and completion tokens")
    return (float(price[0]), float(price[1]))


def headers(options: RequestOptions) -> Headers:
    """Names as HTTP has them. Raises UserError, which shows no value."""
    given = options.get("headers") or {}
    found: dict[str, tuple[str, str]] = {}
    for name, value in given.items():
        if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}", name):
            raise UserError("header: a name holds letters, digits and - only; write NAME=VALUE")
        if name.lower() in _CLIENTS_OWN:
            raise UserError(f"header {name}: the client itself sets it: leave it out")
        if not isinstance(value, str) or not value.strip():
            raise UserError(f"header {name}: it has no value")
        if not re.fullmatch(r"[\x20-\x7e]+", value.strip()):
            raise UserError(f"header {name}: its value holds characters that a header cannot carry")
        if name.lower() in found:
            raise UserError(f"header {name} is given twice")
        # The client's own header of this name is replaced, not sent beside it.
        shown = "Authorization" if name.lower() == "authorization" else name
        found[name.lower()] = (shown, value.strip())
    return tuple(found[name] for name in sorted(found))
