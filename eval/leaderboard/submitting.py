"""Who submits, what they state about their run, and how far the server is with it."""

import ipaddress
import math
import re
from typing import Literal
from urllib.parse import urlsplit

import msgspec

from .names import LOCAL as LOCAL
from .names import shown
from .refusal import Refused

_LICENCE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9 .,+()/_-]{0,58}[A-Za-z0-9.+)])?")
_HUB_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}/[A-Za-z0-9][A-Za-z0-9._-]{0,95}")
_URL = re.compile(r"https://[A-Za-z0-9.-]{1,253}(?::\d{1,5})?(?:/[A-Za-z0-9._~!$&()*+,;=:@%/?#-]*)?")


class Submitter(msgspec.Struct, frozen=True):
    """Somebody who uploads, as the server found out, never as a request says of itself."""

    user: str
    """The account; `LOCAL` where nobody signs in."""
    address: str
    """The remote address; the one that a trusted proxy names."""
    orgs: tuple[str, ...] = ()
    """Organisations on the Hub whose member the account is."""

    @property
    def account(self) -> str:
        """Whose share of the queue is used. Where nobody signs in every address is a person of its own."""
        return f"{LOCAL} at {self.network}" if self.user == LOCAL else self.user

    @property
    def network(self) -> str:
        """The address as far as it tells people apart: of IPv6 the first 64 bits."""
        try:
            found = ipaddress.ip_address(self.address.partition("%")[0])
        except ValueError:
            return self.address[:64]
        if isinstance(found, ipaddress.IPv6Address):
            if found.ipv4_mapped is not None:
                return str(found.ipv4_mapped)
            return str(ipaddress.ip_network((found, 64), strict=False))
        return str(found)


class Form(msgspec.Struct, frozen=True, kw_only=True):
    """What is typed beside an upload, unchecked; None or blank for what is left out."""

    name: str | None = None
    """Of the model, if it is not the run record's."""
    params: str | None = None
    """Billions of parameters."""
    card: str | None = None
    """The model's page: a Hub id, or an https address."""
    licence: str | None = None
    weights: str | None = None
    """`open` or `closed`."""
    price_in: str | None = None
    """USD per million tokens read."""
    price_out: str | None = None
    """USD per million tokens written."""


class Stated(msgspec.Struct, frozen=True, kw_only=True):
    """A form whose every field can be listed."""

    name: str | None = None
    params_b: float | None = None
    card: str | None = None
    """An https address."""
    licence: str | None = None
    weights: Literal["open", "closed"] | None = None
    price_in: float | None = None
    price_out: float | None = None


class Progress(msgspec.Struct, frozen=True):
    """Where an upload is."""

    stage: Literal["waiting", "checking", "scoring", "done"]
    place: int | None = None
    """In the queue, 1 is the next one; None unless it waits."""
    seconds: float | None = None
    """Until it is done, from what the last checks took; None as long as none was measured."""


def stated(form: Form) -> Stated:
    """The form, checked. Raises Refused by its first field that cannot be listed."""
    weights = _text(form.weights)
    if weights not in (None, "open", "closed"):
        raise Refused("form", f"weights are open or closed, not {shown(weights)}")
    return Stated(
        name=_text(form.name),
        params_b=_params(_text(form.params)),
        card=_card(_text(form.card)),
        licence=_licence(_text(form.licence)),
        weights=weights,  # type: ignore[arg-type]
        price_in=_price(_text(form.price_in)),
        price_out=_price(_text(form.price_out)),
    )


def _text(typed: str | None) -> str | None:
    return (typed or "")[:1000].strip() or None


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _params(text: str | None) -> float | None:
    if text is None:
        return None
    found = _number(text.removesuffix("B").removesuffix("b"))
    if not 0.001 <= found <= 100_000:  # also refuses NaN
        raise Refused("form", "parameters are given in billions, between 0.001 and 100,000: 7 for a 7B model")
    return found


def _price(text: str | None) -> float | None:
    if text is None:
        return None
    found = _number(text.removeprefix("$"))
    if not 0 <= found <= 100_000:
        raise Refused(
            "form", f"prices are in USD per million tokens, between 0 and 100,000, not {shown(text)}"
        )
    return found


def _card(text: str | None) -> str | None:
    """An address that may stand in a link: nothing but plain https."""
    if text is None:
        return None
    if _HUB_ID.fullmatch(text) and ".." not in text:
        return f"https://huggingface.co/{text}"
    if len(text) > 300 or not _URL.fullmatch(text) or "." not in (urlsplit(text).hostname or ""):
        raise Refused(
            "form", f"the model card {shown(text)} is neither a Hub id (org/name) nor an https address"
        )
    return text


def _licence(text: str | None) -> str | None:
    if text is not None and not _LICENCE.fullmatch(text):
        raise Refused(
            "form",
            f"the licence {shown(text)} cannot be listed: a short name such as apache-2.0 "
            "of at most 60 characters",
        )
    return text
