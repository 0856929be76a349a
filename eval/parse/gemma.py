"""Arguments as Gemma's function callers write them: `{city:<escape>Paris<escape>,days:3}`.

Texts stand between markers of their own; without the markers (a server that strips special tokens) a text ends
where the next key or the closing brace begins. Numbers, booleans, lists and objects are written plainly.
"""

import re

from robustbench_tc.schema import Json

from .context import MAX_DEPTH, ParseContext
from .typed import typed, types_of

QUOTES = ("<escape>", '<|"|>')

_QUOTE = re.compile(r'<escape>|<\|"\|>')
_KEY = re.compile(r"""\s*+(?:<escape>|<\|"\|>|")?([^\W\d][\w.-]{0,127})(?:<escape>|<\|"\|>|")?\s*+:\s*+""")
_PLAIN = re.compile(r"[^,{}\[\]<]++")
_UNQUOTED = re.compile(r"(.*?)(?=\s*+(?:,\s*+[^\W\d][\w.-]{0,127}\s*+:|\}))", re.DOTALL)
_UNITS = 3
_UNITS_FOR_NOTHING = 100
_MAX_UNQUOTED = 4_096


class _Unreadable(Exception):
    pass


def braces_at(
    text: str, start: int, name: str, context: ParseContext, *, marked: bool
) -> tuple[dict[str, Json], int] | None:
    """The arguments in the braces that open at `start`, and the position behind.

    `marked`: the tokens are there, so that what stands without them is not text. Else the schema gives the types.
    """
    if text[start : start + 1] != "{":
        return None
    try:
        return _members(text, start, {} if marked else context.schemas_of(name), context, 0)
    except _Unreadable:
        return None


def _members(
    text: str, start: int, schemas: dict[str, Json], context: ParseContext, depth: int
) -> tuple[dict[str, Json], int]:
    if depth > MAX_DEPTH:
        raise _Unreadable
    found: dict[str, Json] = {}
    at = _skip(text, start + 1)
    while text[at : at + 1] != "}":
        key = _KEY.match(text, at)
        if key is None or not context.spend(_UNITS):
            raise _Unreadable
        found[key[1]], at = _value(text, key.end(), schemas.get(key[1]), context, depth)
        at = _skip(text, at)
        if text[at : at + 1] == ",":
            at = _skip(text, at + 1)
        elif text[at : at + 1] != "}":
            raise _Unreadable
    return found, at + 1


def _value(text: str, at: int, schema: Json, context: ParseContext, depth: int) -> tuple[Json, int]:
    quote = _QUOTE.match(text, at)
    if quote is not None:
        end = text.find(quote[0], quote.end())
        if end < 0 or not context.spend(_UNITS):
            raise _Unreadable
        return text[quote.end() : end], end + len(quote[0])
    if text.startswith("{", at):
        inner = schema.get("properties") if isinstance(schema, dict) else None
        return _members(text, at, inner if isinstance(inner, dict) else {}, context, depth + 1)
    if text.startswith("[", at):
        return _items(text, at, schema, context, depth)
    if types_of(schema) == {"string"}:
        word = _UNQUOTED.match(text, at, at + _MAX_UNQUOTED)
        if word is None or not context.spend(_UNITS + len(word[1]) // 16):
            context.spend(_UNITS_FOR_NOTHING)
            raise _Unreadable
        return _unquoted(word[1]), word.end()
    plain = _PLAIN.match(text, at)
    if plain is None:
        raise _Unreadable
    return typed(_unquoted(plain[0]), schema, context), plain.end()


def _unquoted(text: str) -> str:
    """The text without the quotes around it. Quotes that open inside it are broken JSON."""
    inner = text.strip()
    if inner.startswith('"'):
        inner = inner[1:].removesuffix('"')
        if '"' in inner:
            raise _Unreadable
    return inner


def _items(text: str, start: int, schema: Json, context: ParseContext, depth: int) -> tuple[list[Json], int]:
    if depth > MAX_DEPTH:
        raise _Unreadable
    items = schema.get("items") if isinstance(schema, dict) else None
    found: list[Json] = []
    at = _skip(text, start + 1)
    while text[at : at + 1] != "]":
        if not context.spend(_UNITS):
            raise _Unreadable
        if _QUOTE.match(text, at) or text[at : at + 1] in ("{", "["):
            value, at = _value(text, at, items, context, depth + 1)
        else:
            plain = _PLAIN.match(text, at)
            if plain is None:
                raise _Unreadable
            value, at = typed(_unquoted(plain[0]), items, context), plain.end()
        found.append(value)
        at = _skip(text, at)
        if text[at : at + 1] == ",":
            at = _skip(text, at + 1)
        elif text[at : at + 1] != "]":
            raise _Unreadable
    return found, at + 1


def _skip(text: str, at: int) -> int:
    while text[at : at + 1] in (" ", "\n", "\t", "\r"):
        at += 1
    return at
