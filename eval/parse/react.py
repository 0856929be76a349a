"""Variants R1 and R2: `Action:` (or `ActionCode:`) and `Action Input:`."""

import re

from robustbench_tc.schema import Call, Json

from .json_calls import decode, decode_object
from .reading import Reading, bare_name

_LABEL = re.compile(
    r"(?<!\w)(?:(?P<input>Action[ \t_]{0,2}Input)|(?P<R2>ActionCode)|(?P<R1>Action)|Thought|Observation)"
    r"\*{0,2}[ \t]{0,8}:"
)
_UNITS_PER_LABEL = 4
_GAP = re.compile(r"[\s*]*+(?:`{1,3}(?:[A-Za-z]{1,10}(?=\s))?\s*+)?")


def react(text: str, reading: Reading) -> list[Call]:
    """R1."""
    return _blocks(text, reading, "R1")


def react_code(text: str, reading: Reading) -> list[Call]:
    """R2."""
    return _blocks(text, reading, "R2")


def _blocks(text: str, reading: Reading, action: str) -> list[Call]:
    """Each action label with the first input label behind it; an action without one is no call."""
    calls: list[Call] = []
    labels = [(match.start(), match.end(), match.lastgroup) for match in _LABEL.finditer(text)]
    name_from = -1
    position = 0
    for index, (start, end, kind) in enumerate(labels):
        if start < position:  # inside the input just read
            continue
        if not reading.spend(_UNITS_PER_LABEL):
            break
        if kind == action:
            name_from = end
        elif kind == "input" and name_from >= 0:
            name = bare_name(text[name_from:start].strip().split("\n", 1)[0])
            limit = next((at for at, _, what in labels[index + 1 : index + 2] if what != "input"), len(text))
            parameters, position = _input(text, end, limit, reading)
            name_from = -1
            if name:
                calls.append(Call(name, parameters))
    return calls


def _input(text: str, position: int, limit: int, reading: Reading) -> tuple[dict[str, Json], int]:
    """The object behind `Action Input:` and where to read on; {} and a flag where none decodes."""
    gap = _GAP.match(text, position)
    start = gap.end() if gap else position
    first = text[start : start + 1]
    if first in ('"', "'"):
        found = _quoted(text[start:limit], reading)
        if found is not None:
            return found, limit
    elif first != "[":  # a list is not the object inside it
        start = text.find("{", start, limit)
        end = reading.balanced(text, start) if start >= 0 else None
        if end is not None:
            found = decode_object(text[start:end], reading)
            if found is not None:
                return found, end
    reading.flag("bad_arguments")
    return {}, position


def _quoted(text: str, reading: Reading) -> dict[str, Json] | None:
    """The object in a JSON string. RoTBench takes an input in quotes for no object at all."""
    if reading.source == "rotbench":
        return None
    try:
        inner = decode(text.strip().rstrip("`").strip())
        found = decode(inner) if isinstance(inner, str) and reading.balanced(inner, 0) else None
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
