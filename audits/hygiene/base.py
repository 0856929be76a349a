"""The registry of text rules: each finds in one text what may not stand in a row."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

Find = Callable[[str], Iterator[str]]
"""What a rule finds in a text, each said so that it may be printed; the same thing twice is said twice."""


class Rule(NamedTuple):
    """One rule: a check of the gate, `hygiene.NAME`."""

    name: str
    protects: str
    find: Find


RULES: dict[str, Rule] = {}


def rule(name: str, protects: str) -> Callable[[Find], Find]:
    """Decorator: registers the function as the rule of that name."""

    def add(find: Find) -> Find:
        if name in RULES:
            raise ValueError(f"two rules are called {name}")
        RULES[name] = Rule(name, protects, find)
        return find

    return add
