"""Marked calls: those between call tags, behind special tokens, or written as XML elements.

They are found wherever they stand in the final answer, in order. One cut off in its arguments is none.
"""

import re
from collections.abc import Callable

from robustbench_tc.schema import Call

from .blocks import CALL_TAGS, read_block
from .context import TOOL_NAME, ParseContext
from .elements import named_by_attribute, opening_at, read_body
from .found import Finding, Found
from .payload import read_payload
from .tokens import TOKENS, kimi_k3, qwen_labels

_XML_NAME = r"[^\W\d][\w.:-]{0,127}"
_OPENING = re.compile(
    rf"<(?:(?P<word>{_XML_NAME})(?=[\s>=/])|[|｜](?P<token>[^|｜<>\n]{{1,48}})[|｜]?>)"
    r"|\[(?P<bracket>(?:[tT][oO][oO][lL]|[fF][uU][nN][cC])[\w ]{0,20})\]"
    r"|✿(?P<flower>FUNCTION)✿"
)
_FUNCTOOLS = re.compile(r"(?<!\w)functools\s?(?=\[)")
_FUNCTIONARY = re.compile(rf"(?:\A|\n)[ \t]*>>>[ \t]*(?P<name>{TOOL_NAME})[ \t]*\n(?=\s*\{{)")
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
_RAW_WRAPPERS = ("minimax:", "seed:")
_UNITS = 2
_UNITS_PER_CALL = 16

Reader = Callable[[str, "re.Match[str]", ParseContext], Found | None]
"""The text, the match of a mark and the context → the call behind the mark, or None."""


def read_marked(text: str, context: ParseContext) -> list[Found]:
    """Every marked call of a text, in order of appearance."""
    if "<" not in text and "[" not in text and "✿" not in text and ">>>" not in text:
        return []
    found: list[Found] = []
    if ">>>" in text or "functools" in text:
        found += _worded(text, context)
    position = 0
    while match := _OPENING.search(text, position):
        position = match.end()
        if not context.spend(_UNITS):
            break
        read = _read(text, match, context)
        if read is not None:
            context.spend(_UNITS_PER_CALL)
            found.append(read)
            position = max(read.end, position)
    return sorted(found) if len(found) > 1 else found


def without_namespaces(text: str) -> str:
    """The text without the words that DeepSeek V3.2, MiniMax-M3, LongCat and Gorilla put into every tag."""
    for namespace, instead in _NAMESPACES.items():
        if namespace in text:
            text = text.replace(namespace, instead)
    return text


def _read(text: str, match: re.Match[str], context: ParseContext) -> Found | None:
    kind = match.lastgroup
    if kind == "word":
        return _element(text, match, context)
    if kind == "token":
        token = match["token"].replace("▁", "_").replace(" ", "_").lower()
        if token == "open":
            return kimi_k3(text, match.start(), match.end(), context)
        reader = TOKENS.get(token.strip("/"))
        return reader(text, match.start(), match.end(), context) if reader is not None else None
    if kind == "bracket":
        return _bracket(text, match, context)
    return qwen_labels(text, match.start(), match.end(), context)


def _bracket(text: str, match: re.Match[str], context: ParseContext) -> Found | None:
    """`[TOOL_CALLS]…` (Mistral) and `[tool_call]…[/tool_call]`."""
    word = match["bracket"].lower().replace(" ", "_")
    if word not in CALL_TAGS and word not in ("tool_calls", "tool_request", "function_call"):
        return None
    read = read_payload(text, match.end(), context)
    if read is None:
        return None
    findings, end, kind = read
    return Found(
        match.start(),
        _behind_bracket(text, end),
        findings,
        "M1" if match["bracket"].isupper() else _code(kind),
    )


_BRACKET_END = re.compile(r"\s*+\[(?:/|END_)[\w ]{1,24}\]", re.IGNORECASE)


def _behind_bracket(text: str, at: int) -> int:
    gap = _BRACKET_END.match(text, at)
    return gap.end() if gap else at


def _code(kind: str) -> str:
    return {"json": "A1", "python": "A6", "gemma": "E1"}[kind]


def _element(text: str, match: re.Match[str], context: ParseContext) -> Found | None:
    """A call that begins with `<word`."""
    start, word = match.start(), match["word"]
    plain = word.rpartition(":")[2].lower()
    if plain in ("function", "tool") and text.startswith("=", match.end()):
        return _function_equals(text, start, match.end(), plain, context)
    if plain == "start_function_call":
        read = read_payload(text, match.end() + 1, context)
        if read is None:
            return None
        end = context.find(text, "<end_function_call>", read[1])
        return Found(start, end + 19 if end == read[1] else read[1], read[0], "E1")
    known = context.resolve(word)
    if known is None and plain not in CALL_TAGS and plain not in ("invoke", "use_mcp_tool"):
        return None
    opening = opening_at(text, match.end(), context)
    if opening is None:
        return None
    raw = word.lower().startswith(_RAW_WRAPPERS) or _is_raw(text, start)
    if known is not None and plain not in ("invoke",) and not (plain in CALL_TAGS and opening.attributes):
        return _cline(text, start, word, known, opening.end, opening.attributes, opening.closed, context)
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


def _is_raw(text: str, start: int) -> bool:
    """Whether the values of an `<invoke>` are raw: MiniMax's wrapper stands in front of it."""
    return "minimax:tool_call" in text[max(0, start - 4_096) : start]


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


def _cline(
    text: str,
    start: int,
    tag: str,
    name: str,
    at: int,
    attributes: dict[str, str],
    closed: bool,
    context: ParseContext,
) -> Found | None:
    """X4: an element that is called as the tool is, its arguments as elements, attributes or JSON."""
    if closed or attributes:
        from .elements import Opening

        given = named_by_attribute(
            text, start, tag, Opening({"tool": name, **attributes}, at, closed), context, entities=True
        )
        return None if given is None else given._replace(code="X4")
    body = read_body(text, at, tag, name, context, entities=True)
    if body is None or (body.is_text and body.raw is not None):
        return None
    return Found(start, body.end, (Finding(Call(name, body.parameters), raw=body.raw),), "X4")


def _worded(text: str, context: ParseContext) -> list[Found]:
    """`functools[{…}]` (Phi-4) and `>>>f` with its object on the next line (Functionary)."""
    found: list[Found] = []
    for match in _FUNCTOOLS.finditer(text):
        read = read_payload(text, match.end(), context) if context.spend(_UNITS) else None
        if read is not None:
            found.append(Found(match.start(), read[1], read[0], "A7"))
    for match in _FUNCTIONARY.finditer(text):
        read = read_payload(text, match.start("name"), context) if context.spend(_UNITS) else None
        if read is not None:
            found.append(Found(match.start(), read[1], read[0], "F1"))
    return found
