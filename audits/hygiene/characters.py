"""Characters that nobody sees, that reverse or imitate others, or that a wrong decoding left behind."""

import re
import unicodedata
from collections.abc import Iterator

_ESCAPED = re.compile(r"\\u[0-9a-fA-F]{4}|\\x[0-9a-fA-F]{2}")
_WORD = re.compile(r"[^\W\d_]+(?:[\d_]*[^\W\d_]+)*")

_DIRECTIONS = frozenset(("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"))
_MARKS = "\u061c\u200e\u200f"
"""Characters of a direction that Unicode calls letters."""

_FILLERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0")
"""Characters without an ink that Unicode calls letters, marks or symbols."""

_JOINING = frozenset(
    "ARABIC SYRIAC MONGOLIAN DEVANAGARI BENGALI GURMUKHI GUJARATI ORIYA TAMIL TELUGU KANNADA MALAYALAM "
    "SINHALA KHMER MYANMAR TIBETAN".split()
)
"""Scripts in which a zero-width joiner or non-joiner is spelling."""

_IMITATES = frozenset("ΑΒΕΖΗΙΚΜΝΟΡΤΥΧανορυικасеорхуіјѕһԁԛԝАВЕКМНОРСТХУІЈЅԌԚԜ")
"""Greek and Cyrillic letters that look like Latin ones."""


def _named(char: str) -> str:
    return f"U+{ord(char):04X}"


def control_characters(text: str) -> Iterator[str]:
    """Yields controls of C0 and C1 and separators of lines, as code points."""
    if text.isprintable():
        return
    for char in text:
        if char not in "\t\n" and unicodedata.category(char) in ("Cc", "Zl", "Zp"):
            yield _named(char)


def bidi_characters(text: str) -> Iterator[str]:
    """Yields embeddings, overrides, isolates and marks of a direction, as code points."""
    if text.isascii():
        return
    for char in text:
        if char in _MARKS or unicodedata.bidirectional(char) in _DIRECTIONS:
            yield _named(char)


def invisible_characters(text: str) -> Iterator[str]:
    """Yields zero-width and other unseen characters, but not those that spelling needs."""
    if text.isascii():
        return
    for at, char in enumerate(text):
        if _is_unseen(char) and not _is_spelling(char, text[at - 1 : at], text[at + 1 : at + 2]):
            yield _named(char)


def _is_unseen(char: str) -> bool:
    """A space that is not one, a format character that sets no direction, a filler, a variation selector."""
    if char.isascii() or char in _MARKS or unicodedata.bidirectional(char) in _DIRECTIONS:
        return False
    if char in _FILLERS or unicodedata.category(char) in ("Cf", "Zs"):
        return True
    return unicodedata.name(char, "").startswith("VARIATION SELECTOR")


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

    yield from (f"mojibake {_named(found.group()[0])}" for found in BADNESS_RE.finditer(text))
    for char in text:
        if char == "\ufffd" or unicodedata.category(char) in ("Co", "Cs", "Cn"):
            yield _named(char)


def imitated_letters(text: str) -> Iterator[str]:
    """Yields styled letters, and words with Greek or Cyrillic for Latin letters."""
    if text.isascii():
        return
    yield from (f"a letter in disguise {_named(char)}" for char in text if _is_styled(char))
    latin = re.search(r"[A-Za-z]", text) is not None
    for found in _WORD.finditer(text):
        word = found.group()
        imitating = [char for char in word if char in _IMITATES]
        if not imitating:
            continue
        scripts = {_script(char) for char in word}
        if "LATIN" in scripts or (latin and len(imitating) == len(word)):
            yield f"a word of {' and '.join(sorted(scripts | {'LATIN'}))} letters, {_named(imitating[0])}"


def _is_styled(char: str) -> bool:
    """A letter or digit of ASCII in another style: full-width, mathematical, in a circle."""
    if char.isascii() or unicodedata.category(char) not in ("Lu", "Ll", "Nd", "So"):
        return False
    plain = unicodedata.normalize("NFKC", char).strip("()")
    return len(plain) == 1 and plain.isascii()


def scripts(text: str) -> set[str]:
    """The scripts of a text's letters: LATIN, CJK, ARABIC …"""
    if text.isascii():
        return {"LATIN"} if re.search(r"[A-Za-z]", text) else set()
    return {_script(char) for char in text if char.isalpha()} - {""}


def _script(char: str) -> str:
    return unicodedata.name(char, "").partition(" ")[0] if char else ""
