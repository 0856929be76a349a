"""Variants A1 to A5: calls in XML-like tags."""

import re
from collections.abc import Iterator

from robustbench_tc.schema import Call, Json

from .json_calls import NAME_KEYS, PARAMETER_KEYS, block, decode_object
from .reading import Reading, bare_name

_TAG = r"<(?=[tfcTFC])(?i:(tool_calls?|toolcall|function_call|functioncall|function|tool|call))"
_OPEN = re.compile(_TAG + r">")
_NAMED = re.compile(r"<(?=[tT])(?i:tool>\s{0,64}([^<>{}\n]{1,200})</tool>)\s{0,64}")
_WITH_ATTRIBUTES = re.compile(_TAG + r"\s{1,64}+([^<>{}]{1,500}+)")
_ATTRIBUTE = re.compile(r"""([A-Za-z_]\w{0,63})\s{0,16}=\s{0,16}(?:"([^"]*)"|'([^']*)'|([^\s"'/>]+))""")
_PARAMETERS_NEXT = re.compile(rf"\b(?:{'|'.join(PARAMETER_KEYS)})\s{{0,16}}=\s{{0,16}}[\"']?\Z")
_UNITS_PER_TAG = 8
_GAP = re.compile(r"\s*+(?:```[a-z]{0,10}\s*+)?")


def json_in_tags(text: str, reading: Reading) -> list[Call]:
    """A1: JSON between call tags, all blocks in order; the last may be unclosed."""
    calls: list[Call] = []
    position = 0
    while opening := _OPEN.search(text, position):
        closing = f"</{opening[1]}>"
        end = start = opening.end()
        here: list[Call] = []
        for _ in range(4):  # the closing tag may also stand in a string
            end = text.find(closing, end)
            content = text[start:] if end < 0 else text[start:end]
            if reading.spend(20 + len(content) // 64) and "{" in content:
                here = block(content, reading)
            if here or end < 0:
                break
            end += len(closing)
        calls += here
        if end < 0 or reading.left <= 0:  # an unclosed block reaches to the end
            break
        position = end if here else start
    return calls


def name_in_tag(text: str, reading: Reading) -> list[Call]:
    """A2: `<tool>name</tool>`, the JSON parameters behind it."""
    calls: list[Call] = []
    for match in _NAMED.finditer(text):
        if not reading.spend(_UNITS_PER_TAG):
            break
        name = bare_name(match[1])
        parameters = _object_at(text, match.end(), reading)
        if parameters is None and reading.parameters_of(name) is None:
            continue
        if name:
            calls.append(Call(name, parameters[0] if parameters else {}))
    return calls


def parameters_in_attribute(text: str, reading: Reading) -> list[Call]:
    """A3: `<tool name="f" parameters={…}/>`."""
    calls: list[Call] = []
    for match in _WITH_ATTRIBUTES.finditer(text):
        if not reading.spend(_UNITS_PER_TAG):
            break
        if text[match.end() : match.end() + 1] != "{" or not _PARAMETERS_NEXT.search(match[2]):
            continue
        found = _object_at(text, match.end(), reading)
        if found is None:
            continue
        rest = text[found[1] : found[1] + 500].split(">")[0]
        names = dict(_attributes(f"{match[2]} {rest}"))
        if name := next((names[key] for key in ("tool", *NAME_KEYS, "tool_name") if names.get(key)), ""):
            calls.append(Call(name, found[0]))
    return calls


def tool_in_attribute(text: str, reading: Reading) -> list[Call]:
    """A4: `<toolcall tool="f">{…}</toolcall>`; body and closing tag may be missing."""
    return _named_by_attribute(text, reading, ("tool",))


def name_in_attribute(text: str, reading: Reading) -> list[Call]:
    """A5: as A4 with the name in another attribute."""
    return _named_by_attribute(text, reading, tuple(key for key in NAME_KEYS if key != "tool"))


def _named_by_attribute(text: str, reading: Reading, keys: tuple[str, ...]) -> list[Call]:
    calls: list[Call] = []
    for match in _WITH_ATTRIBUTES.finditer(text):
        if not reading.spend(_UNITS_PER_TAG):
            break
        if text[match.end() : match.end() + 1] != ">":
            continue
        names = dict(_attributes(match[2]))
        name = next((names[key] for key in keys if names.get(key)), "")
        if name:
            found = _object_at(text, match.end() + 1, reading)
            calls.append(Call(name, found[0] if found else {}))
    return calls


def _attributes(text: str) -> Iterator[tuple[str, str]]:
    for match in _ATTRIBUTE.finditer(text):
        yield match[1].lower(), bare_name(match[2] or match[3] or match[4] or "")


def _object_at(text: str, position: int, reading: Reading) -> tuple[dict[str, Json], int] | None:
    """The object that begins at `position` (white space and a fence skipped) and the position behind it."""
    gap = _GAP.match(text, position)
    start = gap.end() if gap else position
    if text[start : start + 1] != "{":
        return None
    end = reading.balanced(text, start)
    if end is None:
        return None
    found = decode_object(text[start:end], reading)
    return None if found is None else (found, end)
