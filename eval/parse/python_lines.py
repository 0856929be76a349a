"""Variant P: a Python call outside a list, on a line of its own or in a sentence."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from . import loose_python
from .context import STRING, TOOL_NAME, Finding, Found, ParseContext, end_of
from .python_calls import is_in_value, is_signature, single, without_annotations

_CALL = re.compile(rf"(?<![\w.-])({TOOL_NAME})[ \t]{{0,2}}\(")
_LEADING = re.compile(
    r"[ \t`>*•\-–\d.)\u200b\u200e\u200f\ufeff]*+(?:(?:const|let|var) )?"
    r"(?:[\w.\[\]'\"]{1,64}(?: ?: ?\w{1,32})? {0,4}= {0,4})?(?:(?:await|return|yield) )?(?:print ?\( ?)?"
)
"""What may stand on a line in front of a call that is alone there: layout, an assignment, `await`, `print(`."""

_DEFINES = re.compile(r"(?:def|function|class|fn|func)\s+\Z")
_QUICK = re.compile(rf"(?:{STRING}|[^()\[\]{{}}\"'])*+\)", re.DOTALL)
_GLUE = re.compile(r"[\s`;,.)\]]*+(?:#[^\n]*+)?")
_PARAGRAPH = re.compile(r"\n[ \t]*\n")
_UNITS_PER_NAME = 2
_QUICK_CHARS = 2_048


class _Entry(NamedTuple):
    """A call in a text, or a signature: then without findings, unless every required parameter has a value."""

    found: Found
    leading: int
    """Where its line begins, or what stands on the line behind the call before."""
    annotated: bool


def own_lines(text: str, context: ParseContext) -> list[Found]:
    """P. In prose only names of the registry count; calls that are the whole text count under any name."""
    known = _outside_registries(text, list(_entries(text, context, any_name=False)))
    if known:
        return known
    found_alone: list[Found] = []
    position = 0
    for found, leading, annotated in _entries(text, context, any_name=True):
        if (
            annotated
            or text[position:leading].strip("`\n\r\t ;,")
            or _LEADING.fullmatch(text, leading, found.start) is None
        ):
            return []
        found_alone.append(found)
        position = end_of(_GLUE, text, found.end)
    return found_alone if found_alone and not text[position:].strip("`\n\r\t ;,.") else []


def _outside_registries(text: str, entries: list[_Entry]) -> list[Found]:
    """The calls of the entries, less those of a paragraph where a signature stands beside another entry."""
    kept: list[Found] = []
    start = 0
    for number, entry in enumerate(entries, 1):
        if number < len(entries) and not _PARAGRAPH.search(
            text, entry.found.end, entries[number].found.start
        ):
            continue
        paragraph = entries[start:number]
        start = number
        if len(paragraph) == 1 or not any(one.annotated for one in paragraph):
            kept += [one.found for one in paragraph if one.found.findings]
    return kept


def _entries(text: str, context: ParseContext, *, any_name: bool) -> Iterator[_Entry]:
    """Calls and annotated signatures in order."""
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
        if is_in_value(text, start):
            continue
        read = _read(text, start, match.end() - 1, context, any_name=any_name)
        if read is None:
            if any_name:
                return
            continue
        findings, end, annotated = read
        yield _Entry(Found(start, end, findings, "P"), line, annotated)
        position = after = end


def _read(
    text: str, start: int, opening: int, context: ParseContext, *, any_name: bool
) -> tuple[tuple[Finding, ...], int, bool] | None:
    quick = _QUICK.match(text, opening + 1, opening + _QUICK_CHARS)
    end = quick.end() if quick is not None else context.balanced(text, opening)
    if end is not None:
        source = text[start:end]
        plain = without_annotations(source)
        call = single(plain or source, context)
        if plain is not None:
            required = context.required_of(text[start:opening].strip())
            complete = call is not None and call.parameters and call.parameters.keys() >= set(required)
            return ((Finding(call),) if call is not None and complete else ()), end, True
        if call is not None:
            if is_signature(source, call, context):
                return None
            if any_name and not call.parameters and text[opening + 1 : end - 1].strip():
                return None  # an unknown name with positional text
            return (Finding(call),), end, False
    loose = loose_python.read_call(text, start, context)
    return None if loose is None else ((Finding(loose[0]),), loose[1], False)
