"""Arguments that a format carries as text, typed by the tool's schema; entities, decoded once."""

import re
from collections.abc import Mapping

from robustbench_tc.schema import Json

from .context import ParseContext
from .json_values import decode, decode_value
from .stored import clean

_ENTITY = re.compile(r"&(lt|gt|amp|quot|apos|nbsp|#\d{1,7}|#[xX][0-9a-fA-F]{1,6});")
_NAMED = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'", "nbsp": "\u00a0"}
_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,400})(?:\.\d{1,400})?(?:[eE][+-]?\d{1,4})?")
_CDATA = re.compile(r"\s*<!\[CDATA\[(.*)\]\]>\s*", re.DOTALL)
_NULLS = ("null", "none")


def unescaped(text: str) -> str:
    """XML's five named entities, the no-break space and numeric ones as characters, once."""
    return _ENTITY.sub(_character, text) if "&" in text else text


def _character(entity: re.Match[str]) -> str:
    name = entity[1]
    if name[0] != "#":
        return _NAMED[name]
    code = int(name[2:], 16) if name[1] in "xX" else int(name[1:])
    return chr(code) if 0 < code < 0x110000 and not 0xD800 <= code < 0xE000 else entity[0]


def element_text(text: str, *, entities: bool) -> str:
    """The content of an element that holds one value: one line break at either end is layout."""
    cdata = _CDATA.fullmatch(text)
    if cdata is not None:
        return cdata[1]
    if text.startswith("\r\n"):
        text = text[2:]
    elif text.startswith("\n"):
        text = text[1:]
    stripped = text.rstrip(" \t")
    if stripped.endswith("\n"):
        text = stripped[:-1].removesuffix("\r")
    return unescaped(text) if entities else text


def types_of(schema: Json) -> frozenset[str]:
    """The JSON types that a schema names, those of its alternatives included; empty where it names none."""
    if not isinstance(schema, Mapping):
        return frozenset()
    found = schema.get("type")
    lists = (schema[key][:16] for key in ("anyOf", "oneOf") if isinstance(schema.get(key), list))
    options = (one.get("type") for options in lists for one in options if isinstance(one, Mapping))
    words = (*(found if isinstance(found, list) else (found,)), *options)
    return frozenset(word for word in words if isinstance(word, str))


def typed(text: str, schema: Json, context: ParseContext) -> Json:
    """The value that `text` stands for under `schema`; the text itself where it fits no declared type.

    `null` is null whatever is declared, as serving stacks have it. Without a type, and for a text that is none of
    its parameter's choices, JSON numbers, booleans, lists and objects are taken for what they look like.
    """
    types = types_of(schema)
    bare = text.strip()
    if bare == "null" or ("null" in types and bare.lower() in _NULLS):
        return None
    if types == {"string"}:
        choices = schema.get("enum")
        if not isinstance(choices, list) or not choices or bare in choices:
            return text
    if types <= {"string"}:
        return _as_it_looks(text, bare, context)
    if types & {"array", "object"} and bare[:1] in ("[", "{", "("):
        found = decode_value(bare, context)
        if isinstance(found, list | dict):
            return found
    if "boolean" in types and bare.lower() in ("true", "false"):
        return bare.lower() == "true"
    if types & {"integer", "number"} and _NUMBER.fullmatch(bare):
        return _number(bare, text)
    if "string" not in types and bare.lower() in _NULLS:
        return None
    return text


def _number(bare: str, text: str) -> Json:
    try:
        return clean(decode(bare))
    except ValueError:
        return text


def _as_it_looks(text: str, bare: str, context: ParseContext) -> Json:
    if bare[:1] in ("[", "{"):
        found = decode_value(bare, context)
        return found if isinstance(found, list | dict) else text
    if bare in ("true", "false", "null", "True", "False", "None"):
        return {"t": True, "f": False}.get(bare[0].lower())
    return _number(bare, text) if _NUMBER.fullmatch(bare) else text
