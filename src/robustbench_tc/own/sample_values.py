"""A value that a tool's schema accepts: one that it states itself, else one made by type and format.

Schemas may be hostile: depth, number and length of values are bounded. What does not fit then is found by
`own.read.Checker`, as in any other case.
"""

import re
from collections.abc import Iterable

from robustbench_tc.schema import Json, dumps

from ..eval.score import matchers
from ..eval.score.matchers import pattern_examples, subschemas
from .gold import declared

DEPTH = 8
VALUES = 50
"""Values of one sample, inner ones included."""
LONGEST = 200
"""Characters of a stated value; longer ones are ignored."""
PATTERN = 60
"""Characters of a pattern for which an example is looked for."""
PATTERNS = 200
"""Patterns of one draft for which examples are looked for."""

FORMATS = {
    "date": "2026-11-24",
    "date-time": "2026-11-24T09:00:00Z",
    "time": "09:00:00",
    "email": "ada@example.com",
    "uri": "https://example.com/",
    "uuid": "3f2b8c1e-5d47-4a90-9c6e-0b1a2d3e4f50",
}

_REPEAT_OF_REPEAT = re.compile(r"[*+}?]\)+[*+{]")
"""Its examples may grow out of bounds."""


class Sampler:
    """Samples the parameters of tools."""

    def __init__(self) -> None:
        self._root: Json = None
        self._left = VALUES
        self._examples: dict[str, str | None] = {}
        """By pattern."""

    def arguments(self, schema: dict[str, Json], names: Iterable[str]) -> dict[str, Json]:
        """A value for each of these parameters of a tool."""
        self._root, self._left = schema, VALUES
        properties, _, _ = declared(schema, schema)
        return {name: self._value(properties.get(name), name, 1) for name in names}

    def _value(self, schema: Json, name: str, depth: int) -> Json:
        self._left -= 1
        if (stated := self._stated(schema)) is not None:
            return stated
        types = subschemas.types(schema, self._root)
        properties, required, _ = declared(schema, self._root)
        if depth < DEPTH and self._left > 0:
            if properties and types <= {"object"}:
                return {one: self._value(properties.get(one), one, depth + 1) for one in required[:VALUES]}
            if "array" in types:
                return [self._value(subschemas.item_of(schema, 0, self._root), name, depth + 1)]
        if "string" in types:
            return self._text(schema, name)
        least = subschemas.stated(schema, "minimum", self._root)
        if types & {"integer", "number"} and isinstance(least, int | float):
            return least
        return matchers.example({"any": True}, schema, self._root)

    def _stated(self, schema: Json) -> Json:
        """The first short value that a schema names itself; None without one."""
        found = [subschemas.stated(schema, word, self._root) for word in ("const", "default", "example")]
        for word in ("examples", "enum"):
            values = subschemas.stated(schema, word, self._root)
            if isinstance(values, list):
                found += values[:1]
        return next((one for one in found if one is not None and len(dumps(one)) <= LONGEST), None)

    def _text(self, schema: Json, name: str) -> str:
        pattern = subschemas.stated(schema, "pattern", self._root)
        if isinstance(pattern, str) and (found := self._example(pattern)):
            return found
        kind = subschemas.stated(schema, "format", self._root)
        return FORMATS.get(str(kind), f"sample {spelt(name)}")

    def _example(self, pattern: str) -> str | None:
        if pattern not in self._examples:
            if len(self._examples) == PATTERNS or len(pattern) > PATTERN or _REPEAT_OF_REPEAT.search(pattern):
                return None
            try:
                self._examples[pattern] = pattern_examples.example(pattern)
            except ValueError:  # RE2 has no form for it: the tool may still be right
                self._examples[pattern] = None
        return (self._examples[pattern] or "")[:LONGEST]


def spelt(name: str) -> str:
    """A name as words: `customer_id` and `customerId` as `customer id`."""
    return re.sub(r"[\W_]+", " ", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)).strip().lower()[:LONGEST]
