"""Arguments as Gemma's function callers write them: `{city:<escape>Paris<escape>,days:3}`.

Texts stand between markers of their own; without the markers (a server that strips special tokens) a text ends
where the next key or the closing brace begins. Numbers, booleans, lists and objects are written plainly.
"""

import re

from robustbench_tc.schema import Json, Tool

from . import lenient
from .context import MAX_DEPTH, ParseContext
from .typed import typed

_KEY = re.compile(r"""[\s,]*+(?:<escape>|<\|"\|>)?([^\W\d][\w.-]{0,127})(?:<escape>|<\|"\|>)?\s*+:\s*+""")
_END = re.compile(r"[\s,]*+\}")
_UNQUOTED = re.compile(r"([^{}\[\]<]*?)(?=\s*+(?:,\s*+[^\W\d][\w.-]{0,127}\s*+:|\}))")
_UNITS = 3
_UNITS_FOR_NOTHING = 100
_MAX_UNQUOTED = 4_096


def braces_at(
    text: str, start: int, schemas: dict[str, Json], context: ParseContext, depth: int = 0
) -> tuple[dict[str, Json], int] | None:
    """The arguments in the braces that open at `start`, and the position behind. Where a text has no markers the
    schema of its parameter says what it is."""
    found: dict[str, Json] = {}
    at = start + 1
    while (key := _KEY.match(text, at)) is not None and context.spend(_UNITS):
        at = key.end()
        if text[at : at + 1] in ("<", "{", "["):
            read = lenient.value(text, at, context)
            if read is None and text[at] == "{" and depth < MAX_DEPTH:
                inner = schemas.get(key[1])
                schema = Tool("", "", inner if isinstance(inner, dict) else {})
                read = braces_at(text, at, schema.properties, context, depth + 1)
            if read is None:
                return None
            found[key[1]], at = read
            continue
        plain = _UNQUOTED.match(text, at, at + _MAX_UNQUOTED)
        if plain is None or not context.spend(_UNITS + len(plain[1]) // 16):
            context.spend(_UNITS_FOR_NOTHING)
            return None
        inner = plain[1].strip()
        if inner.startswith('"'):
            inner = inner[1:].removesuffix('"')
            if '"' in inner:  # broken JSON
                return None
        found[key[1]], at = typed(inner, schemas.get(key[1]), context), plain.end()
    end = _END.match(text, at)
    return None if end is None else (found, end.end())
