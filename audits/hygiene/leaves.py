"""The texts of a value: every string and key, at any depth."""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from robustbench_tc.schema import Json

NUMBER = 9
"""Digits from which a number is a text too: it may be somebody's."""

DEEPEST = 64
"""Levels that are looked into; `hygiene.length` fails long before."""

_SECRET_NAME = re.compile(
    r"pass(?:word|wd|code|phrase)?\b|secret|token\b|api ?key|access ?key|private ?key|credential|\bauth\b"
)
_HOLDS_A_VALUE = ("default", "const", "enum", "example", "examples")


class Leaf(NamedTuple):
    """A text, and where a name beside it says that it is a secret, that name."""

    text: str
    secret: str = ""


def leaves(value: Json, secret: str = "", depth: int = 0) -> Iterator[Leaf]:
    """Keys and strings of a value, and its long numbers.

    `secret` is the name of the field or parameter that holds the value, if it is called like one.
    """
    if isinstance(value, str):
        yield Leaf(value, secret)
    elif isinstance(value, dict) and depth < DEEPEST:
        for key, inner in value.items():
            yield Leaf(str(key))
            # A parameter's schema holds its value under one of a few keys; its description is prose.
            passed_on = secret if secret and key in _HOLDS_A_VALUE else ""
            yield from leaves(inner, _secret_name(str(key)) or passed_on, depth + 1)
    elif isinstance(value, list | tuple) and depth < DEEPEST:
        for inner in value:
            yield from leaves(inner, secret, depth + 1)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        text = str(value)
        if sum(char.isdigit() for char in text) >= NUMBER:
            yield Leaf(text, secret)


@lru_cache(maxsize=65_536)
def _secret_name(name: str) -> str:
    """`aws_secretAccessKey` as words, if it names a secret; else ""."""
    words = re.sub(r"[_\-.\s]+", " ", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name[:200])).strip().lower()
    return words if _SECRET_NAME.search(words) else ""
