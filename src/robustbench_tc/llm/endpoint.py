"""Which model is asked, where, and with which key: filled in from the environment, shown without secrets."""

import base64
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
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


class _Facts(NamedTuple):
    url: str
    keys: tuple[str, ...]
    """Environment variables with a key, the first that is set counts."""
    url_variable: str
    version: str = ""
    """What people put at the end of the address, and the provider's client puts there itself."""


PROVIDERS: Mapping[str, _Facts] = {
    "openai": _Facts("https://api.openai.com/v1", ("OPENAI_API_KEY",), "OPENAI_BASE_URL"),
    "anthropic": _Facts("https://api.anthropic.com", ("ANTHROPIC_API_KEY",), "ANTHROPIC_BASE_URL", r"/v1"),
    "gemini": _Facts(
        "https://generativelanguage.googleapis.com",
        ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        "GOOGLE_GEMINI_BASE_URL",
        r"/v1(?:beta)?",
    ),
}
"""Whose API is spoken: OpenAI's is that of every compatible server, the others are asked through any-llm."""

_REASONING_NAMES = re.compile(r"(?:o\d|gpt-5)(?!.*-chat)(?:\b|_)", re.IGNORECASE)

_SECRET_HEADER = re.compile(r"auth|key|token|secret|cookie|passw|credential|signature", re.IGNORECASE)

REAL_SECRET = 8
"""Characters from which on a key is taken out of messages and replies."""


@dataclass(frozen=True, slots=True, repr=False)
class Endpoint:
    """A model behind an address. Its text forms never show the key, nor credentials inside the address."""

    model: str
    base_url: str | None = None
    """None: the provider's variable, else its own. As given; `resolved` takes credentials out of it."""
    api_key: str | None = None
    """None: the provider's variable; an address of one's own may need none."""
    reasoning: bool | None = None
    """Takes no temperature and wants `max_completion_tokens`. None: by its name, else after a refusal."""
    address: Address | None = None
    """Filled in by `resolved`."""
    headers: tuple[tuple[str, str], ...] = ()
    """Sent with every request; a value may be a secret."""
    key_name: str = "OPENAI_API_KEY"
    """The environment variable that a wrong key is looked for in. Filled in by `resolved`."""
    provider: str = "openai"
    """One of `PROVIDERS`; or `vllm`, which has no address."""

    def __str__(self) -> str:
        model = self.model if self.provider == "openai" else f"{self.provider}:{self.model}"
        return model + (f"@{public(self.base_url)}" if self.base_url else "")

    def __repr__(self) -> str:
        return f"Endpoint({str(self)!r})"

    @property
    def is_reasoning(self) -> bool:
        """As stated, else guessed from the model's name."""
        if self.reasoning is None:
            return bool(_REASONING_NAMES.match(self.model.rsplit("/", 1)[-1]))
        return self.reasoning

    @property
    def secrets(self) -> tuple[str, ...]:
        """What no message may hold: a shorter key ("EMPTY", "test") is a word like others."""
        parts = (part for _, value in self.headers for part in (value, *value.split()))
        given = dict.fromkeys((self.api_key or "", *parts))
        return (
            *(self.address.secrets if self.address else ()),
            *(part for part in given if len(part) >= REAL_SECRET),
        )

    @property
    def hidden(self) -> tuple[str, ...]:
        """What no reply may hold either: all but what a header without a secret says ("application/json")."""
        public = {
            part
            for name, value in self.headers
            for part in (value, *value.split())
            if not (_SECRET_HEADER.search(name) or (len(part) >= 16 and re.search(r"\d", part)))
        }
        return tuple(one for one in self.secrets if len(one) >= REAL_SECRET and one not in public)

    def resolved(self, env: Mapping[str, str] = os.environ) -> "Endpoint":
        """With address and key filled in from the environment. Raises UserError where a key is missing."""
        if self.address is not None:
            return self
        facts = PROVIDERS[self.provider]
        given = self.base_url or env.get(facts.url_variable) or facts.url
        address = parse_address(re.sub(rf"{facts.version}/?$", "", given))
        key_name = next((name for name in facts.keys if env.get(name, "").strip()), facts.keys[0])
        key = (self.api_key or env.get(key_name, "")).strip()
        signed = any(name.lower() == "authorization" for name, _ in self.headers)
        if not key and not signed and address.url == facts.url:
            names = " or ".join(facts.keys)
            raise UserError(f"no key for {facts.url}: set {names}, or name another base URL")
        if not (key.isascii() and key.replace(" ", "").isprintable()):
            raise UserError(f"the API key holds characters that a header cannot carry: check {key_name}")
        return replace(self, base_url=address.url, api_key=key or None, address=address, key_name=key_name)

    def hide(self, content: bytes) -> bytes:
        """A reply without the secrets that the server may have written into it."""
        for secret in self.hidden:
            content = content.replace(secret.encode(), b"***")
        return content

    def scrub(self, text: str) -> str:
        """A message without secrets."""
        for secret in self.secrets:
            text = text.replace(secret, "***")
        return re.sub(r"(?i)\b(bearer|basic) \S+", r"\1 ***", text)


def native_model(spec: str) -> tuple[str, str] | None:
    """`anthropic:MODEL` or `gemini:MODEL` as provider and model; None for any other name."""
    provider, _, model = spec.partition(":")
    return (provider, model) if model and provider != "openai" and provider in PROVIDERS else None


def parse_endpoint(spec: str) -> Endpoint:
    """`MODEL` or `MODEL@BASE_URL` as an endpoint. Raises UserError.

    A model's own name may hold an `@`: only one that is followed by http:// or https:// begins an address.
    """
    model, url = re.fullmatch(r"(.*?)(?:@(https?://.*))?", spec.strip(), re.DOTALL).groups()  # type: ignore[union-attr]
    if re.search(r"\s", spec.strip()) or not model:
        raise UserError(f"endpoint {public(spec)!r}: expected MODEL or MODEL@BASE_URL")
    if url is None and re.search(r"://|@(?:localhost|[\w.-]+:\d+|[\w.-]+/)", model):
        raise UserError(f"endpoint {public(spec)!r}: a base URL begins with http:// or https://")
    return Endpoint(model, url)


def parse_endpoints(spec: str) -> list[Endpoint]:
    """As `parse_endpoint`, or several addresses of one model: `MODEL@BASE_URL,BASE_URL`. Raises UserError."""
    first, *others = re.split(r",(?=https?://)", spec.strip())
    found = parse_endpoint(first)
    return [found, *(parse_endpoint(f"{found.model}@{url}") for url in others)]


_WRONG = (
    (r"\s", "white space or a control character is in it"),
    (r"^(?!(?i:https?)://)", "it must begin with http:// or https://"),
    (
        r"^[^/]*//[^/?#]*[/?#].*@",
        "an @ stands behind the host: write it as %40, and /, ? or # in a password as %2F, %3F or %23",
    ),
    (r"[?#]", "leave out what stands behind ? or #; in a password write them as %3F and %23"),
    (
        r"/(chat/)?completions/?$",
        "leave out what stands behind /v1: the rest of the path is added for each request",
    ),
)
"""What an address must not have, and why; the first counts."""


def parse_address(text: str, what: str = "base URL") -> Address:
    """An http or https address. Raises UserError, which says what is wrong and shows no credentials."""
    shown = text if text.isprintable() else text + " "
    why = next((why for pattern, why in _WRONG if re.search(pattern, shown)), None)
    try:
        parts = urlsplit(text)
        port, host = parts.port, parts.hostname or ""
        host.encode("idna")
    except ValueError:
        why = why or (
            "its host or port is none that a network knows; an IPv6 address stands in brackets, as in "
            "http://[::1]:8000"
        )
    if why is None and not re.fullmatch(r"[\w.:%-]+", host):
        why = "it names no host that a network knows"
    if why is not None:
        raise UserError(f"{what} {public(text)!r}: {why}")
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
