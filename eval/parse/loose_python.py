"""Python calls as models write them where Python itself cannot read them: quotes and line breaks inside
strings, typographic quotes, hyphens in names, words without quotes, one closing parenthesis missing.

Tried only after the interpreter's own parser refused the text. Operators, prefixes, nested calls and
expansions stay refused: what is not plainly a value makes the whole call unreadable.
"""

import keyword
import re

from robustbench_tc.schema import Call, Json

from .context import TOOL_NAME, ParseContext
from .json_values import decode, value_at
from .lenient import QUOTES, WORDS, Unreadable, string_at
from .stored import clean

_HEAD = re.compile(rf"\s*+({TOOL_NAME})[ \t]{{0,2}}\(\s*+")
_NAMED = (
    r"""(?:"([^"\\\n]{1,128})"|'([^'\\\n]{1,128})'|[“‘]([^”’\n]{1,128})[”’]|([^\W\d][\w.:-]{0,127}?))\s*+"""
)
_KEY = re.compile(_NAMED + r"=(?!=)\s*+")
_KEY_WITH_COLON = re.compile(_NAMED + r"(?:=(?!=)|:)\s*+")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,300})(?:\.\d{1,300})?(?:[eE][+-]?\d{1,4})?(?=\s*+(?:[,)\]]|\Z))")
_WORD = re.compile(r"[^\W\d]\w*+(?:[ ][\w]++){0,12}(?=\s*+(?:[,)\]]|\Z))")
_MOMENT = re.compile(r"(?:\d{4}-\d{2}-\d{2}|\d{1,2}:\d{2}(?::\d{2})?)(?=\s*+[,)\]])")
_BETWEEN = re.compile(r"\s*+(,?)\s*+")
_AFTER = r"""\s*+(?:\)|\]\s*+(?:\Z|[\n`<.])|\Z|,\s*+(?:["'“‘]?[^\W\d][\w.-]{0,127}?["'”’]?\s*+SIGN|\)|\]))"""
_AFTER_STRING = re.compile(_AFTER.replace("SIGN", "="))
_AFTER_STRING_WITH_COLON = re.compile(_AFTER.replace("SIGN", "[=:]"))
_UNITS = 6
_MAX_CALLS = 64


def read_list(
    text: str, start: int, context: ParseContext, *, colons: bool = False
) -> tuple[list[Call], int] | None:
    """The calls of the list that opens at `start`, and the position behind it; None unless all are readable.

    The last call may lack its closing parenthesis, the list then has its bracket.
    """
    calls: list[Call] = []
    at = start + 1
    try:
        while len(calls) < _MAX_CALLS:
            call, at = _call(text, at, context, in_list=True, colons=colons)
            calls.append(call)
            between = _BETWEEN.match(text, at)
            at = between.end() if between else at
            if text[at : at + 1] == "]":
                return calls, at + 1
            if not between or not between[1]:
                return None
    except ValueError:  # one call that cannot be read makes the list none
        pass
    return None


def read_call(
    text: str, start: int, context: ParseContext, *, colons: bool = False
) -> tuple[Call, int] | None:
    """The call whose name stands at `start`, and the position behind it."""
    try:
        return _call(text, start, context, in_list=False, colons=colons)
    except ValueError:
        return None


def _call(text: str, start: int, context: ParseContext, *, in_list: bool, colons: bool) -> tuple[Call, int]:
    head = _HEAD.match(text, start)
    if head is None or not context.spend(_UNITS):
        raise Unreadable
    name = head[1]
    at = head.end()
    parameters: dict[str, Json] = {}
    while True:
        sign = text[at : at + 1]
        if sign == ")":
            return Call(name, parameters), at + 1
        if sign == "]" and in_list and parameters:  # the parenthesis is missing, the bracket is there
            return Call(name, parameters), at
        if not sign:
            if in_list or not parameters or context.cut:
                raise Unreadable
            return Call(name, parameters), at
        key = (_KEY_WITH_COLON if colons else _KEY).match(text, at)
        if key is None or not context.spend(_UNITS):
            raise Unreadable
        word = key[1] or key[2] or key[3] or key[4]
        parameters[word], at = _value(text, key.end(), context, colons)
        between = _BETWEEN.match(text, at)
        at = between.end() if between else at
        if not (between and between[1]) and text[at : at + 1] not in (")", "]", ""):
            raise Unreadable


def _value(text: str, at: int, context: ParseContext, colons: bool) -> tuple[Json, int]:
    sign = text[at : at + 1]
    if sign in QUOTES:
        found, end = string_at(text, at, _AFTER_STRING_WITH_COLON if colons else _AFTER_STRING, context)
        if context.cut and not text[end:].strip():
            raise Unreadable
        return found, end
    if sign in ("[", "{", "("):
        if (read := value_at(text, at, context)) is None:
            raise Unreadable
        return read
    if number := _NUMBER.match(text, at):
        return clean(decode(number[0])), number.end()
    if moment := _MOMENT.match(text, at):
        return moment[0], moment.end()
    word = _WORD.match(text, at)
    if word is None:
        raise Unreadable
    if word[0] in WORDS:
        return WORDS[word[0]], word.end()
    if any(keyword.iskeyword(part) for part in word[0].split(" ")):
        raise Unreadable
    return word[0], word.end()
