"""Credentials and persons' data in a text, and the text without them.

Credentials: the specific-token plugins of detect-secrets, patterns of ours beside them.

Entropy and keyword plugins are off: on a clean build they find 385 harmless words. `IPPublicDetector` is off
too: an address is not a secret. Our pattern knows the tokens that the plugins do not, or only in full length;
the two guesses (`assigned`, `random`) look at rows alone, where a text is short and its words are few.

What telephone numbers, bank accounts, payment cards and e-mail addresses look like stands where logs are
imported; here a number that only may be one is left alone.
"""

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import Any, NamedTuple

from robustbench_tc.own.logs.redact import PERSONAL, is_one

from .decoded import views

PLUGINS: dict[str, tuple[int, tuple[str, ...]]] = {
    "ArtifactoryDetector": (11, ("AKC", "AP")),
    "AWSKeyDetector": (20, ("3T", "BIA", "CCA", "KIA", "SIA", "aws")),
    "AzureStorageKeyDetector": (99, ("AccountKey=",)),
    "BasicAuthDetector": (7, ("://",)),
    "CloudantDetector": (29, ("cl",)),
    "DiscordBotTokenDetector": (59, (".",)),
    "GitHubTokenDetector": (40, ("gh",)),
    "GitLabTokenDetector": (25, ("gl", "GR1348941")),
    "IbmCloudIamDetector": (48, ("key", "pwd", "pass", "token")),
    "IbmCosHmacDetector": (58, ("secret",)),
    "JwtTokenDetector": (6, ("eyJ",)),
    "MailchimpDetector": (36, ("-us",)),
    "NpmDetector": (21, ("/:_authToken=",)),
    "OpenAIDetector": (51, ("T3BlbkFJ",)),
    "PrivateKeyDetector": (17, ("PRIVATE KEY", "PuTTY")),
    "PypiTokenDetector": (90, ("pypi-",)),
    "SendGridDetector": (69, ("SG.",)),
    "SlackDetector": (8, ("xox", "hooks.slack.com")),
    "SoftlayerDetector": (70, ("key", "pwd", "pass", "token", "com/soap/v3")),
    "SquareOAuthDetector": (50, ("sq0csp-",)),
    "StripeDetector": (32, ("k_live_",)),
    "TelegramBotTokenDetector": (44, (":",)),
    "TwilioKeyDetector": (34, ("AC", "SK")),
}
"""Plugin → how many characters its shortest find has, and what one of them always holds: other texts are not
searched. Needles in small letters are found in any case."""


class Pattern(NamedTuple):
    """A kind of credential. Texts without any of the needles are not searched."""

    needles: tuple[str, ...]
    """In lower case; for `random` in the text's shape, where every letter and digit is an `a`."""
    regex: re.Pattern[str]
    """The group `value`, where there is one, is the string itself."""
    digits: int = 0
    """The string holds at least so many."""


_PREFIXES = (
    "sk- sk_ pk_ rk_ pk- rk- whsec_ hf_ api_org_ gsk_ xai- pplx- r8_ nvapi- npm_ pypi- aiza ya29. gocspx- "
    "akia asia ghp_ gho_ ghu_ ghs_ ghr_ github_pat_ glpat- gldt- glrt- xoxb- xoxp- xoxa- xoxe. xapp- "
    "shpat_ shpss_ dop_v1_ lsv2_ dckr_pat_ lin_api_ ntn_ hvs. figd_ tskey- tvly-"
).split()
"""How tokens of vendors begin, in lower case."""

TOKENS = {
    "token": Pattern(
        tuple(_PREFIXES),
        re.compile(
            rf"(?<![A-Za-z0-9])(?:(?i:{'|'.join(map(re.escape, _PREFIXES))}))"
            r"(?=[\w\-.]*\d)[\w\-]{12,}(?:\.[\w\-]+)*"
        ),
    )
}
"""Kind → what it looks like, beside the plugins: searched everywhere, also in files and footers."""

_SECRETS = (
    r"pass(?:word|wd|code)?|secret|token|api[_ -]?key|access[_ -]?(?:key|token)|client[_ -]?secret|appid"
)

_VALUE = r"[^\s\"'\\,}<{\]\[]{4,100}"

GUESSES = {
    "assigned": Pattern(
        ("pass", "secret", "token", "key", "appid", "bearer"),
        re.compile(  # what is not in quotes has a digit: "the password is required" has none
            rf"(?i:\b(?:{_SECRETS})\b[\"'\\]{{0,3}}\s{{0,3}}"
            r"(?:[:=]\s{0,3}(?=[\"'\\])|(?:\bis\b|[:=]|\bas\b|\bto be\b)(?=\s{0,3}[^\s,}<{\]\[]*\d))"
            rf"|\bbearer(?=\s{{1,3}}\S*\d))\s{{0,3}}[\"'\\]{{0,3}}(?P<value>{_VALUE})"
        ),
    ),
    "random": Pattern(("a" * 16,), re.compile(r"(?<![\w\-])[A-Za-z0-9]{16,}(?![\w\-])"), digits=3),
}
"""Kind → what may well be a credential: searched in rows only."""

_SHAPE = bytes(ord("a") if chr(code).isalnum() and code < 128 else ord(" ") for code in range(256))


class Match(NamedTuple):
    """A credential at its place in the text as it stands; a decoded one has no place (-1)."""

    kind: str
    value: str
    start: int = -1


@lru_cache(maxsize=16_384)  # reports, tables and stored answers say again what rows say
def tokens(text: str) -> tuple[Match, ...]:
    """Every credential of the text, decoded where it is written in another way."""
    found = dict.fromkeys(
        match for place, view in enumerate(views(text)) for match in _in_view(view, place == 0)
    )
    values = {match.value for match in found if match.start >= 0}
    return tuple(match for match in found if match.start >= 0 or match.value not in values)


def guesses(text: str) -> Iterator[Match]:
    """What may well be a credential, in the text as it stands."""
    yield from _search(GUESSES, text)


def _in_view(text: str, as_it_stands: bool) -> Iterator[Match]:
    for match in _search(TOKENS, text):
        yield match if as_it_stands else Match(match.kind, match.value)
    lowered = text.lower()
    for name, plugin in _plugins().items():
        shortest, needles = PLUGINS[name]
        if len(text) < shortest or not any(n in (lowered if n.islower() else text) for n in needles):
            continue
        for value in plugin.analyze_string(text):
            if value:
                yield Match(name, value, text.find(value) if as_it_stands else -1)


def _search(patterns: dict[str, Pattern], text: str) -> Iterator[Match]:
    lowered = text.lower()
    shape = text.encode("ascii", "replace").translate(_SHAPE).decode()
    for kind, pattern in patterns.items():
        looked_at = shape if kind == "random" else lowered
        for needle in pattern.needles:
            if needle in looked_at:
                break
        else:
            continue
        group = "value" if "value" in pattern.regex.groupindex else 0
        for match in pattern.regex.finditer(text):
            value = match.group(group).rstrip(".,;:!?)")
            digits = sum(char.isdigit() for char in value) if pattern.digits else 0
            if digits >= pattern.digits and not (kind == "random" and value.isdigit()):
                yield Match(kind, value, match.start(group))


@cache
def _plugins() -> dict[str, Any]:
    """The plugins by the name that a finding gets. Raises UserError where the extra is missing."""
    from importlib import import_module
    from pkgutil import iter_modules

    from robustbench_tc.errors import need_extra

    try:
        import detect_secrets.plugins as folder
    except ImportError:
        raise need_extra("detect_secrets", "audit") from None
    found = {}
    for module in iter_modules(folder.__path__):
        loaded = import_module(f"{folder.__name__}.{module.name}")
        for name in PLUGINS:
            if hasattr(loaded, name) and getattr(loaded, name).__module__ == loaded.__name__:
                found[name] = getattr(loaded, name)()
    if missing := set(PLUGINS) - set(found):
        raise RuntimeError(f"detect-secrets lacks {', '.join(sorted(missing))}")
    return {name: found[name] for name in PLUGINS}


_NUMBERS = re.compile(r"\d(?:[\s().\-]{0,4}\d){8}|[A-Z]{2}\d\d ?[A-Z0-9]{4}")
"""What every number of a person has: nine digits with little between them, or an account's beginning."""


def personal(text: str) -> Iterator[Match]:
    """Every number or address of a person in the text as it stands."""
    numbers = _NUMBERS.search(text) is not None
    for kind, pattern in PERSONAL.items():
        if not ("@" in text if kind == "email" else numbers):
            continue
        for match in pattern.finditer(text):
            value = match.group()
            # A phone number of fewer than nine digits is more often something else.
            is_long = kind != "phone" or sum(map(str.isdigit, value)) >= 9
            if is_long and is_one(kind, value):
                yield Match(kind, value, match.start())


def redact(text: str) -> str:
    """The text with every credential replaced by its kind; all of it, where one stands there encoded."""
    found = sorted((*tokens(text), *guesses(text), *personal(text)), key=lambda m: (m.start, -len(m.value)))
    if found and found[0].start < 0:
        return f"[{found[0].kind}, encoded]"
    out, done = [], 0
    for match in found:
        if match.start >= done:
            out += [text[done : match.start], f"[{match.kind}]"]
            done = match.start + len(match.value)
        elif match.start + len(match.value) > done:
            done = match.start + len(match.value)
    return "".join([*out, text[done:]])
