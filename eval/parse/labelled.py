"""Variants T2 and T4: a labelled line with the tool's name, then its arguments as an object (T2) or as one line
for each (T4)."""

import re

from robustbench_tc.schema import Call, Json

from .context import Finding, Found, ParseContext, bare_name, end_of
from .json_values import object_at
from .python_calls import single
from .typed import typed, types_of

_NAME_LINE = re.compile(
    r"(?mi)^[ \t*>#•\d.)_-]{0,12}(?:(?:selected|chosen|next|api|function|tool|call)[ _-]?)?"
    r"(?:function|tool|name|api|method|call)(?:[ _-]?(?:name|call|used|to[ _](?:use|call)))?"
    r"[*_]{0,3}[ \t]{0,8}[:：][ \t*_]{0,8}(?P<name>[^\n]{1,200})$"
)
_ARGUMENTS = re.compile(
    r"(?i)\s{0,64}[*>•_#-]{0,3}[ \t]{0,3}[*_]{0,3}(?:the[ ])?(?:(?:function|tool|call|action|api)[ _-]?)?"
    r"(?:parameters|arguments|params|args|inputs?|kwargs)[*_]{0,3}[ \t]{0,8}[:：][ \t*_]{0,8}"
)
_PAIR = re.compile(
    r"[ \t]{0,32}(?:[-*•][ \t]{0,4})?[`*\"']{0,3}([^\W\d][\w.-]{0,127})[`*\"']{0,3}["
    r" \t]{0,8}[:=：][`*]{0,3}[ \t]{0,8}([^\n]{0,4096})(?:\n|\Z)"
)
_ITEM = re.compile(r"[ \t]{0,32}[-*•][ \t]{1,4}([^\n]{1,1024})(?:\n|\Z)")
_OBJECT = re.compile(r"\s{0,8}(?:`{1,3}(?:\w{1,10}(?=\s))?\s{0,8})?(?=\{)")
_NOTHING = re.compile(
    r"(?i)\s{0,8}(?:none|null|n/a|\(none\)|\{\s*\}|-|empty|no arguments)?[.`]?[ \t]{0,8}(?=\n|\Z)"
)
_LINE_END = re.compile(r"[ \t`]{0,8}(?:\n\s{0,8})?(?:```\w{0,10}\n)?")
_ARGUMENT = re.compile(
    r"(?!(?:reason|thought|note|why|purpose|description|status|result|output|explanation)\b)[a-z][\w.-]{0,63}"
)
"""An undeclared key that may be an argument."""

_UNITS = 6
_MAX_PAIRS = 64


def labelled(text: str, context: ParseContext) -> list[Found]:
    """T2 and T4. A name alone, or one with lines that are not arguments of the tool, is not a call."""
    if ":" not in text and "：" not in text:
        return []
    found: list[Found] = []
    position = 0
    while match := _NAME_LINE.search(text, position):
        position = match.end()
        if not context.spend(_UNITS):
            break
        name = bare_name(match["name"].strip().rstrip(",").strip("`*\"' "))
        if not name or name[:1] in "[{(" or (" " in name and context.resolve(name) is None):
            continue
        read = _arguments(text, position, name, context)
        if read is None:
            continue
        parameters, end, code = read
        found.append(Found(match.start(), end, (Finding(Call(name, parameters)),), code))
        position = end
    return found


def _arguments(
    text: str, position: int, name: str, context: ParseContext
) -> tuple[dict[str, Json], int, str] | None:
    label = _ARGUMENTS.match(text, position)
    first = _PAIR.match(text, end_of(_LINE_END, text, position))
    if label is None or (first is not None and first[1] in context.schemas_of(name)):
        return _lines(text, position, name, context)
    at = label.end()
    if opening := _OBJECT.match(text, at):
        read = object_at(text, opening.end(), context)
        return None if read is None else (*read, "T2")
    if lines := _lines(text, at, name, context):
        return lines
    line = text[at : text.find("\n", at) if "\n" in text[at:] else len(text)].strip(" \t`")
    if "=" in line and len(line) < 2_000 and (call := single(f"f({line})", context)) and call.parameters:
        return call.parameters, at + len(line), "T4"
    if (nothing := _NOTHING.match(text, at)) and context.resolve(name) is not None:
        return {}, nothing.end(), "T2"
    return None


def _lines(
    text: str, position: int, name: str, context: ParseContext
) -> tuple[dict[str, Json], int, str] | None:
    """T4: `key: value`, one parameter a line, some of them declared; a list may follow its key, one item a line."""
    schemas = context.schemas_of(name)
    at = end_of(_LINE_END, text, position)
    found: dict[str, Json] = {}
    declared = 0
    while len(found) < _MAX_PAIRS and (pair := _PAIR.match(text, at)):
        key, value = pair[1], pair[2].strip().rstrip(",")
        if value.startswith(":") and f"{key}:" in schemas:
            key, value = f"{key}:", value[1:].strip()
        known = key in schemas
        if key in found or not context.spend(_UNITS) or not (known or (schemas and _ARGUMENT.fullmatch(key))):
            break
        declared += known
        at = pair.end()
        if not value:
            items: list[Json] = []
            inner = schemas[key].get("items") if isinstance(schemas.get(key), dict) else None
            while item := _ITEM.match(text, at):
                if not context.spend(_UNITS):
                    return None
                items.append(typed(_unquoted(item[1].strip()), inner, context))
                at = item.end()
            found[key] = items or ""
            continue
        types = types_of(schemas.get(key))
        found[key] = typed(
            _unquoted(value) if "string" in types or not types else value, schemas.get(key), context
        )
    return (found, at, "T4") if declared else None


def _unquoted(value: str) -> str:
    value = value.strip("`*")
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    return value
