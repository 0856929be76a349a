"""Characters that nobody sees, that reverse or imitate others, or that a wrong decoding left behind."""

import re
import unicodedata
from collections.abc import Iterator

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")
_BIDI = re.compile(r"[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_INVISIBLE = re.compile(
    r"[\u00a0\u00ad\u034f\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200d\u202f\u205f-\u2064"
    r"\u206a-\u206f\u2800\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U0001bca0-\U0001bca3"
    r"\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_DAMAGED = re.compile(r"[\ufffd\ufdd0-\ufdef\ue000-\uf8ff\ud800-\udfff\U000f0000-\U0010ffff]")
_ESCAPED = re.compile(r"\\u[0-9a-fA-F]{4}|\\x[0-9a-fA-F]{2}")
_DISGUISED = re.compile(
    r"[\U0001d400-\U0001d7ff\uff10-\uff19\uff21-\uff3a\uff41-\uff5a\u249c-\u24e9\U0001f110-\U0001f189]+"
)
_STACKED = re.compile(r"[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]{3,}")
_WORD = re.compile(r"[^\W\d_]+(?:[\d_]*[^\W\d_]+)*")

_JOINING = frozenset(
    "ARABIC SYRIAC MONGOLIAN DEVANAGARI BENGALI GURMUKHI GUJARATI ORIYA TAMIL TELUGU KANNADA MALAYALAM "
    "SINHALA KHMER MYANMAR TIBETAN".split()
)
"""Scripts in which a zero-width joiner or non-joiner is spelling."""

_IMITATES = frozenset("ΑΒΕΖΗΙΚΜΝΟΡΤΥΧανορυικасеорхуіјѕһԁԛԝАВЕКМНОРСТХУІЈЅԌԚԜ")
"""Greek and Cyrillic letters that look like Latin ones."""


def _named(chars: str) -> str:
    return " ".join(f"U+{ord(char):04X}" for char in chars[:4])


def control_characters(text: str) -> Iterator[str]:
    """Yields each run of C0 and C1 controls, as code points."""
    yield from (_named(found.group()) for found in _CONTROL.finditer(text))


def bidi_characters(text: str) -> Iterator[str]:
    """Yields each run of embeddings, overrides and isolates, as code points."""
    yield from (_named(found.group()) for found in _BIDI.finditer(text))


def invisible_characters(text: str) -> Iterator[str]:
    """Yields zero-width and other unseen characters, but not those that spelling needs."""
    for found in _INVISIBLE.finditer(text):
        at = found.start()
        if not _is_spelling(found.group(), text[at - 1 : at], text[at + 1 : at + 2]):
            yield _named(found.group())


def _is_spelling(char: str, before: str, after: str) -> bool:
    """Whether it has a place there: a joiner in its scripts and in emoji, one selector after a symbol."""
    if char in "\u200c\u200d":
        return _script(before) in _JOINING or (char == "\u200d" and _pictures(before) and _pictures(after))
    if char in "\ufe0e\ufe0f":
        return bool(before) and (
            before in "#*0123456789" or unicodedata.category(before) in ("So", "Sm", "Po")
        )
    if char == "\u3000":
        return "CJK" in (_script(before), _script(after))
    return False


def _pictures(char: str) -> bool:
    return bool(char) and (char == "\ufe0f" or unicodedata.category(char) in ("So", "Sk"))


def encoding_damage(text: str) -> Iterator[str]:
    """Yields escape sequences, replacement and private characters, mojibake, unassigned code points."""
    yield from (f"an escape sequence {found.group()}" for found in _ESCAPED.finditer(text))
    if text.isascii():
        return
    from ftfy.badness import BADNESS_RE

    yield from (_named(found.group()) for found in _DAMAGED.finditer(text))
    yield from (f"mojibake {_named(found.group())}" for found in BADNESS_RE.finditer(text))
    yield from (_named(char) for char in text if unicodedata.category(char) == "Cn")


def imitated_letters(text: str) -> Iterator[str]:
    """Yields styled letters, stacked marks, and words with Greek or Cyrillic for Latin letters."""
    if text.isascii():
        return
    yield from (f"letters in disguise {_named(found.group())}" for found in _DISGUISED.finditer(text))
    yield from (f"stacked marks {_named(found.group())}" for found in _STACKED.finditer(text))
    latin = re.search(r"[A-Za-z]", text) is not None
    for found in _WORD.finditer(text):
        word = found.group()
        imitating = [char for char in word if char in _IMITATES]
        if not imitating:
            continue
        scripts = {_script(char) for char in word}
        if "LATIN" in scripts or (latin and len(imitating) == len(word)):
            yield f"a word of {' and '.join(sorted(scripts | {'LATIN'}))} letters, {_named(imitating[0])}"


def scripts(text: str) -> set[str]:
    """The scripts of a text's letters: LATIN, CJK, ARABIC …"""
    if text.isascii():
        return {"LATIN"} if re.search(r"[A-Za-z]", text) else set()
    return {_script(char) for char in text if char.isalpha()} - {""}


def _script(char: str) -> str:
    return unicodedata.name(char, "").partition(" ")[0] if char else ""
