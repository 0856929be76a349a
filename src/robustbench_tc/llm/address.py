"""Addresses of servers as people give them: with credentials inside, or not addresses at all."""

import base64
import re
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from ..errors import UserError


class Address(NamedTuple):
    """Where to connect, and what is sent along. Only `url` is ever shown."""

    url: str
    """Scheme, host, port and path: no credentials, no slash at the end."""
    basic: str | None = None
    """The credentials as HTTP's basic authentication wants them."""
    password: str | None = None

    @property
    def headers(self) -> dict[str, str]:
        """What a request carries because of the credentials."""
        return {"Authorization": f"Basic {self.basic}"} if self.basic else {}

    @property
    def secrets(self) -> tuple[str, ...]:
        """What no message may hold."""
        return tuple(one for one in (self.password, self.basic) if one and len(one) > 2)


def parse_address(text: str, what: str = "base URL") -> Address:
    """An http or https address. Raises UserError, which says what is wrong and shows no credentials."""

    def wrong(why: str) -> UserError:
        return UserError(f"{what} {public(text)!r}: {why}")

    if not text.isprintable() or re.search(r"\s", text):
        raise wrong("white space or a control character is in it")
    if not re.match(r"https?://", text, re.IGNORECASE):
        raise wrong("it must begin with http:// or https://")
    try:
        parts = urlsplit(text)
        port, host = parts.port, parts.hostname or ""
        host.encode("idna")
    except ValueError:
        raise wrong(
            "its host or port is none that a network knows; an IPv6 address stands in brackets, as in http://[::1]:8000"
        ) from None
    if "@" in parts.path + parts.query + parts.fragment:
        raise wrong("an @ stands behind the host: in a user name, password or path write it as %40")
    if "?" in text or "#" in text:
        raise wrong("leave out what stands behind ? or #; in a password write them as %3F and %23")
    if not re.fullmatch(r"[\w.:%-]+", host):
        raise wrong("it names no host that a network knows")
    if re.search(r"/(chat/)?completions/?$", parts.path):
        raise wrong("leave out what stands behind /v1: the rest of the path is added for each request")
    netloc = f"[{host}]" if ":" in host else host
    url = f"{parts.scheme}://{netloc}" + (f":{port}" if port else "") + parts.path.rstrip("/")
    if "@" not in parts.netloc:
        return Address(url)
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    basic = base64.b64encode(f"{user}:{password}".encode()).decode()
    return Address(url, basic, password or user)


def public(url: str) -> str:
    """An address, `MODEL@ADDRESS`, or what was meant to be one, without credentials, query and fragment."""
    found = re.match(r"([^\s:]*://)?(.*)@", url, re.DOTALL)
    if found and (found[1] or ":" in found[2]):
        url = (found[1] or "") + url[found.end() :]
    return re.split(r"[?#]", url, maxsplit=1)[0]
