"""Credentials in a text: the specific-token plugins of detect-secrets, patterns of ours beside them.

Entropy and keyword plugins are off: on a clean build they find 385 harmless words. `IPPublicDetector` is off
too: an address is not a secret. Our patterns know the tokens that the plugins do not, or only in full length;
the two guesses (`assigned…`, `random`) look at rows alone, where a text is short and its words are few.
"""

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import Any, NamedTuple

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


def _token(needles: str, regex: str, digits: int = 0) -> Pattern:
    return Pattern(tuple(needles.split()), re.compile(rf"(?<![A-Za-z0-9]){regex}"), digits)


TOKENS: dict[str, Pattern] = {
    "private_key": Pattern(
        ("private key", "age-secret-key", "putty-user-key"),
        re.compile(
            r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----|AGE-SECRET-KEY-1[A-Z0-9]{20,}"
            r"|PuTTY-User-Key-File-\d"
        ),
    ),
    "anthropic_key": _token("sk-ant-", r"sk-ant-[A-Za-z0-9_\-]{8,}"),
    "openai_key": _token("sk-", r"sk-(?!ant-)(?:proj-|svcacct-|admin-|None-)?[A-Za-z0-9_\-]{12,}", 1),
    "vendor_key": _token(
        "sk_ pk_ rk_ pk- rk- whsec_",
        r"(?:[sprk]k_(?:live_|test_)?[A-Za-z0-9]{12,}|[pr]k-[A-Za-z0-9_\-]{12,}|whsec_[A-Za-z0-9]{12,})",
        1,
    ),
    "huggingface_token": _token("hf_ api_org_", r"(?:hf_[A-Za-z0-9]{16,}|api_org_[A-Za-z0-9]{16,})"),
    "slack_token": _token(
        "xox xapp- hooks.slack.com",
        r"(?:xox[a-z](?:\.xox[a-z])?-[A-Za-z0-9\-]{10,}|xapp-\d-[A-Za-z0-9\-]{10,}"
        r"|hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9/]{10,})",
    ),
    "gitlab_token": _token("gl", r"gl(?:pat|dt|rt|ptt|cbt|soat|ft|imt|agent|oas|ffct)-[A-Za-z0-9_\-.]{10,}"),
    "github_token": _token("gh github_pat_", r"(?:gh[pousr]_[A-Za-z0-9]{16,}|github_pat_\w{16,})"),
    "google_key": _token("aiza ya29. gocspx-", r"(?:AIza[\w\-]{20,}|ya29\.[\w\-]{20,}|GOCSPX-[\w\-]{16,})"),
    "aws_key": _token("akia asia abia acca", r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{12,}(?![A-Za-z0-9])", 1),
    "web_token": _token("eyj", r"eyJ[\w\-]{8,}\.[\w\-]{8,}\.[\w\-]+"),
    "npm_token": _token("npm_", r"npm_[A-Za-z0-9]{20,}"),
    "pypi_token": _token("pypi-", r"pypi-[A-Za-z0-9_\-]{20,}"),
    "telegram_token": _token(":aa", r"\d{8,10}:AA[\w\-]{30,}"),
    "hosting_token": _token(
        "dop_v1_ doo_v1_ dapi gsk_ xai- pplx- r8_ lsv2_ dckr_pat_ shpat_ shpss_ shpca_ shppa_ lin_api_ ntn_ "
        "hvs. sg. nvapi- figd_ tskey- fly tvly- fc-",
        r"(?:do[op]_v1_[a-f0-9]{32,}|dapi[a-f0-9]{32}|gsk_[A-Za-z0-9]{20,}|xai-[A-Za-z0-9]{20,}"
        r"|pplx-[A-Za-z0-9]{20,}|r8_[A-Za-z0-9]{20,}|lsv2_(?:pt|sk)_[a-f0-9]{20,}|dckr_pat_[\w\-]{16,}"
        r"|shp(?:at|ss|ca|pa)_[a-fA-F0-9]{20,}|lin_api_[A-Za-z0-9]{20,}|ntn_[A-Za-z0-9]{20,}"
        r"|hvs\.[\w\-]{20,}|SG\.[\w\-]{16,}\.[\w\-]{16,}|nvapi-[\w\-]{20,}|figd_[\w\-]{20,}"
        r"|tskey-[a-z]+-[\w\-]{16,}|fly(?:v1|_pat)[ _-][\w\-]{20,}|tvly-[\w\-]{16,}|fc-[a-f0-9]{32})",
    ),
    "account_key": Pattern(
        ("accountkey=", "sharedaccesskey=", "sig="),
        re.compile(r"(?i:(?:AccountKey|SharedAccessKey|[?&]sig)=)(?P<value>[A-Za-z0-9+/%]{20,}={0,2})"),
    ),
    "bearer": Pattern(("bearer",), re.compile(r"(?i:\bbearer)\s{1,3}(?P<value>[\w\-.=]{8,})"), digits=1),
    "url_login": Pattern(
        ("://",), re.compile(r"[A-Za-z][A-Za-z0-9+.\-]{1,20}://[^/\s:@\"]{1,80}:[^/\s@\"]{1,80}@")
    ),
}
"""Kind → what it looks like: searched everywhere, also in files and footers."""

_SECRETS = (
    r"pass(?:word|wd|code)?|secret|token|api[_ -]?key|access[_ -]?(?:key|token)|client[_ -]?secret|appid"
)

GUESSES: dict[str, Pattern] = {
    "assigned_text": Pattern(
        ("pass", "secret", "token", "key", "appid"),
        re.compile(
            rf"(?i:\b(?:{_SECRETS}))\b[\"'\\]{{0,3}}\s{{0,3}}[:=]\s{{0,3}}[\"'\\]{{1,3}}"
            r"(?P<value>[^\s\"'\\,}<{\]\[]{4,100})[\"'\\]"
        ),
    ),
    "assigned": Pattern(
        ("pass", "secret", "token", "key", "appid"),
        re.compile(
            rf"(?i:\b(?:{_SECRETS}))\b[\"'\\]{{0,3}}\s{{0,3}}(?:\bis\b|[:=]|\bas\b|\bto be\b)\s{{0,3}}"
            r"[\"'\\]{0,3}(?P<value>[^\s\"'\\,}<{\]\[]{4,100})"
        ),
        digits=1,
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
        named = "value" in pattern.regex.groupindex
        for match in pattern.regex.finditer(text):
            value = match.group("value" if named else 0).rstrip(".,;:!?)")
            digits = sum(char.isdigit() for char in value) if pattern.digits else 0
            if digits >= pattern.digits and not (kind == "random" and value.isdigit()):
                yield Match(kind, value, match.start("value" if named else 0))


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
