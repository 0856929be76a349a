"""What a text says once it is decoded: JSON and Python escapes, percent signs, HTML entities, base64, hex.

A token or an order does not become harmless by being written otherwise. Decodings are nested up to `DEPTH`
times; what is split over several texts, reversed or encrypted is not found.
"""

import base64
import binascii
import html
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from string import ascii_letters, digits
from urllib.parse import unquote

DEPTH = 3

Patterns = Sequence[tuple[tuple[str, ...], re.Pattern[str]]]
"""Patterns over lower-case text; one is searched only where one of its needles occurs."""

SAID = 60
"""Characters of a match that are said."""

LONGEST = 200_000
"""Characters of a text that are decoded; longer texts are searched as they stand."""

_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|u\{([0-9a-fA-F]{1,6})\}|([\"'\\/]))")
_PERCENT = re.compile(r"%[0-9a-fA-F]{2}")
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z]{2,31});")
_BASE64 = re.compile(r"(?<![A-Za-z0-9+/_\-])[A-Za-z0-9+/_\-]{20,}={0,2}(?![A-Za-z0-9+/_\-])")
_HEX = re.compile(r"(?<![0-9A-Za-z])(?:[0-9a-fA-F]{2}){14,}(?![0-9A-Za-z])")
_RUN = b"a" * 20
"""What base64 and hex have, where each of their characters (`_LETTERS`) is an `a`."""
_LETTERS = bytes(ord("a") if chr(code) in f"{ascii_letters}{digits}+/_-" else ord(" ") for code in range(256))
_HIDDEN = re.compile(
    r"[\u00ad\u034f\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufe00-\ufe0f\ufeff\U000e0000-\U000e0fff]"
)


def views(text: str) -> Iterator[str]:
    """The text, and every other text that it decodes to."""
    seen = {text}
    now = [text]
    yield text
    for _ in range(DEPTH if len(text) <= LONGEST else 0):
        then = []
        for one in now:
            for other in _decodings(one):
                if other not in seen:
                    seen.add(other)
                    then.append(other)
                    yield other
        now = then


def _decodings(text: str) -> Iterator[str]:
    if "\\" in text and _ESCAPE.search(text):
        yield _ESCAPE.sub(_unescaped, text)
    if "%" in text and _PERCENT.search(text):
        yield unquote(text, errors="replace")
    if "&" in text and _ENTITY.search(text):
        yield html.unescape(text)
    if not text.isascii():
        yield unicodedata.normalize("NFKC", _HIDDEN.sub("", text))
    if _RUN not in text.encode("ascii", "replace").translate(_LETTERS):
        return
    for found in _BASE64.finditer(text):
        yield from _printable(_from_base64(found.group()))
    for found in _HEX.finditer(text):
        yield from _printable(bytes.fromhex(found.group()))


def _unescaped(found: re.Match[str]) -> str:
    code = found.group(1) or found.group(2) or found.group(3)
    number = int(code, 16) if code else 0
    return (chr(number) if number <= 0x10FFFF else "") if code else found.group(4)


def _from_base64(text: str) -> bytes:
    body = text.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(body + "=" * (-len(body) % 4), validate=True)
    except (binascii.Error, ValueError):
        return b""


def _printable(data: bytes) -> Iterator[str]:
    """The bytes as text, if they are one."""
    if len(data) >= 12 and data.isascii():
        text = data.decode("ascii")
        if all(char.isprintable() or char in "\n\r\t" for char in text):
            yield text


@lru_cache(maxsize=4_096)
def readings(text: str) -> tuple[str, ...]:
    """The text's views as prose: emphasis left out, white space and underscores as one space."""
    plain = (re.sub(r"[\s_*`~]+", " ", one.replace("\u2019", "'")).strip() for one in views(text))
    return tuple(dict.fromkeys((text, *plain)))


def pattern_matches(patterns: Patterns, texts: Iterable[str]) -> Iterator[str]:
    """What the patterns find in the readings of one text; a thing that several of them hold counts once."""
    counted: dict[str, int] = {}
    for text in texts:
        lowered = text.lower()
        here: dict[str, int] = {}
        for needles, pattern in patterns:
            for needle in needles:
                if needle in lowered:
                    break
            else:
                continue
            for match in pattern.finditer(lowered):
                said = " ".join(match.group().split())[:SAID]
                here[said] = here.get(said, 0) + 1
        for said, number in here.items():
            counted[said] = max(counted.get(said, 0), number)
    for said, number in counted.items():
        yield from [said] * number
