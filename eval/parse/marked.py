"""Marked calls: those between call tags, behind special tokens, or written as XML elements.

They are found wherever they stand in the final answer, in order. One cut off in its arguments is none.
"""

import re

from robustbench_tc.schema import Call

from .blocks import read_block
from .context import TOOL_NAME, Finding, Found, ParseContext, end_of
from .elements import CALL_TAGS, named_by_attribute, opening_at, read_body, read_children
from .json_calls import without_schema
from .names import is_no_name
from .payload import read_payload

_XML_NAME = r"[^\W\d][\w.:-]{0,127}"
_OPENING = re.compile(
    rf"<(?:(?P<word>{_XML_NAME})(?=[\s>=/])|[|｜](?P<token>[^|｜<>\n]{{1,48}})[|｜]?>)"
    r"|\[(?P<bracket>(?:[tT][oO][oO][lL]|[fF][uU][nN][cC])[\w ]{0,20})\]"
    r"|✿(?P<flower>FUNCTION)✿\s{0,4}[:：]\s{0,4}"
    r"|\bto=(?P<recipient>functions\.|(?=\w))"
    r"|(?m:^)[ \t]*(?P<arrows>>>>)[ \t]{0,8}(?=[\w.-]{1,128}[ \t]*\n)"
    r"|(?<!\w)(?P<functools>functools)\s?(?=\[)"
)
_FUNCTION_NAME = re.compile(
    rf"=\s*[\"']?(?P<name>{TOOL_NAME}|[^\s>\"'{{]{{1,128}})[\"']?\s*(?P<end>>|(?=\{{))"
)
_NAMESPACES = {
    "｜DSML｜ ": "",
    "｜DSML｜": "",
    "|DSML|": "",
    "]<]minimax[>[": "",
    "<longcat_": "<",
    "</longcat_": "</",
    "<<function>>": "",
}
_KIMI_K3 = (
    (
        re.compile(r'<\|open\|>\s*call\s[^<>]{0,200}?tool=("[^"<>]{1,200}")[^<>]{0,200}<\|sep\|>'),
        r"<invoke name=\1>",
    ),
    (
        re.compile(r'<\|open\|>\s*argument\s([^<>]{0,200}?)type="string"([^<>]{0,200})<\|sep\|>'),
        r'<parameter \1\2 string="true">',
    ),
    (re.compile(r"<\|open\|>\s*argument\s([^<>]{1,400})<\|sep\|>"), r'<parameter \1 string="false">'),
    (re.compile(r"<\|close\|>\s*argument\s*<\|sep\|>"), "</parameter>"),
    (re.compile(r"<\|close\|>\s*call\s*<\|sep\|>"), "</invoke>"),
)
"""Kimi K3's messages as the elements that they mean."""

_RAW_WRAPPERS = ("minimax:", "seed:")
_UNITS = 2
_UNITS_PER_CALL = 16

_CODES = {"flower": "Q1", "arrows": "F1", "functools": "A7"}
TOKENS = {
    **dict.fromkeys(
        "tool_call tool_calls function_call python_tag python_start tool_call_start tools_prefix start_action"
        " action_start content_invoke_tool_json".split(),
        "A7",
    ),
    **dict.fromkeys(
        "tool_call_begin tool_call:begin tool_call_argument_begin tool_call:args tool_sep".split(), "K1"
    ),
    "recipient": "F1",
}
"""Every token that calls stand behind, lower case, its word separators as underscores, and its format."""

_SEPARATORS = ("tool_sep", "tool_call_argument_begin")
"""Tokens between a name and its arguments: what stands before the name may have been stripped."""

_ID_BEFORE = re.compile(r"(?<![\w.:-])(?:function\s+)?(?P<id>[^\W\d][\w.:-]{0,127})\s*\Z")
_QWEN_ALONE = re.compile(rf"({TOOL_NAME})\s*✿ARGS✿\s*[:：]?\s*+(?!\{{|```)")
_HEADER = re.compile(
    r"(?:<\|start\|>\s*assistant\s*|assistant)?(?:<\|channel\|>)?\s*(?:commentary|analysis)?\s*\Z"
)
_CLOSERS = re.compile(
    r"(?:\s*+(?:```)?(?:</[\w:.-]{1,48}>|<[|｜]?/?[|｜]?(?:\w*(?:end|END)\w*|[\w▁ :]*[▁_ :]end|tools_suffix|call)[|｜]?>"
    r"|<\|?/tool_calls?\|?>|<tool_call\|>|\[(?:/|END_)[\w ]{1,24}\]))*+"
)
"""Closing tags and tokens behind a call."""


def read_marked(text: str, context: ParseContext) -> list[Found]:
    """Every marked call of a text, in order of appearance."""
    if not any(sign in text for sign in ("<", "[", "✿", ">>>", "to=")):
        return []
    found: list[Found] = []
    position = 0
    while match := _OPENING.search(text, position):
        position = match.end()
        if not context.spend(_UNITS):
            break
        read = _read(text, match, context)
        if read is not None:
            context.spend(_UNITS_PER_CALL)
            position = max(end_of(_CLOSERS, text, read.end), position)
            found.append(read._replace(end=position))
    return found


def outermost(found: list[Found]) -> list[Found]:
    """Without those that lie in another one."""
    kept: list[Found] = []
    for one in sorted(found, key=lambda item: (item.start, -item.end)):
        if not kept or one.start >= kept[-1].end:
            kept.append(one)
    return kept


def admitted(found: list[Found], context: ParseContext) -> list[Found]:
    """Without the calls whose name declines or stands for one, and without schemas for arguments."""
    out: list[Found] = []
    for one in found:
        findings = tuple(
            without_schema(finding, context)
            for finding in one.findings
            if context.resolve(finding.call.name) is not None or not is_no_name(finding.call.name)
        )
        if findings:
            out.append(one._replace(findings=findings))
    return out


def without_namespaces(text: str) -> str:
    """The text without the words that DeepSeek V3.2, MiniMax-M3, LongCat and Gorilla put into every tag."""
    for namespace, instead in _NAMESPACES.items():
        if namespace in text:
            text = text.replace(namespace, instead)
    if "<|open|>" in text:
        for pattern, instead in _KIMI_K3:
            text = pattern.sub(instead, text)
    return text


def _read(text: str, match: re.Match[str], context: ParseContext) -> Found | None:
    kind = match.lastgroup or ""
    if kind == "word":
        return _element(text, match, context)
    if kind == "recipient":
        return _addressed(text, match, context)
    code, start, at = _CODES.get(kind, ""), match.start(), match.end()
    if kind == "token":
        token = match["token"].replace("▁", "_").replace(" ", "_").lower().strip("/")
        if token in _SEPARATORS and (before := _id_before(text, start, context)) is not None:
            start = at = before  # the token in front was stripped
        code = TOKENS.get(token, "")
    if kind == "bracket":
        word = match["bracket"].lower().replace(" ", "_")
        code = "" if word not in CALL_TAGS else "M1" if match["bracket"].isupper() else "A1"
    read = read_payload(text, at, context) if code else None
    if read is None:
        alone = _QWEN_ALONE.match(text, at) if kind == "flower" else None
        return alone and Found(start, alone.end(), (Finding(Call(alone[1], {})),), code)
    code = {"gemma": "E1", "sep": "D1", "python": "A6" if code == "A1" else code}.get(read[2], code)
    return Found(start, read[1], read[0], code)


def _id_before(text: str, at: int, context: ParseContext) -> int | None:
    """Where the id of a tool begins that ends at a place."""
    before = _ID_BEFORE.search(text, max(0, at - 160), at)
    return (
        before.start() if before is not None and context.may_name(context.tool_of_id(before["id"])) else None
    )


def _addressed(text: str, match: re.Match[str], context: ParseContext) -> Found | None:
    """H1: a message to a function, with harmony's tokens or without. A recipient without `functions.` counts if
    it names a registered tool."""
    read = read_payload(text, match.end(), context, most=1)
    if read is None:
        return None
    finding = read[0][0]
    name = finding.call.name
    for channel in ("commentary", "analysis"):  # glued to it when the tokens were stripped
        if context.resolve(name) is None and context.resolve(name.removesuffix(channel)) is not None:
            name = name.removesuffix(channel)
    if not match["recipient"] and context.resolve(name) is None:
        return None
    header = _HEADER.search(text, max(0, match.start() - 64), match.start())
    start = header.start() if header else match.start()
    return Found(start, read[1], (finding._replace(call=Call(name, finding.call.parameters)),), "H1")


def _element(text: str, match: re.Match[str], context: ParseContext) -> Found | None:
    """A call that begins with `<word`."""
    start, word = match.start(), match["word"]
    plain = word.rpartition(":")[2].lower()
    if plain in ("function", "tool") and text.startswith("=", match.end()):
        return _function_equals(text, start, match.end(), plain, context)
    if plain == "arg_key" and (before := _id_before(text, start, context)) is not None:
        name = text[before:start].strip()  # GLM's opening tag is missing
        body = read_children(text, start, "tool_call", name, context, entities=False)
        return body and Found(before, body.end, (Finding(Call(name, body.parameters)),), "G1")
    if plain == "start_function_call":
        read = read_payload(text, match.end() + 1, context)
        return read and Found(start, read[1], read[0], "E1")
    known = context.resolve(word)
    if known is None and plain not in CALL_TAGS and plain not in ("invoke", "use_mcp_tool"):
        return None
    opening = opening_at(text, match.end(), context)
    if opening is None:
        return None
    # MiniMax's wrapper stands in front of an <invoke> whose values are raw
    raw = word.lower().startswith(_RAW_WRAPPERS) or "minimax:tool_call" in text[max(0, start - 4_096) : start]
    if known is not None and plain not in ("invoke",) and not (plain in CALL_TAGS and opening.attributes):
        told = opening._replace(attributes={"tool": known, **opening.attributes})
        given = named_by_attribute(text, start, word, told, context, entities=True)
        return given and given._replace(code="X4")
    if opening.attributes:
        return named_by_attribute(text, start, word, opening, context, entities=not raw)
    if opening.closed:
        return None
    if plain in ("invoke", "use_mcp_tool"):
        body = read_body(text, opening.end, word, None, context, entities=not raw)
        if body is None or not body.name:
            return None
        return Found(start, body.end, (Finding(Call(body.name, body.parameters), raw=body.raw),), "X3")
    return read_block(text, start, opening.end, word, context)


def _function_equals(text: str, start: int, at: int, tag: str, context: ParseContext) -> Found | None:
    """`<function=f>{…}</function>` (L1) and `<function=f><parameter=k>v</parameter></function>` (X1)."""
    match = _FUNCTION_NAME.match(text, at)
    if match is None:
        return None
    name = match["name"]
    body = read_body(text, match.end(), tag, name, context, entities=False)
    if body is None or (body.is_text and body.raw is not None and not context.may_name(name)):
        return None
    finding = Finding(Call(name, body.parameters), raw=body.raw)
    is_json = text[match.end() : match.end() + 16].lstrip().startswith(("{", "```"))
    return Found(start, body.end, (finding,), "L1" if is_json else "X1")
