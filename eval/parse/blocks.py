"""What stands between call tags: JSON (A1), Python (A6), GLM's name with keys and values (G1), a name with an
object behind it (A2), or elements that hold the name and the arguments (X6)."""

import re

from robustbench_tc.schema import Call, Json

from .context import TOOL_NAME, Finding, Found, ParseContext, bare_name, end_of
from .elements import read_body, read_children
from .json_text import block
from .json_values import arguments_at
from .names import is_no_name
from .payload import read_payload

_NAME = re.compile(rf"\s*+(?P<name>{TOOL_NAME})[ \t]*+(?=\s*+(?:<|\n|\Z|\[/))")
_ARGUMENT = re.compile(r"\s*+<(?:ifm\|)?arg_key>")
_SEPARATOR = re.compile(r"\s*+<tool_sep>")
_INPUT = re.compile(
    r"\s*+<(?P<tag>tool_input|input|arguments|args|parameters|params|action_input|tool_args)>\s*+"
)
_OBJECT = re.compile(r"\s{0,64}(?:```(?:[a-z]{0,10})\s{0,8})?(?=\{)")
_SPACE = re.compile(r"\s*+")
_CODES = {"json": "A1", "sep": "A1", "python": "A6", "gemma": "E1"}
_UNITS = 8


def read_block(text: str, start: int, at: int, tag: str, context: ParseContext) -> Found | None:
    """The calls of the block whose content begins at `at`; it may lack its closing tag."""
    if not context.spend(_UNITS):
        return None
    closing = f"</{tag}>"
    if text.startswith("<", end_of(_SPACE, text, at)):
        return _elements(text, start, at, tag, context)
    if (glm := _named(text, start, at, tag, context)) is not None:
        return glm
    read = read_payload(text, at, context)
    end = context.find(text, closing, at if read is None else read[1])
    limit = end
    if end < 0:
        following = context.find(text, f"<{tag}>", at)
        limit = following if following >= 0 else len(text)
    behind = limit if end < 0 else end + len(closing)
    if read is not None:
        findings, stop, kind = read
        rest = text[stop:limit].strip("`; \n\r\t,)")
        if not rest or (kind == "json" and "{" not in rest):
            return Found(start, stop if end < 0 else behind, findings, _CODES[kind])
    objects = block(text[at:limit], context) if context.spend(20 + (limit - at) // 64) else ()
    return Found(start, behind, objects, "A1") if objects else None


def _elements(text: str, start: int, at: int, tag: str, context: ParseContext) -> Found | None:
    """X6: `<tool_call><name>f</name><arguments>{…}</arguments></tool_call>`. Other elements are looked at one by
    one, as if the tag were not there."""
    body = read_body(text, at, tag, None, context, entities=True)
    if body is None or not body.name or (is_no_name(body.name) and context.resolve(body.name) is None):
        return None
    return Found(start, body.end, (Finding(Call(body.name, body.parameters), raw=body.raw),), "X6")


def _named(text: str, start: int, at: int, tag: str, context: ParseContext) -> Found | None:
    """A block that begins with a bare name: GLM's (G1), or a name with its object behind it (A2)."""
    match = _NAME.match(text, at)
    if match is None:
        return None
    name = bare_name(match["name"])
    if is_no_name(name) and context.resolve(name) is None:
        return None
    behind = end_of(_SEPARATOR, text, match.end())
    if _ARGUMENT.match(text, behind):
        body = read_children(text, behind, tag, name, context, entities=False)
        return body and Found(start, body.end, (Finding(Call(name, body.parameters)),), "G1")
    closing = re.compile(r"\s*+</" + re.escape(tag) + ">").match(text, behind)
    after = closing.end() if closing else behind
    given = _object_behind(text, after, context) or (
        None if closing else _object_behind(text, behind, context)
    )
    if given is not None:
        return Found(start, given[2], (Finding(Call(name, given[0]), raw=given[1]),), "A2")
    rest = closing is not None or not text[behind:].strip() or text[behind:].lstrip().startswith("<")
    if context.resolve(name) is None or not rest:
        return None
    return Found(
        start, after, (Finding(Call(name, {})),), "A2" if tag.lower() in ("tool", "function") else "G1"
    )


def _object_behind(
    text: str, at: int, context: ParseContext
) -> tuple[dict[str, Json], str | None, int] | None:
    opening = _OBJECT.match(text, end_of(_INPUT, text, at))
    return None if opening is None else arguments_at(text, opening.end(), context)
