"""A text in which a regular expression is found: what the reference agent that is right writes."""

import unicodedata
from collections.abc import Iterable
from typing import Any

import re2

from .patterns import Node, compiled, found_in, parsed, written

TRIED = 12
"""Texts that are tried for a pattern."""
LONGEST = 1_000_000
"""Characters of one."""

_CHARACTERS = "a1A x-_.,:/@#!\"$%&'()*+;<=>?[\\]^`{|}~zZ09\n\té中"
"""From which one that fits is taken, beside those that a class of characters names."""


def example(pattern: str) -> str | None:
    """A text in which a pattern is found; None where none of those tried is one. Raises ValueError."""
    compiled(pattern)  # raises for one that is found nowhere since it cannot be used
    tree = parsed(pattern)
    for turn in range(TRIED):
        text = unicodedata.normalize("NFC", _text(tree, tree.state.flags, turn))
        if found_in(pattern, text):
            return text
    return None


def _text(nodes: Iterable[Node], flags: int, turn: int) -> str:
    """A text along nodes. `turn`: how often repeats repeat, which alternative and character is taken."""
    return "".join(_part(str(name), operands, flags, turn) for name, operands in nodes)[:LONGEST]


def _part(name: str, operands: Any, flags: int, turn: int) -> str:
    match name:
        case "LITERAL":
            return chr(operands)
        case "IN" | "NOT_LITERAL" | "ANY":
            fits = _fitting(name, operands, flags)
            return fits[turn % len(fits)] if fits else ""
        case "BRANCH":
            return _text(operands[1][turn % len(operands[1])], flags, turn)
        case "SUBPATTERN":
            _, added, removed, inner = operands
            return _text(inner, (flags | added) & ~removed, turn)
        case "MAX_REPEAT" | "MIN_REPEAT":
            low, high, inner = operands
            text = _text(inner, flags, turn)
            return text * int(min(low + turn, high, LONGEST // max(len(text), 1) + 1))
    return ""


def _fitting(name: str, operands: Any, flags: int) -> list[str]:
    """Characters that a node of one character matches."""
    tried = _CHARACTERS
    for kind, value in operands if name == "IN" else ():
        if str(kind) in ("LITERAL", "RANGE"):
            tried += "".join(map(chr, value if str(kind) == "RANGE" else [value]))
    fits: list[str] = re2.findall(written([(name, operands)], flags), tried.encode(errors="ignore").decode())
    return fits
