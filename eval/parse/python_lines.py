"""Variant P: a Python call outside a list, on a line of its own or in a sentence."""

import re
from collections.abc import Iterator

from . import loose_python
from .context import STRING, TOOL_NAME, ParseContext
from .found import Finding, Found
from .python_calls import is_signature, single

_CALL = re.compile(rf"(?<![\w.-])({TOOL_NAME})[ \t]{{0,2}}\(")
_LEADING = re.compile(
    r"[ \t`>*•\-–\d.)\u200b\u200e\u200f\ufeff]*+(?:(?:const|let|var) )?"
    r"(?:[\w.\[\]'\"]{1,64}(?: ?: ?\w{1,32})? {0,4}= {0,4})?(?:(?:await|return|yield) )?(?:print ?\( ?)?"
)
"""What may stand on a line in front of a call that is alone there: layout, an assignment, `await`, `print(`."""

_DEFINES = re.compile(r"(?:def|function|class|fn|func)\s+\Z")
_QUICK = re.compile(rf"(?:{STRING}|[^()\[\]{{}}\"'])*+\)", re.DOTALL)
_GLUE = re.compile(r"[\s`;,.)\]]*+(?:#[^\n]*+)?")
_UNITS_PER_NAME = 2
_QUICK_CHARS = 2_048


def own_lines(text: str, context: ParseContext) -> list[Found]:
    """P. In prose only names of the registry count; calls that are the whole text count under any name."""
    known: list[Found] = []
    for found, _ in _calls(text, context, any_name=False):
        known.append(found)
    if known:
        return known
    found_alone: list[Found] = []
    position = 0
    for found, leading in _calls(text, context, any_name=True):
        if (
            text[position:leading].strip("`\n\r\t ;,")
            or _LEADING.fullmatch(text, leading, found.start) is None
        ):
            return []
        found_alone.append(found)
        gap = _GLUE.match(text, found.end)
        position = gap.end() if gap else found.end
    return found_alone if found_alone and not text[position:].strip("`\n\r\t ;,.") else []


def _calls(text: str, context: ParseContext, *, any_name: bool) -> Iterator[tuple[Found, int]]:
    """Calls in order, each with the start of its line or of what stands on the line behind the call before."""
    position = 0
    after = 0
    while match := _CALL.search(text, position):
        if not context.spend(_UNITS_PER_NAME):
            return
        position = match.end()
        name = match[1]
        if context.resolve(name) is None and not (
            name.endswith(".call") and context.resolve(name[:-5]) is not None
        ):
            if not any_name:
                continue
            if text[after : match.start()].strip("`\n\r\t ;,") and text.rfind("\n", after, match.start()) < 0:
                return
        start = match.start(1)
        line = max(after, text.rfind("\n", 0, start) + 1)
        if _DEFINES.search(text[max(line, start - 16) : start]):
            continue
        read = _read(text, start, match.end() - 1, context, any_name=any_name)
        if read is None:
            if any_name:
                return
            continue
        finding, end = read
        yield Found(start, end, (finding,), "P"), line
        position = after = end


def _read(
    text: str, start: int, opening: int, context: ParseContext, *, any_name: bool
) -> tuple[Finding, int] | None:
    quick = _QUICK.match(text, opening + 1, opening + _QUICK_CHARS)
    end = quick.end() if quick is not None else context.balanced(text, opening)
    if end is not None:
        call = single(text[start:end], context)
        if call is not None:
            if is_signature(text[start:end], call, context):
                return None
            if any_name and not call.parameters and text[opening + 1 : end - 1].strip():
                return None  # an unknown name with positional text
            return Finding(call), end
    loose = loose_python.read_call(text, start, context)
    return None if loose is None else (Finding(loose[0]), loose[1])
