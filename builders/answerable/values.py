"""The class of one golden value: from where a reader could take it."""

import ast
import re
from collections.abc import Iterable
from decimal import Decimal
from functools import cached_property

from robustbench_tc.schema import ANY, OMIT, Json, Tool

from . import dates, numbers, schemas, tables
from .reading import KINDS, NOWHERE, Finding, Kind, Place
from .wording import Wording


class Reader(Wording, frozen=True, dict=True):
    """One dialogue, and the class of any value that a golden answer of it may have."""

    accepts_inside: bool = False
    """Objects inside values list what they accept (BFCL)."""

    @cached_property
    def calendar(self) -> dates.Calendar:
        return dates.Calendar(self.reading)

    @cached_property
    def numbers(self) -> tuple[numbers.Mention, ...]:
        return tuple(
            sorted(
                numbers.mentions(self.reading),
                key=lambda one: (self.reading.earlier(one.place), bool(one.how)),
            )
        )

    def unwanted(self, parameter: str, tool: Tool) -> str:
        """Why nobody would give a value for the parameter in the call that is due; "" where one may."""
        return schemas.unwanted(parameter, tool, self._says, self.reading.calls_of(tool.name))

    def _says(self, text: str) -> Place | None:
        return self.reading.find_any_case(text) or self.reading.find_words(text, stems=True)

    def _defined(self, value: Json, schema: Json, tool: Tool | None) -> str | None:
        return schemas.source(value, schema, tool, self._says)

    def accepted(self, values: Iterable[Json], schema: Json, tool: Tool | None) -> Finding:
        """The class of a parameter: the surest one of the values that are accepted."""
        best = NOWHERE
        for value in values:
            if value is None or value in (OMIT, ANY):
                return Finding("free", "any value" if value == ANY else "may be left out")
            found = self.value(value, schema, tool)
            if best is NOWHERE or KINDS.index(found.kind) < KINDS.index(best.kind):
                best = found
        return best

    def value(self, value: Json, schema: Json, tool: Tool | None) -> Finding:
        """The class of one value; that of a list or object is the class of its least sure part."""
        if isinstance(value, list):
            return self._list(value, schema, tool)
        if isinstance(value, dict):
            return self._object(value, schema, tool)
        if isinstance(value, bool):
            said = self._defined(value, schema, tool)
            return Finding("schema", said or "yes or no")
        if isinstance(value, int | float):
            return self._number(value, schema, tool)
        return self._text(str(value), schema, tool)

    def _list(self, value: list[Json], schema: Json, tool: Tool | None) -> Finding:
        said = self._defined(value, schema, tool)
        if said:
            return Finding("schema", said)
        if not value:
            return Finding("convention", "empty list")
        items = schema.get("items") if isinstance(schema, dict) else None
        inner = {
            "description": schema.get("description", "") if isinstance(schema, dict) else "",
            **(items if isinstance(items, dict) else {}),
        }
        return _weakest([self.value(one, inner, tool) for one in value])

    def _object(self, value: dict[str, Json], schema: Json, tool: Tool | None) -> Finding:
        properties = schema.get("properties") if isinstance(schema, dict) else None
        found = []
        for name, one in value.items():
            inner = properties.get(name) if isinstance(properties, dict) else None
            inner = (
                inner
                if isinstance(inner, dict)
                else {"description": schema.get("description", "") if isinstance(schema, dict) else ""}
            )
            if self.accepts_inside and isinstance(one, list):
                found.append(self.accepted(one, inner, tool))
            else:
                found.append(self.value(one, inner, tool))
        return _weakest(found) if found else Finding("convention", "empty object")

    def _number(self, value: int | float, schema: Json, tool: Tool | None) -> Finding:
        wanted = numbers.number(value)
        assert wanted is not None
        if found := self._mentioned(wanted, "verbatim", ""):
            return found
        if said := self._defined(value, schema, tool):
            return Finding("schema", said)
        return self._derived(wanted, schema) or NOWHERE

    def _derived(self, wanted: Decimal, schema: Json) -> Finding | None:
        """A number that follows from those that are said."""
        text = str(schema.get("description", "")).lower() if isinstance(schema, dict) else ""
        from_zero, in_cents = _FROM_ZERO.search(text), _IN_CENTS.search(text)
        for one in self.numbers:
            if from_zero and one.value == wanted + 1:
                return Finding("convention", "counted from zero", one.place)
            if in_cents and one.value * 100 == wanted:
                return Finding("convention", "unit", one.place)
        if "month" in text and (month := self.calendar.month(wanted)):
            return Finding("date_time", "month of a date", month)
        if wanted in (0, 1) and _BEGINNING.search(text):
            return Finding("convention", "from the beginning")
        for said, place in self._counts:
            if numbers.same(said, wanted):
                return Finding("knowledge", "a number that everybody knows", place)
        for value, place in [
            *self.calendar.differences,
            *numbers.bounds(self.reading),
            *numbers.within_ranges(self.reading),
        ]:
            if value == wanted:
                return Finding("number", "follows from what is said", place)
        return None

    @cached_property
    def _counts(self) -> tuple[tuple[Decimal, Place], ...]:
        return tuple(
            (Decimal(str(count)), word.place)
            for word in self.reading.words
            for count in tables.COUNTS.get(word.text, ())
        )

    def _text(self, value: str, schema: Json, tool: Tool | None) -> Finding:
        text = value.strip()
        if place := self.reading.find(text):
            return self.where(place, "verbatim")
        meant = dates.golden(text)
        missing = None
        for moment in meant:
            evidence = self.calendar.find(moment)
            if evidence.place is not None:
                return self.where(evidence.place, "date_time", evidence.note)
            missing = missing or evidence.note
        wanted = numbers.number(text)
        if wanted is not None and (said_number := self._mentioned(wanted, "number", "digits")):
            return said_number
        if said := self._defined(value, schema, tool):
            return Finding("schema", said)
        if missing:
            return Finding("nowhere", missing)
        if wanted is not None and (derived := self._derived(wanted, schema)):
            return derived
        if place := self.reading.find(text.replace("\n", "  ")):
            return self.where(place, "convention", "line breaks")
        if text.lower() in ("true", "false"):
            return Finding("schema", "yes or no")
        if " to " in text and (halves := [dates.golden(half) for half in text.split(" to ")]) and all(halves):
            return _weakest([self._text(half, schema, tool) for half in text.split(" to ")])
        if text[:1] in "[{" and (inner := _spelled(text)) is not None:
            return self.value(inner, schema, tool)
        return self._in_other_form(text, schema, tool)

    def _in_other_form(self, text: str, schema: Json, tool: Tool | None) -> Finding:
        """The class of a text that nobody says as it is and no definition has."""
        if len(text) < 3 and text.isalpha():  # a code: IT is not the word "it"
            unit = self.reading.find_unit(text)
            return self.other_name(text) or (NOWHERE if unit is None else self.where(unit, "verbatim"))
        if place := self.reading.find_any_case(text):
            return self.where(place, "convention", "case")
        if place := self.reading.find_words(text):
            return self.where(place, "convention", "case and punctuation")
        if place := self.reading.find_words(text, stems=True):
            return self.where(place, "convention", "inflection")
        if found := self.other_name(text) or self.with_region(text) or self.own_language(text):
            return found
        if tables.is_region(text.rpartition(",")[2]) and "," in text:
            return NOWHERE  # a city is said, and where it lies is neither said nor known
        return self.put_together(text, schema, tool) or self.misspelt(text) or NOWHERE

    def _mentioned(self, wanted: Decimal, kind: Kind, note: str) -> Finding | None:
        """The class of a number that is said; `kind` and `note`: where it is said in digits."""
        for one in self.numbers:
            if numbers.same(one.value, wanted):
                if one.how == "unit":
                    return Finding("convention", "unit", one.place)
                return self.where(one.place, "number" if one.how else kind, one.how or note)
        return None


_FROM_ZERO = re.compile(
    r"zero-based|0-based|0 ?\(default\) is the first|starting (?:from|at) 0|0 is the first"
)
_IN_CENTS = re.compile(r"\bcents?\b|smallest unit")
_BEGINNING = re.compile(r"page number|page to|starting (?:point|index|page)|\boffset\b")


def _spelled(text: str) -> Json:
    """The list or object that a text spells, as a Python literal or as JSON; None for any other text."""
    try:
        found = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    return found if isinstance(found, list | dict) else None


def _weakest(found: list[Finding]) -> Finding:
    return max(found, key=lambda one: KINDS.index(one.kind))
