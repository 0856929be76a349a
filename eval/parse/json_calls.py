"""JSON to calls: decoding with bounds, the shapes a call may have (variant J), and native calls."""

import json
import math
import re
from collections.abc import Iterator
from typing import NoReturn

import msgspec

from robustbench_tc.schema import Call, Json

from . import python_values
from .reading import MAX_BITS, MAX_DEPTH, Reading, bare_name, unfenced

NAME_KEYS = ("name", "function", "tool", "func_name", "tool_name", "action")
PARAMETER_KEYS = ("parameters", "arguments", "params", "args", "action_input")

_WRAPPERS = ("tool_calls", "tool_call", "function_call", "calls")
_LENIENT = re.compile(r"[\x00-\x1f]|\\u")
"""What a text must hold for the standard library's decoder to read what msgspec refuses."""

_UNITS_PER_SPAN = 12
"""What decoding a short text costs at least, in units of the allowance."""

_SURROGATE = re.compile("[\ud800-\udfff]")
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_MAX_DIGITS = 3_900
_DICTIONARY = re.compile(r"\{\s*+(?:['\"]|\})")


def decode(text: str) -> Json:
    """The value of one JSON text; raw control characters in strings are let pass. Raises ValueError."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        pass
    if _LENIENT.search(text) is None:
        raise ValueError("not JSON")
    try:
        found = json.loads(
            text, strict=False, parse_constant=_not_json, parse_float=_finite, parse_int=_integer
        )
    except RecursionError:
        raise ValueError("nested too deep") from None
    return clean(found)


def decode_object(text: str, reading: Reading) -> dict[str, Json] | None:
    """A JSON object, else a Python dictionary literal, else None."""
    try:
        found = decode(text)
    except ValueError:
        node = python_values.tree(text, reading) if _DICTIONARY.match(text) else None
        if node is None:
            return None
        try:
            found = python_values.value(node)
        except python_values.Refused:
            return None
    return found if isinstance(found, dict) else None


def clean(value: Json, depth: int = 0) -> Json:
    """The value without lone surrogates, which no file can hold. Raises ValueError for what is not JSON."""
    if isinstance(value, str):
        return value if value.isascii() else clean_text(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        if value.bit_length() > MAX_BITS:
            raise ValueError("integer too long")
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError("not a JSON number")
        return value
    if depth > 3 * MAX_DEPTH:  # calls as values add levels of their own
        raise ValueError("nested too deep")
    if isinstance(value, list | tuple):
        return [clean(item, depth + 1) for item in value]
    if isinstance(value, dict):
        return {clean_text(str(key)): clean(item, depth + 1) for key, item in value.items()}
    raise ValueError(f"{type(value).__name__} is not JSON")


def clean_text(text: str) -> str:
    """Surrogate pairs joined, lone ones replaced by U+FFFD."""
    if _SURROGATE.search(text) is None:
        return text
    return _SURROGATE.sub("\ufffd", _PAIR.sub(_joined, text))


def _joined(pair: re.Match[str]) -> str:
    high, low = map(ord, pair[0])
    return chr(0x10000 + ((high & 0x3FF) << 10) + (low & 0x3FF))


def from_object(found: Json, reading: Reading, *, tagged: bool = False) -> Call | None:
    """The call that a JSON object describes, or None.

    Outside call tags an object without parameters is a call only if its name is in the registry: `{"name":
    "Ann"}` is data. A call named "none" is a way of declining and no call.
    """
    if not isinstance(found, dict):
        return None
    name_key = next((key for key in NAME_KEYS if found.get(key)), None)
    if name_key is None:
        return None
    name = found[name_key]
    if isinstance(name, dict):
        return from_object(name, reading, tagged=tagged) if name_key == "function" else None
    if not isinstance(name, str):
        return None
    name = bare_name(name)
    if not name or name.lower() == "none":
        return None
    key = next((key for key in PARAMETER_KEYS if key in found), None)
    if key is None:
        return Call(name, {}) if tagged or reading.parameters_of(name) is not None else None
    return Call(name, parameters(found[key], reading))


def parameters(found: Json, reading: Reading) -> dict[str, Json]:
    """The parameters that a value stands for: an object, or the JSON text of one; else {} and a flag."""
    if isinstance(found, str):
        try:
            found = decode(found) if reading.balanced(found.strip(), 0) else None
        except ValueError:
            found = None
    if isinstance(found, dict):
        return found
    reading.flag("bad_arguments")
    return {}


def json_calls(text: str, reading: Reading) -> list[Call]:
    """J: an object, a list of objects, or objects embedded in text, in order."""
    body = unfenced(text)
    if body[:1] in ("{", "[") and reading.balanced(body, 0) == len(body):
        try:
            return list(_collect(decode(body), reading))
        except ValueError:
            pass
    return embedded(body, reading)


def embedded(text: str, reading: Reading, *, tagged: bool = False) -> list[Call]:
    """The call objects in a text, each an outermost `{…}` or, where that is none, one inside it."""
    calls: list[Call] = []
    spans = reading.braces(text)
    span = next(spans, None)
    while span is not None:
        start, end = span
        found = decode_object(text[start:end], reading) if reading.spend(_UNITS_PER_SPAN) else None
        if found is not None:
            calls += _collect(found, reading, tagged=tagged)
        try:
            span = spans.send(found is None)
        except StopIteration:
            break
    return calls


def block(text: str, reading: Reading) -> list[Call]:
    """The calls between call tags: one JSON value per line, lines that are none skipped; else objects."""
    calls: list[Call] = []
    for line in text.split("\n"):
        line = line.strip()
        if (
            line[:1] in ("{", "[")
            and reading.spend(_UNITS_PER_SPAN)
            and reading.balanced(line, 0) == len(line)
        ):
            try:
                calls += _collect(decode(line), reading, tagged=True)
            except ValueError:
                continue
    return calls or embedded(text, reading, tagged=True)


def native(tool_calls: Json, reading: Reading) -> list[Call]:
    """Calls as a serving layer returns them, flat or in OpenAI's shape; one without a name is skipped."""
    calls: list[Call] = []
    for entry in tool_calls if isinstance(tool_calls, list | tuple) else ():
        inner = entry.get("function", entry) if isinstance(entry, dict) else None
        if not isinstance(inner, dict):
            continue
        name = inner.get("name")
        if not isinstance(name, str) or not name.strip():
            continue
        arguments = inner.get("arguments", inner.get("parameters"))
        try:
            if isinstance(arguments, str):
                text = arguments.strip()
                found = decode(text) if reading.balanced(text, 0) == len(text) else None
            else:
                found = clean(arguments)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            reading.flag("bad_arguments")
            found = {}
        calls.append(Call(clean_text(name.strip()), found))
    return calls


def _collect(found: Json, reading: Reading, *, tagged: bool = False) -> Iterator[Call]:
    if isinstance(found, list):
        for item in found:
            yield from _collect(item, reading, tagged=tagged) if isinstance(item, dict) else ()
        return
    call = from_object(found, reading, tagged=tagged)
    if call is not None:
        yield call
    elif isinstance(found, dict):
        for key in _WRAPPERS:
            if isinstance(found.get(key), list | dict):
                yield from _collect(found[key], reading, tagged=tagged)


def _not_json(text: str) -> NoReturn:
    raise ValueError(f"{text} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("number out of range")
    return number


def _integer(text: str) -> int:
    if len(text) > _MAX_DIGITS:
        raise ValueError("integer too long")
    return int(text)
