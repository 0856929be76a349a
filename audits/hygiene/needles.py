"""What a text must hold before a regular expression can match in it, read from the expression itself.

Looking for a few letters takes a hundredth of the time of looking for a pattern, and hardly any text holds
them. Nothing is assumed: what is not understood of an expression asks for nothing, and it is always searched.
"""

import re
from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any, NamedTuple

_PARSER: Any = import_module("re._parser")  # `re`'s own, without a public name in Python 3.11 and 3.12
_REPEATS = ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")


class Needs(NamedTuple):
    """What every match of a pattern holds."""

    shortest: int
    """Characters."""
    one_of: tuple[str, ...]
    """One of these; in lower case where case does not count. () for a pattern that asks for none."""
    any_case: bool


class Candidates:
    """Tells which patterns may match in a text."""

    def __init__(self, patterns: Mapping[str, Iterable[re.Pattern[str]]]) -> None:
        """`patterns`: name → those that are searched under it."""
        self._always: set[str] = set()
        self._any_case: set[str] = set()
        self._exact: dict[str, list[tuple[int, str]]] = {}
        self._lowered: dict[str, list[tuple[int, str]]] = {}
        for name, some in patterns.items():
            for wanted in map(needs, some):
                if wanted.any_case:
                    self._any_case.add(name)
                if not wanted.one_of:
                    self._always.add(name)
                for needle in wanted.one_of:
                    held = self._lowered if wanted.any_case else self._exact
                    held.setdefault(needle, []).append((wanted.shortest, name))

    def of(self, text: str) -> set[str]:
        """Names under which a pattern may match in the text; none of the others does."""
        found = set(self._always)
        lowered = text.lower()
        met = [self._exact[needle] for needle in self._exact if needle in text]
        met += [self._lowered[needle] for needle in self._lowered if needle in lowered]
        for wanted in met:
            found |= {name for shortest, name in wanted if shortest <= len(text)}
        if not text.isascii():  # ſ, ı and K are letters of words in any case too
            found |= self._any_case
        return found


def needs(pattern: re.Pattern[str]) -> Needs:
    """What a text must hold for this pattern."""
    tree = _PARSER.parse(pattern.pattern, pattern.flags)
    any_case = bool(tree.state.flags & re.IGNORECASE)
    one_of = _best(tree)
    if any_case:
        one_of = tuple(needle.lower() for needle in one_of) if all(map(str.isascii, one_of)) else ()
    return Needs(tree.getwidth()[0], tuple(dict.fromkeys(one_of)), any_case)


def _best(tree: Iterable[tuple[Any, Any]]) -> tuple[str, ...]:
    """The longest texts of which one is in whatever a part of an expression matches; () if none is known."""
    found: list[tuple[str, ...]] = []
    run = ""
    for op, argument in tree:
        if op.name == "LITERAL":
            run += chr(argument)
            continue
        found.append((run,) if run else ())
        run = ""
        if op.name == "SUBPATTERN":
            _, added, removed, inner = argument
            found.append(() if added or removed else _best(inner))
        elif op.name in _REPEATS and argument[0] > 0:
            found.append(_best(argument[2]))
        elif op.name == "BRANCH":
            ways = [_best(way) for way in argument[1]]
            found.append(tuple(needle for way in ways for needle in way) if all(ways) else ())
    found.append((run,) if run else ())
    return max(found, key=lambda one_of: (min(map(len, one_of), default=0), -len(one_of)))
