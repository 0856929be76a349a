"""Calls written as XML elements: a tool named by the tag or by an attribute, its arguments as attributes, as
elements, or as one JSON object."""

import re
from typing import NamedTuple

from robustbench_tc.schema import Call, Json

from .context import Finding, Found, ParseContext, bare_name, end_of
from .json_values import arguments_at, object_at, value_at
from .typed import element_text, typed, types_of, unescaped

_ATTRIBUTE = re.compile(
    r"""\s*+,?\s*+([^\W\d][\w:.-]{0,63})\s{0,16}=\s{0,16}(?:"([^"]*)"|'([^']*)'|(?=(\{))|([^\s"'/>{]+(?:/(?!>)[^\s"'/>{]*)*))"""
)
_TAG_END = re.compile(r"\s*+(/?)\s*+>")
_CHILD = re.compile(
    r"<\s?(?P<tag>(?:[\w.-]{1,16}:)?(?P<word>[^\W\d][\w.-]{0,127}:?))(?:=(?P<key>[^>\n]{1,160})"
    r"|(?P<attributes>\s[^>]{1,400})|\s*)>"
)
_PAIR = re.compile(
    r"<(?P<glm>(?:ifm\|)?)arg_key>(?P<key>[^<]{0,160}?)</(?:ifm\|)?arg_key>\s*+(?:<(?:ifm\|)?arg_type>[^<]{0,64}</(?:ifm\|)?arg_type>\s*+)?"
    r"(?:<(?:ifm\|)?arg_value>)?",
    re.DOTALL,
)
"""GLM: the key as an element, its value as the next one, whose opening may be missing."""

_NEXT_OPENING = re.compile(
    r"<(?:tool_call>|function=|(?:\w{1,16}:)?invoke\s|(?:ifm\|)?arg_key>|(?:\w{1,16}:)?param(?:eter)?"
    r"(?:=|\s[^<>]{0,64}?(?:name|key)\s?=\s?)(?P<key>[^<>\s]{1,128}))"
)
"""What no value reaches beyond: a call, or a parameter that the tool declares."""

_TOKEN = re.compile(
    r"\s*+(?:\Z|<[|｜]|```|\[/|(?P<tag><(?P<slash>/?)\s?(?:ifm\|)?(?P<word>[\w.:-]{1,128})"
    r"(?:(?:=|\s[^<>]{0,64}?(?:name|key)\s?=\s?)(?P<key>[^<>\s]{1,128}))?))"
)
_EMPTY_CHILD = re.compile(r"<\s?(?P<tag>[^\W\d][\w.-]{0,127})\s*/>")
_NAME_ATTRIBUTE = re.compile(r"""(?:name|key)\s*=\s*(?:"([^"]{1,160})"|'([^']{1,160})'|([^\s"'>]{1,160}))""")
_STRING_ATTRIBUTE = re.compile(r"""\bstring\s*=\s*["']?(true|false)""")
_SPACE = re.compile(r"\s*+")
_NAMING = ("tool", "name", "tool_name", "function", "function_name", "func_name", "func", "action", "api")
_HOLDING = frozenset(
    "parameters arguments params args input inputs kwargs tool_input action_input tool_args".split()
)
_PARAMETER_TAGS = frozenset({"parameter", "param", "arg", "argument"})
_NAME_TAGS = frozenset(
    {"name", "tool_name", "function_name", "tool", "function", "action", "func_name", "api_name"}
)
CALL_TAGS = frozenset(
    "tool_call tool_calls tool-call tool-calls toolcall toolcalls function_call function_calls function-call "
    "function-calls functioncall functioncalls function functions tool tools call calls tool_use tool_uses"
    " use_tool "
    "tool_request tool_code tool_invocation dots_function_call longcat_tool_call api_call api_calls"
    " invocation "
    "action execute".split()
)
"""Tags between which calls stand, lower case, without what stands before a colon."""

_FORMAT_TAGS = _HOLDING | _PARAMETER_TAGS | {"arg_key", "arg_value", "invoke"}
_CALLS = ("tool_call", "function", "invoke")
_ENDS = CALL_TAGS | {"invoke", "parameters", "arguments", "params", "args"}
"""Tags whose end may follow the last argument."""
_UNITS = 6
_MAX_CHILDREN = 128
_MAX_DEPTH = 8


class Opening(NamedTuple):
    """A tag with its attributes as written."""

    attributes: dict[str, str]
    end: int
    closed: bool
    """`<f …/>`."""
    braced: frozenset[str] = frozenset()
    """Attributes whose value stands in braces instead of quotes."""
    repeated: tuple[tuple[str, str], ...] = ()
    """Attributes of a name that was there before: the tool's name first, then an argument of that name."""


def opening_at(text: str, at: int, context: ParseContext) -> Opening | None:
    """The rest of an opening tag from behind its name; values in braces may hold anything balanced."""
    attributes: dict[str, str] = {}
    braced: set[str] = set()
    repeated: list[tuple[str, str]] = []
    while len(attributes) < _MAX_CHILDREN:
        end = _TAG_END.match(text, at)
        if end is not None:
            return Opening(attributes, end.end(), bool(end[1]), frozenset(braced), tuple(repeated))
        match = _ATTRIBUTE.match(text, at)
        if match is None or not context.spend(_UNITS):
            return None
        at = match.end()
        if match[4] is not None:
            closing = context.balanced(text, at)
            if closing is None:
                return None
            attributes[match[1]] = text[at:closing]
            braced.add(match[1])
            at = closing
        elif match[1] in attributes:
            repeated.append((match[1], match[2] or match[3] or match[5] or ""))
        else:
            attributes[match[1]] = match[2] or match[3] or match[5] or ""
    return None


def named_by_attribute(
    text: str, start: int, tag: str, opening: Opening, context: ParseContext, *, entities: bool
) -> Found | None:
    """`<tool name="f" parameters={…}/>` (A3), `<toolcall tool="f">{…}</toolcall>` (A4, A5), `<invoke name="f">`
    and `<function name="f">` with elements (X2, X5), `<tool_call name="f" k="v"/>` (X5)."""
    keys = {key.lower(): key for key in opening.attributes}
    naming = next((keys[key] for key in _NAMING if key in keys and opening.attributes[keys[key]]), None)
    if naming is None:
        return None
    name = bare_name(unescaped(opening.attributes[naming]))
    rest = {key: value for key, value in opening.attributes.items() if key != naming} | dict(opening.repeated)
    invoked = tag.rpartition(":")[2].lower() == "invoke"
    holding = next((key for key in rest if key.lower() in _HOLDING), None)
    if holding is not None and holding not in context.schemas_of(name):
        found = _object_in(rest[holding], context)
        if found is None:
            return None
        end = opening.end if opening.closed else _behind(text, opening.end, tag)
        return Found(start, end, (Finding(Call(name, found)),), "A3")
    schemas = context.schemas_of(name)
    given = {
        key: typed(_unbraced(value) if key in opening.braced else unescaped(value), schemas.get(key), context)
        for key, value in rest.items()
        if key in schemas or (opening.closed and key.lower() not in ("id", "type", "index", "string"))
    }
    if opening.closed:
        return Found(start, opening.end, (Finding(Call(name, given)),), "X5")
    body = read_body(text, opening.end, tag, name, context, entities=entities)
    if body is None:
        return None
    if body.is_text and body.raw is not None:
        if given:
            body = body._replace(raw=None)
        elif not context.may_name(name) or context.knows(tag):  # an unknown name, or a word, around a text
            return None
    finding = Finding(Call(name, {**given, **body.parameters}), raw=body.raw)
    code = "X2" if invoked else ("A4" if naming.lower() == "tool" else "A5")
    if not invoked and (body.has_elements or (given and not body.parameters)):
        code = "X5"
    return Found(start, body.end, (finding,), code)


def _unbraced(value: str) -> str:
    """JSX: `days={3}`; an object keeps its own braces, one pair of them too."""
    inner = value[1:-1].strip()
    if inner[:1] in ("{", "[") or ":" not in inner:
        return (
            inner[1:-1] if inner[:1] in ("'", '"') and inner[-1:] == inner[:1] and len(inner) > 1 else inner
        )
    return value


def _object_in(value: str, context: ParseContext) -> dict[str, Json] | None:
    for text in (value, unescaped(value), value.replace('\\"', '"')):
        if (found := object_at(text, 0, context)) is not None:
            return found[0]
    return {} if not value.strip() else None


class Body(NamedTuple):
    """What an element of a call holds."""

    parameters: dict[str, Json]
    end: int
    raw: str | None = None
    has_elements: bool = False
    is_text: bool = False
    name: str | None = None
    """From an element that names the tool."""


def read_body(
    text: str, start: int, tag: str, name: str | None, context: ParseContext, *, entities: bool
) -> Body | None:
    """The arguments from behind the opening tag on. None where they were cut off."""
    at = end_of(_SPACE, text, start)
    if text.startswith("```", at):
        at = text.find("{", at) if 0 <= text.find("{", at) - at < 16 else at
    sign = text[at : at + 1]
    if sign == "{":
        read = arguments_at(text, at, context)
        return None if read is None else Body(read[0], _behind(text, read[2], tag), read[1])
    if sign == "<":
        return read_children(text, at, tag, name, context, entities=entities)
    closing = context.find(text, f"</{tag}>", at)
    if closing < 0:
        return Body({}, at) if not sign else None
    content = text[at:closing].strip()
    end = closing + len(tag) + 3
    return Body({}, end, content[:4_096] or None, is_text=True)


def _behind(text: str, at: int, tag: str) -> int:
    """The position behind the closing tag where only layout stands before it, else `at`."""
    return end_of(re.compile(r"\s*+(?:```\s*+)?" + re.escape(f"</{tag}>")), text, at)


def read_children(
    text: str, at: int, tag: str, name: str | None, context: ParseContext, *, entities: bool, depth: int = 0
) -> Body | None:
    """Arguments as elements: `<parameter=k>`, `<parameter name="k">` or `<k>`; an element that holds them all."""
    schemas = context.schemas_of(name or "")
    parameters: dict[str, Json] = {}
    raw: str | None = None
    named: str | None = None
    closing = f"</{tag}>"
    while len(parameters) < _MAX_CHILDREN:
        at = end_of(_SPACE, text, at)
        if text.startswith(closing, at):
            return Body(parameters, at + len(closing), raw, has_elements=True, name=named)
        if empty := _EMPTY_CHILD.match(text, at):
            at = empty.end()
            continue
        if text.startswith("{", at) and (given := arguments_at(text, at, context)) is not None:
            parameters, raw, at = parameters | given[0], given[1], given[2]
            continue
        if pair := _PAIR.match(text, at):
            key, tag_of_value = pair["key"].strip(), f"{pair['glm']}arg_value"
            value = _value_at(text, pair.end(), tag_of_value, closing, schemas, context, open_ended=True)
            if value is None or not context.spend(_UNITS):
                return None
            parameters[key], at = typed(value[0], schemas.get(key), context), value[1]
            continue
        child = _CHILD.match(text, at)
        if child is None or not context.spend(_UNITS):
            break
        word = child["word"].lower()
        if word == "description" and word not in schemas:  # an entry of a registry
            return None
        if word in _CALLS and (name or named):  # the next call
            break
        if word == "server_name" and tag == "use_mcp_tool":
            at = max(context.find(text, "</server_name>", child.end()), child.end() - 14) + 14
            continue
        attributes = child["attributes"] or ""
        key = child["key"] or (_named(attributes) if word in _PARAMETER_TAGS else None) or child["word"]
        key = key.strip().strip("\"'")
        is_parameter = word in _PARAMETER_TAGS and key != child["word"]
        value = _value_at(text, child.end(), child["tag"], closing, schemas, context, open_ended=is_parameter)
        if (
            value is None and word in _HOLDING
        ):  # its end is missing: what it holds stands as if it were not there
            at = child.end()
            continue
        if value is None:
            return None
        content, at = value
        if not is_parameter and word in _HOLDING and key not in schemas:
            held = _held(content, child["tag"], named or name or "", context, entities=entities, depth=depth)
            if held is None:
                raw = content.strip()[:4_096] or None
            else:
                parameters.update(held)
        elif not is_parameter and named is None and name is None and word in _NAME_TAGS:
            named = bare_name(content.strip())
            schemas = context.schemas_of(named)
        else:
            parameters[key] = _child_value(content, attributes, schemas.get(key), context, entities, depth)
    if not parameters and not named:
        return None
    return Body(parameters, at, raw, has_elements=True, name=named)


def _named(attributes: str) -> str | None:
    match = _NAME_ATTRIBUTE.search(attributes)
    return unescaped(match[1] or match[2] or match[3]) if match else None


def _value_at(
    text: str,
    start: int,
    tag: str,
    closing: str,
    schemas: dict[str, Json],
    context: ParseContext,
    *,
    open_ended: bool,
) -> tuple[str, int] | None:
    """The content of a child and the position behind it.

    It ends at the first closing tag that only a token of the format follows: another declared parameter, the end
    of the call, the next call, the end of the text; never beyond the next one's opening. Where there is none, at
    the first closing tag; an argument that is not closed ends where the next one or the end of the call begins.
    """
    limit = next(
        (
            one.start()
            for one in _NEXT_OPENING.finditer(text, start)
            if one["key"] is None or not schemas or (one["key"].strip("\"'") in schemas)
        ),
        len(text),
    )
    if not context.spend((limit - start) // 128):
        return None
    first = -1
    at = start
    while (end := context.find(text, f"</{tag}>", at, limit)) >= 0:
        at = end + len(tag) + 3
        if _may_follow(text, at, closing, schemas):
            return text[start:end], at
        first = end if first < 0 else first
    if first >= 0:
        return text[start:first], first + len(tag) + 3
    last = context.find(text, closing, start, limit) if open_ended else -1
    stop = last if last >= 0 else limit
    return (text[start:stop].rstrip(), stop) if open_ended and stop < len(text) else None


def _may_follow(text: str, at: int, closing: str, schemas: dict[str, Json]) -> bool:
    """Whether a token of the format stands next, or nothing more."""
    token = _TOKEN.match(text, at)
    if token is None or token["word"] is None:
        return token is not None
    word = token["word"].rpartition(":")[2].lower()
    if token["slash"]:
        return word in _ENDS or text.startswith(closing, token.start("tag"))
    if word in CALL_TAGS or word in _FORMAT_TAGS:
        key = (token["key"] or "").strip("\"'")
        return word not in _PARAMETER_TAGS or (bool(key) and (not schemas or key in schemas))
    return not schemas or token["word"] in schemas


def _held(
    content: str, tag: str, name: str, context: ParseContext, *, entities: bool, depth: int
) -> dict[str, Json] | None:
    """The arguments inside `<parameters>…</parameters>`: JSON or elements."""
    stripped = content.strip()
    if stripped.startswith("<") and depth < _MAX_DEPTH:
        whole = f"{stripped}</{tag}>"
        body = read_children(whole, 0, tag, name, context, entities=entities, depth=depth + 1)
        return body.parameters if body is not None and body.end == len(whole) else None
    return _object_in(stripped, context)


def _child_value(
    content: str, attributes: str, schema: Json, context: ParseContext, entities: bool, depth: int
) -> Json:
    string = _STRING_ATTRIBUTE.search(attributes)
    if string is not None:  # DeepSeek says itself which values are texts
        if string[1] == "true":
            return content
        read = value_at(f"[{content.strip()}]", 0, context)
        listed = read[0] if read is not None else None
        return listed[0] if isinstance(listed, list) and len(listed) == 1 else typed(content, {}, context)
    types = types_of(schema)
    stripped = content.strip()
    if stripped.startswith("<") and types & {"object", "array"} and depth < _MAX_DEPTH:
        nested = _nested(stripped, schema, context, entities, depth)
        if nested is not None:
            return nested
    return typed(element_text(content, entities=entities), schema, context)


def _nested(content: str, schema: Json, context: ParseContext, entities: bool, depth: int) -> Json:
    """An object or a list written as elements."""
    declared = schema.get("properties") if isinstance(schema, dict) else None
    items = schema.get("items") if isinstance(schema, dict) else None
    is_list = "array" in types_of(schema)
    found: dict[str, Json] = {}
    listed: list[Json] = []
    at = 0
    while at < len(content):
        child = _CHILD.match(content, at)
        if child is None or not context.spend(_UNITS):
            return None
        value = _value_at(content, child.end(), child["tag"], "\0", {}, context, open_ended=False)
        if value is None:
            return None
        text, at = value
        inner = items
        if not is_list:
            inner = declared.get(child["word"]) if isinstance(declared, dict) else None
        read = _child_value(text, "", inner, context, entities, depth + 1)
        listed.append(read)
        found[child["word"]] = read
        at = end_of(_SPACE, content, at)
    return listed if is_list else found
