"""What a file can hold of a reply: texts without lone surrogates, numbers that JSON has."""

import math
import re

from robustbench_tc.schema import Json

from .context import MAX_BITS, MAX_DEPTH

_SURROGATE = re.compile("[\ud800-\udfff]")
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")


def is_number(value: float) -> bool:
    """Whether JSON can write a number, and the interpreter too."""
    return value.bit_length() <= MAX_BITS if isinstance(value, int) else math.isfinite(value)


def clean(value: Json, depth: int = 0) -> Json:
    """The value without lone surrogates, which no file can hold. Raises ValueError for what is not JSON."""
    if isinstance(value, str):
        return value if value.isascii() else clean_text(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        if not is_number(value):
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
