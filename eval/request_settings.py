"""What a user says about requests beside the model: decoding, system text, headers, cost; all checked.

What an answer depends on goes into the run's identity (`record.Settings`); a limit of cost does not, nor does
the value of a header, which may be a secret: of that only a digest is kept.
"""

import hashlib
import json
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Self, TypeAlias

import msgspec
from msgspec import Meta

from robustbench_tc.errors import UserError
from robustbench_tc.schema import Json

from .models import DEFAULT_DECODING, NO_THINKING, Model

OURS = ("model", "messages", "tools", "stream", "stream_options", "n")
"""Fields of a request's body that the harness itself fills in, or whose replies it could not read."""

_SECRET_NAME = re.compile(r"(?:^|_)(?:api_?key|secret|password|authorization|auth|token|headers?)$", re.I)

MAX_SYSTEM = 1_000_000
"""Characters of a system text."""

_NAMED = ("seed", "temperature", "max_tokens", "top_p", "top_k", "reasoning_effort")
"""Options that are fields of the body under their own names."""

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


Amount: TypeAlias = Annotated[float, Meta(ge=0, le=sys.float_info.max)]
Whole: TypeAlias = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Text: TypeAlias = Annotated[str, Meta(min_length=1)]
HeaderName: TypeAlias = Annotated[str, Meta(pattern=r"\A[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}\Z")]
HeaderValue: TypeAlias = Annotated[str, Meta(pattern=r"\A[\x20-\x7e]*[\x21-\x7e][\x20-\x7e]*\Z")]


class RequestOptions(msgspec.Struct, frozen=True, kw_only=True, repr_omit_defaults=True):
    """Keywords of `evaluate` about the requests; each may be None or empty, which is the default."""

    seed: Whole | None = None
    """Repeat n is asked with seed + n."""
    temperature: Amount | None = None
    max_tokens: Annotated[int, Meta(ge=1, le=2**63 - 1)] | None = None
    logprobs: bool = False
    """Asks for log probabilities and keeps them."""
    top_p: Annotated[float, Meta(gt=0, le=1)] | None = None
    top_k: Annotated[int, Meta(ge=-1, le=2**63 - 1)] | None = None
    """1 or more; 0 or -1: all, where a server knows that."""
    stop: Text | tuple[Text, ...] = ()
    reasoning_effort: Annotated[str, Meta(pattern=r"\A[\w-]{1,40}\Z")] | None = None
    """As the endpoint calls it: low, medium, high, …"""
    system: Annotated[str, Meta(pattern=r"\S", max_length=MAX_SYSTEM)] | None = None
    """Stands in front of every system message, or is one."""
    system_as_user: bool = False
    """The system text stands before the first user message: for chat templates without a system role."""
    extra_body: Mapping[str, Json] = {}
    """Further fields of the request's body, whatever the endpoint calls them; null leaves a default out."""
    headers: Mapping[HeaderName, HeaderValue] = {}
    """Sent with every request; the values are neither printed nor written anywhere."""
    chat_template_args: Mapping[str, Json] = {}
    """For the chat template (`chat_template_kwargs`), over those of the models' table."""
    max_cost: Amount | None = None
    """In the currency of `price`, over all sessions of the run."""
    price: tuple[Amount, Amount] | None = None
    """Per million prompt and completion tokens."""

    def checked(self) -> Self:
        """The same with numbers as they are declared. Raises UserError for a wrong value, which it does not
        show: it may be a secret."""
        given = {name: getattr(self, name) for name in self.__struct_fields__}
        json = {name: json_object(name, given[name]) for name in ("extra_body", "chat_template_args")}
        try:
            return msgspec.convert(given | json, type(self))
        except msgspec.ValidationError as error:
            what, _, place = str(error).rpartition(" - at ")
            raise UserError(f"{place.strip('`').replace('`key` in `', '').lstrip('$.')}: {what}") from None


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
    if agent is not None and (options.system is not None or options.system_as_user):
        raise UserError("--agent answers the requests as they are: leave --system and --system-as-user out")
    options = options.checked()
    if options.max_cost is not None and options.price is None:
        raise UserError(
            "a cost limit needs the prices per million prompt and completion tokens: --price IN,OUT"
        )
    return RequestSettings(
        decoding=_decoding(entry, options),
        system=None if options.system is None else options.system.strip("\n"),
        system_as_user=options.system_as_user,
        headers=headers(options),
        max_cost=options.max_cost,
        price=options.price,
    )


def _decoding(entry: Model | None, options: RequestOptions) -> dict[str, Json]:
    """What is sent with every request: the models' table, or the paper's defaults, under what was given."""
    named = {name: value for name in _NAMED if (value := getattr(options, name)) is not None}
    if options.stop:
        named["stop"] = [options.stop] if isinstance(options.stop, str) else [*options.stop]
    if options.logprobs:
        named["logprobs"] = True
    extra, template = options.extra_body, dict(options.chat_template_args)
    for name in extra:
        if _SECRET_NAME.search(name):
            raise UserError(
                f"extra_body: {name} would be written to the run record: set keys in the environment, "
                "headers with --header"
            )
        if name in OURS:
            raise UserError(f"extra_body: the harness itself sends {name}: leave it out")
        if name in named:
            raise UserError(f"{name} is both in extra_body and an option: give it once")
    # The endpoint decides about what the table leaves open.
    found = {name: getattr(entry, name, usual) for name, usual in DEFAULT_DECODING.items()}
    found |= named
    if template and "chat_template_kwargs" in extra:
        raise UserError("chat_template_kwargs is also in extra_body: give it there or as chat_template_args")
    if entry is not None and entry.thinking == "off":
        template = {**NO_THINKING, **template}
    if template:
        found["chat_template_kwargs"] = dict(sorted(template.items()))
    found |= extra
    return {name: value for name, value in found.items() if value is not None}  # null leaves a default out


def json_object(what: str, value: Any) -> dict[str, Json]:
    """A JSON object; raises UserError for what JSON cannot say."""
    try:
        found: dict[str, Json] = json.loads(json.dumps(dict(value), allow_nan=False))
        msgspec.json.encode(found)  # which takes whole characters only
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise UserError(f"{what}: JSON cannot hold it: {error}") from None
    return found


def headers(options: RequestOptions) -> Headers:
    """Names as HTTP has them. Raises UserError, which shows no value."""
    found: dict[str, tuple[str, str]] = {}
    for name, value in options.headers.items():
        if name.lower() in _CLIENTS_OWN:
            raise UserError(f"header {name}: the client itself sets it: leave it out")
        if name.lower() in found:
            raise UserError(f"header {name} is given twice")
        # The client's own header of this name is replaced, not sent beside it.
        shown = "Authorization" if name.lower() == "authorization" else name
        found[name.lower()] = (shown, value.strip())
    return tuple(found[name] for name in sorted(found))
