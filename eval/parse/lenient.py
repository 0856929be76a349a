"""JSON as careless writers write it: JavaScript's keys, comments, typographic quotes, commas too many, quotes
inside quotes, one closing bracket missing at the very end.

Read token by token, each token drawn from the allowance; nothing is evaluated.
"""

import re

from robustbench_tc.schema import Json

from .context import MAX_DEPTH, ParseContext, end_of
from .stored import clean

_GAP = re.compile(r"(?:\s++|//[^\n]*+|#[^\n]*+)*+")
_WORD = re.compile(r"[^\W\d][\w$.-]*+")
_NUMBER = re.compile(r"[+-]?(?:\d[\d_]{0,300}(?:\.\d{0,300})?|\.\d{1,300})(?:[eE][+-]?\d{1,4})?(?![\w.])")
QUOTES = {
    '"': '"',
    "'": "'",
    "“": "”",
    "”": "”",
    "„": "“”",
    "‘": "’",
    "’": "’",
    "«": "»",
    "`": "`",
    "″": "″",
}
_ENDS = {quote: re.compile(r"\\.|[" + re.escape(ends) + "]", re.DOTALL) for quote, ends in QUOTES.items()}
_AFTER_STRING = re.compile(r"\s*+(?:[,:}\]]|\Z|//|#|/\*)")
_AFTER_KEY = re.compile(r"\s*+:")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|x[0-9a-fA-F]{2}|.)", re.DOTALL)
_ESCAPED_QUOTE = re.compile(r"\\([\"'\\/“‘”’`])")
_STRAY = re.compile(r"(?<!\\)(?:\\\\)*+\\(?![ntrbfux0]|U[0-9a-fA-F]{8})[^\W_]")
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "\n": ""}
WORDS: dict[str, Json] = {
    "true": True,
    "false": False,
    "null": None,
    "True": True,
    "False": False,
    "None": None,
    "undefined": None,
}
_GEMMA = re.compile(r'<escape>|<\|"\|>')
_UNITS_PER_TOKEN = 3
_CHARS_PER_UNIT = 128
_MAX_TRIES = 64
"""So many quotes inside one string are looked at."""


class Unreadable(ValueError):
    """What stands there is no value."""


def value(text: str, start: int, context: ParseContext) -> tuple[Json, int] | None:
    """The value that stands at `start`, and the position behind it; else None."""
    reader = _Reader(text, context)
    try:
        return clean(reader.value(start, 0)), reader.position
    except ValueError:
        return None


def read_container(text: str, start: int, context: ParseContext) -> tuple[Json, int] | None:
    """The value of the object or list that opens at `start`, and the position behind it; else None.

    The last closing bracket may be missing where the text ends there and was not cut.
    """
    if not text.startswith(("{", "["), start) or start + 1 == len(text):
        return None
    return value(text, start, context)


class _Reader:
    """One attempt: `position` is where the value read last ends."""

    def __init__(self, text: str, context: ParseContext) -> None:
        self.text = text
        self.context = context
        self.position = 0
        self.missing = 0

    def value(self, start: int, depth: int) -> Json:
        if depth > MAX_DEPTH or not self.context.spend(_UNITS_PER_TOKEN):
            raise Unreadable
        sign = self.text[start : start + 1]
        if sign in ("{", "["):
            return self._members(start, depth) if sign == "{" else self._items(start, depth)
        if sign in QUOTES:
            return self._string(start, _AFTER_STRING)
        if sign == "<":
            return self._between_marks(start)
        number = _NUMBER.match(self.text, start)
        if number is not None:
            self.position = number.end()
            plain = number[0].replace("_", "")
            return int(plain) if plain.lstrip("+-").isdecimal() else float(plain)
        word = _WORD.match(self.text, start)
        if word is None or word[0] not in WORDS:
            raise Unreadable
        self.position = word.end()
        return WORDS[word[0]]

    def _members(self, start: int, depth: int) -> dict[str, Json]:
        found: dict[str, Json] = {}
        at = self._skip(start + 1)
        while not self._closes(at, "}"):
            if not self.context.spend(_UNITS_PER_TOKEN):
                raise Unreadable
            key = self._key(at)
            at = self._skip(self.position)
            if self.text[at : at + 1] not in (":", "："):
                raise Unreadable
            found[key] = self.value(self._skip(at + 1), depth + 1)
            at = self._next(self.position, "}")
        return found

    def _items(self, start: int, depth: int) -> list[Json]:
        found: list[Json] = []
        at = self._skip(start + 1)
        while not self._closes(at, "]"):
            found.append(self.value(at, depth + 1))
            at = self._next(self.position, "]")
        return found

    def _next(self, at: int, closing: str) -> int:
        """Where the next member or item begins, or the closing bracket stands."""
        at = self._skip(at)
        sign = self.text[at : at + 1]
        if sign in (",", "，"):
            return self._skip(at + 1)
        if sign == closing or at == len(self.text):
            return at
        raise Unreadable

    def _closes(self, at: int, closing: str) -> bool:
        if self.text[at : at + 1] == closing:
            self.position = at + 1
            return True
        if at < len(self.text):
            return False
        self.missing += 1
        if self.missing > 1 or self.context.cut:
            raise Unreadable
        self.position = at
        return True

    def _key(self, at: int) -> str:
        sign = self.text[at : at + 1]
        if sign in QUOTES:
            return self._string(at, _AFTER_KEY)
        if sign == "<":
            return self._between_marks(at)
        word = _WORD.match(self.text, at)
        if word is None:
            raise Unreadable
        self.position = word.end()
        return word[0]

    def _string(self, start: int, after: re.Pattern[str]) -> str:
        found, self.position = string_at(self.text, start, after, self.context)
        return found

    def _between_marks(self, start: int) -> str:
        """A text between Gemma's markers."""
        mark = _GEMMA.match(self.text, start)
        end = self.context.find(self.text, mark[0], mark.end()) if mark is not None else -1
        if mark is None or end < 0:
            raise Unreadable
        self.position = end + len(mark[0])
        return self.text[mark.end() : end]

    def _skip(self, at: int) -> int:
        """The position behind white space and comments."""
        while True:
            at = end_of(_GAP, self.text, at)
            if not self.text.startswith("/*", at):
                return at
            end = self.context.find(self.text, "*/", at + 2)
            if end < 0:
                raise Unreadable
            at = end + 2


def string_at(text: str, start: int, after: re.Pattern[str], context: ParseContext) -> tuple[str, int]:
    """The string that opens at `start`, and the position behind: a quote closes it only where the text may go on
    behind it. Raises Unreadable."""
    ends = _ENDS[text[start]]
    at = start + 1
    tries = 0
    while tries < _MAX_TRIES and (mark := ends.search(text, at)) is not None:
        if not context.spend(1 + (mark.end() - at) // _CHARS_PER_UNIT):
            raise Unreadable
        at = mark.end()
        if mark[0][0] == "\\":
            continue
        tries += 1
        if after.match(text, at):
            return unescaped(text[start + 1 : at - 1]), at
    context.spend((len(text) - at) // _CHARS_PER_UNIT)
    raise Unreadable


def unescaped(text: str) -> str:
    """The text with its escapes as characters. One that escapes nothing (`C:\\Users`) says that the writer escapes
    quotes and backslashes only: the others stay."""
    return (_ESCAPED_QUOTE if _STRAY.search(text) else _ESCAPE).sub(_character, text)


def _character(escape: re.Match[str]) -> str:
    sign = escape[1]
    if len(sign) > 1:
        return chr(int(sign[1:], 16))
    return _ESCAPED.get(sign, sign)
