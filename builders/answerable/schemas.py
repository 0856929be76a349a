"""What a tool's definition says about a parameter's value: default, choices, format, named constants.

An example in a description shows what a value looks like. It does not say that this value is meant, unless
the description says what the value stands for and the dialogue says that.
"""

import re
from collections.abc import Callable

from robustbench_tc.schema import Json, Sample, Tool

from .dates import golden as date_of
from .numbers import number, same

Said = Callable[[str], object]
"""Whether the dialogue says a text: a place, or None."""

_EXAMPLE = re.compile(
    r"\be\.g\.|\b(?:eg|ex)\b[.:]|\bexamples?\b|\bfor instance\b|\bsuch as\b|(?<!would )\blike\b",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"[.;](?=\s+[A-Z]|\s*$)")
_GLOSS = re.compile(
    r"['\"]?\s*(?:for|represents?|means?|stands for|is|=|:)\s+['\"]?(?:(?:an?|the)\s)?(\w+)", re.IGNORECASE
)
_ONLY_AT = re.compile(
    r"\bonly (?:needed|required|used) (?:for|in|by) the (first|second|third) call\b", re.IGNORECASE
)
_ORDINALS = ("first", "second", "third")


def declared(sample: Sample, name: str, index: int | None = None) -> Tool | None:
    """The definition of a called tool; `index` where a name is listed twice."""
    if index is not None and sample.tools[index].name == name:
        return sample.tools[index]
    return next((tool for tool in sample.tools if tool.name == name), None)


def unwanted(parameter: str, tool: Tool, said: Said, calls_before: int) -> str:
    """Why nobody would give a value for the parameter in this call; "" where one may.

    `calls_before`: how often the dialogue has called the tool already.
    """
    schema = tool.properties.get(parameter)
    if schema is None:
        return "" if said(parameter) else "the tool declares no such parameter, and nobody names it"
    only = _ONLY_AT.search(str(schema.get("description", ""))) if isinstance(schema, dict) else None
    if only is None or _ORDINALS.index(only[1].lower()) == calls_before:
        return ""
    return "the tool says that another call needs it, and not this one"


def source(value: Json, schema: Json, tool: Tool | None, said: Said) -> str | None:
    """Where the definition says this value: `default`, `enum`, `yes or no`, `description`; None if nowhere."""
    if not isinstance(schema, dict):
        return None
    if "default" in schema and _equal(value, schema["default"]):
        return "default"
    for choices in (
        schema.get("enum"),
        (schema.get("items") or {}).get("enum") if isinstance(schema.get("items"), dict) else None,
    ):
        if isinstance(choices, list) and any(_equal(value, choice) for choice in choices):
            return "enum"
    if isinstance(value, bool) or (
        schema.get("type") == "boolean" and str(value).lower() in ("true", "false")
    ):
        return "yes or no"
    text = str(schema.get("description") or "")
    if _named(value, text, said):
        return "description"
    if tool is not None and isinstance(value, str) and _named(value, tool.description, said):
        return "tool description"
    return None


def _equal(left: Json, right: Json) -> bool:
    a, b = number(left), number(right)
    if a is not None and b is not None:
        return same(a, b)
    if isinstance(left, str) and isinstance(right, str):
        return left.strip().lower() == right.strip().lower()
    return type(left) is type(right) and bool(left == right)


def _named(value: Json, text: str, said: Said) -> bool:
    """Whether a description names the value as one that may be meant. A date in it is the form, not the day."""
    wanted = number(value)
    if isinstance(value, str):
        if len(value) < 1 or date_of(value):
            return False
        pattern = rf"(?<![0-9A-Za-z]){re.escape(value)}(?![0-9A-Za-z])"
        places = list(re.finditer(pattern, text, re.IGNORECASE))
    elif wanted is not None:
        places = [
            part
            for part in re.finditer(r"-?\d+(?:\.\d+)?", text)
            if (found := number(part.group())) is not None and same(wanted, found)
        ]
    else:
        return False
    shown = examples(text)
    # An example counts where the description says what it stands for ("2 for ironing service"), and the
    # dialogue says that. The first word of weight decides: "service" alone would say nothing.
    return any(
        not any(start <= place.start() < end for start, end in shown)
        or ((gloss := _GLOSS.match(text, place.end())) is not None and said(gloss[1]) is not None)
        for place in places
    )


def examples(text: str) -> list[tuple[int, int]]:
    """The passages of a description that give examples: to the end of the bracket or sentence they stand in."""
    found = []
    for cue in _EXAMPLE.finditer(text):
        opened = text[: cue.start()].rpartition("(")[2]
        closing = text.find(")", cue.end())
        inside = closing >= 0 and opened != text[: cue.start()] and ")" not in opened
        ending = _SENTENCE_END.search(text, cue.end())
        end = closing if inside else ending.start() if ending else len(text)
        found.append((cue.start(), end))
    return found
