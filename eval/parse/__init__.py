"""Raw model output to calls: the tolerant parser (scoring.md section 1).

Every source tries its own family of formats first and then the others; the first that finds calls wins and is
recorded. Model text is never evaluated, nothing is raised on any text, and the work is bounded.
"""

import re
from collections.abc import Callable, Sequence

import msgspec

from robustbench_tc.errors import unknown
from robustbench_tc.schema import Call, Json, Tool

from .json_calls import clean, clean_text, json_calls, native
from .plain import labelled, name_colon_object, query_string
from .python_calls import bracketed, colon_separated, keyword_list, own_lines
from .react import react, react_code
from .reading import MAX_CHARS, Reading
from .tags import (
    json_in_tags,
    name_in_attribute,
    name_in_tag,
    parameters_in_attribute,
    tool_in_attribute,
)

__all__ = ["ORDERS", "VARIANTS", "Parsed", "parse"]


class Parsed(msgspec.Struct, frozen=True):
    """What one reply says."""

    calls: tuple[Call, ...]
    variant: str | None
    """`fc` for native calls, a key of `VARIANTS`, or None when nothing was found."""
    flags: tuple[str, ...] = ()
    """empty_text: nothing but white space and end markers, and no native call. truncated: the text was read
    up to a limit. bad_arguments: a call's arguments were no JSON object and count as {}."""


Variant = Callable[[str, Reading], list[Call]]

VARIANTS: dict[str, Variant] = {
    "B1": bracketed,
    "B2": colon_separated,
    "B3": keyword_list,
    "A1": json_in_tags,
    "A2": name_in_tag,
    "A3": parameters_in_attribute,
    "A4": tool_in_attribute,
    "A5": name_in_attribute,
    "R1": react,
    "R2": react_code,
    "T1": name_colon_object,
    "T2": labelled,
    "T3": query_string,
    "J": json_calls,
    "P": own_lines,
}

ORDERS: dict[str, tuple[str, ...]] = {
    "bfcl_v3": tuple("B1 B2 B3 A1 A2 A3 A4 A5 J R1 R2 T2 T1 T3 P".split()),
    "apibank": tuple("A1 A2 A3 A4 A5 J B1 B2 B3 R1 R2 T2 T1 T3 P".split()),
    "rotbench": tuple("R1 R2 J A1 A2 A3 A4 A5 B1 B2 B3 P T2 T1 T3".split()),
    "toolalpaca": tuple("R1 R2 T2 A1 A2 A3 A4 A5 J T1 T3 B1 B2 B3 P".split()),
    "tooleyes": tuple("R1 R2 J A1 A2 A3 A4 A5 B1 B2 B3 T2 T1 T3 P".split()),
}
"""The dispatch order of each source."""

_END_MARKERS = ("<|im_end|>", "<|eot_id|>", "</s>")
_THOUGHT_ENDS = "</think>"
_JSON_FIRST = re.compile(r"\{|\[\s*+\{")

# What a text must hold for a variant to find anything in it.
_NEEDS = {
    "A1": "<", "A2": "</tool>", "A3": "<", "A4": "<", "A5": "<",
    "R1": "Action", "R2": "ActionCode", "T1": ":", "T2": ":", "T3": "?", "J": "{",
    "B1": "(", "B2": "(", "B3": "=", "P": "(",
}  # fmt: skip
_STEPS = {
    source: tuple((key, _NEEDS[key], VARIANTS[key]) for key in order) for source, order in ORDERS.items()
}
_JSON_STEPS = {
    source: tuple(sorted(steps, key=lambda step: step[0] != "J")) for source, steps in _STEPS.items()
}


def parse(text: str | None, *, source: str, tools: Sequence[Tool] = (), tool_calls: Json = None) -> Parsed:
    """The calls in one reply to a sample of `source`, whose registry is `tools`.

    `tool_calls` are the reply's native calls; an empty list falls back to the text. Raises UserError for an
    unknown source, and nothing for any text.
    """
    steps = _STEPS.get(source)
    if steps is None:
        raise unknown("source", source, _STEPS)
    reading = Reading(source, tools)
    if tool_calls and (calls := native(tool_calls, reading)):
        return Parsed(tuple(calls), "fc", tuple(reading.flags))
    if not text:
        return Parsed((), None, ("empty_text",))
    marker = text.rfind(_THOUGHT_ENDS)
    if marker >= 0 and (parsed := _read(text[marker + len(_THOUGHT_ENDS) :], source, reading)).calls:
        return parsed
    return _read(text, source, reading)


def _read(text: str, source: str, reading: Reading) -> Parsed:
    """The first variant of the source's order that finds calls in `text`."""
    body = text.strip()
    for _ in range(8):
        if not body.endswith(_END_MARKERS):
            break
        body = body[: body.rfind("<")].rstrip()
    if not body:
        return Parsed((), None, ("empty_text",))
    flags: tuple[str, ...] = ()
    if len(body) > MAX_CHARS:
        body = body[:MAX_CHARS]
        flags = ("truncated",)
    if not body.isascii():
        body = clean_text(body)
    steps = _JSON_STEPS[source] if _JSON_FIRST.match(body) else _STEPS[source]
    for variant, need, find in steps:
        if need not in body:
            continue
        calls = find(body, reading)
        if calls:
            if "\\" in body:  # an escape may spell a lone surrogate
                calls = _cleaned(calls)
            return Parsed(tuple(calls), variant, (*reading.flags, *flags))
        if reading.flags:
            reading.flags.clear()
    return Parsed((), None, flags)


def _cleaned(calls: list[Call]) -> list[Call]:
    return [Call(clean_text(call.name), clean(call.parameters)) for call in calls]
