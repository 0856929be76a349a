"""The class of one golden value: from where a reader could take it."""

import ast
import re
from collections.abc import Iterable, Iterator
from decimal import Decimal
from functools import cached_property
from typing import Literal, get_args

import msgspec

from robustbench_tc.schema import ANY, OMIT, Json, Tool

from . import dates, numbers, schemas
from .reading import Place, Reading, split, stem

Kind = Literal["free", "verbatim", "number", "date_time", "tool_result", "schema", "convention", "knowledge", "nowhere"]
KINDS: tuple[Kind, ...] = get_args(Kind)


class Finding(msgspec.Struct, frozen=True):
    kind: Kind
    note: str = ""
    place: Place | None = None


NOWHERE = Finding("nowhere", "nobody says it, no definition does, no convention gives it")
_STOP = frozenset("a an the of in on at for to and or with by from is are my your our me i you it this that as be s".split())


class Reader(msgspec.Struct, frozen=True, dict=True):
    reading: Reading
    accepts_inside: bool = False
    """Objects inside values list what they accept (BFCL)."""

    @cached_property
    def calendar(self) -> dates.Calendar:
        return dates.Calendar(self.reading)

    @cached_property
    def numbers(self) -> tuple[numbers.Mention, ...]:
        return tuple(sorted(numbers.mentions(self.reading), key=lambda one: (self.reading.earlier(one.place), bool(one.how))))

    def accepted(self, values: Iterable[Json], schema: Json, tool: Tool | None) -> Finding:
        best = NOWHERE
        for value in values:
            if value == OMIT or value is None or value == ANY:
                return Finding("free", "any value" if value == ANY else "may be left out")
            found = self.value(value, schema, tool)
            if KINDS.index(found.kind) < KINDS.index(best.kind) or (best is NOWHERE):
                best = found
        return best

    def value(self, value: Json, schema: Json, tool: Tool | None) -> Finding:
        if isinstance(value, list):
            return self._list(value, schema, tool)
        if isinstance(value, dict):
            return self._object(value, schema, tool)
        if isinstance(value, bool):
            said = schemas.source(value, schema, tool)
            return Finding("schema", said or "yes or no")
        if isinstance(value, int | float):
            return self._number(value, schema, tool)
        return self._text(str(value), schema, tool)

    def _list(self, value: list[Json], schema: Json, tool: Tool | None) -> Finding:
        said = schemas.source(value, schema, tool)
        if said:
            return Finding("schema", said)
        if not value:
            return Finding("convention", "empty list")
        items = schema.get("items") if isinstance(schema, dict) else None
        inner = {"description": schema.get("description", "") if isinstance(schema, dict) else "", **(items if isinstance(items, dict) else {})}
        return _weakest([self.value(one, inner, tool) for one in value])

    def _object(self, value: dict[str, Json], schema: Json, tool: Tool | None) -> Finding:
        properties = schema.get("properties") if isinstance(schema, dict) else None
        found = []
        for name, one in value.items():
            inner = properties.get(name) if isinstance(properties, dict) else None
            inner = inner if isinstance(inner, dict) else {"description": schema.get("description", "") if isinstance(schema, dict) else ""}
            if self.accepts_inside and isinstance(one, list):
                found.append(self.accepted(one, inner, tool))
            else:
                found.append(self.value(one, inner, tool))
        return _weakest(found) if found else Finding("convention", "empty object")

    def _number(self, value: int | float, schema: Json, tool: Tool | None) -> Finding:
        wanted = numbers.number(value)
        assert wanted is not None
        for one in self.numbers:
            if numbers.same(one.value, wanted):
                if one.how == "unit":
                    return Finding("convention", "unit", one.place)
                return self._where(one.place, "number" if one.how else "verbatim", one.how)
        if said := schemas.source(value, schema, tool):
            return Finding("schema", said)
        return NOWHERE

    def _where(self, place: Place, kind: Kind, note: str = "") -> Finding:
        return Finding("tool_result", note, place) if self.reading.earlier(place) else Finding(kind, note, place)

    def _text(self, value: str, schema: Json, tool: Tool | None) -> Finding:
        text = value.strip()
        if place := self.reading.find(text):
            return self._where(place, "verbatim")
        moments = dates.golden(text)
        missing = None
        for moment in moments:
            found = self.calendar.find(moment)
            if found.place is not None:
                return self._where(found.place, "date_time", found.note)
            missing = missing or found.note
        wanted = numbers.number(text)
        if wanted is not None:
            found_number = self._number_text(wanted)
            if found_number is not None:
                return found_number
        if said := schemas.source(value, schema, tool):
            return Finding("schema", said)
        if missing:
            return Finding("nowhere", missing)
        if text[:1] in "[{" and (inner := _spelled(text)) is not None:
            return self.value(inner, schema, tool)
        if place := self.reading.find_any_case(text):
            return self._where(place, "convention", "case")
        if place := self.reading.find_words(text):
            return self._where(place, "convention", "case and punctuation")
        if place := self.reading.find_words(text, stems=True):
            return self._where(place, "convention", "inflection")
        return self._put_together(text) or NOWHERE

    def _number_text(self, wanted: Decimal) -> Finding | None:
        for one in self.numbers:
            if numbers.same(one.value, wanted):
                if one.how == "unit":
                    return Finding("convention", "unit", one.place)
                return self._where(one.place, "number", one.how or "digits")
        return None

    def _put_together(self, text: str) -> Finding | None:
        if re.search(r"[=\n;{]", text):
            return None
        words = [word for word in split(text) if word not in _STOP] or split(text)
        places = []
        for word in words:
            place = self.reading.stems.get(stem(word))
            if place is None:
                return None
            places.append(place)
        return self._where(places[0], "convention", "wording") if places else None


def _spelled(text: str) -> Json:
    """The list or object that a text spells, as a Python literal or as JSON; None for any other text."""
    try:
        found = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    return found if isinstance(found, list | dict) else None


def _weakest(found: list[Finding]) -> Finding:
    return max(found, key=lambda one: KINDS.index(one.kind))
