"""The class of one golden value: from where a reader could take it.

Values are looked for as they are, then as dates and numbers, then in the definition, then in another wording."""

import difflib
import re
from collections.abc import Iterable
from decimal import Decimal
from functools import cached_property

import msgspec

from robustbench_tc.schema import ANY, OMIT, Json, Tool

from ..plain import Span, literal
from . import dates, numbers, schemas, tables
from .reading import KINDS, NOWHERE, Finding, Kind, Reading, split, stem

_STOP = frozenset(
    "a an the of in on at for to and or with by from is are my your our me i you it this that as be s".split()
)


_LONGEST = 12
"""Words of a text that a reader may be expected to put together as the golden value has it, word for word."""

_CODE = re.compile(r"[;{}]|==|\w\(")


def _squeezed(text: str) -> str:
    """A formula without spaces, brackets, multiplication signs and the head of a function."""
    plain = re.sub(r"lambda \w+:|^def .*?return |\bmath\.|\bnp\.", "", text.lower())
    plain = plain.replace("squared", "2").replace("cubed", "3").replace("\u00b2", "2").replace("\u00b3", "3")
    return re.sub(r"[\s*^()\[\]'\"`\\]|y\s?=|f\(x\)\s?=", "", plain)


class Reader(msgspec.Struct, frozen=True, dict=True):
    """One dialogue, and the class of any value that a golden answer of it may have."""

    reading: Reading
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

    def _says(self, text: str) -> Span | None:
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
    def _counts(self) -> tuple[tuple[Decimal, Span], ...]:
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
        if isinstance(inner := literal(text), list | dict):
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

    # Words in another form than they are said: names, codes, order, spelling, formulas.

    def where(self, place: Span, kind: Kind, note: str = "") -> Finding:
        """A finding at this passage; one that lies in an earlier call or its result is of that class."""
        return (
            Finding("tool_result", note, place) if self.reading.earlier(place) else Finding(kind, note, place)
        )

    def other_name(self, text: str) -> Finding | None:
        """Another form of a name that is said: a code, a symbol, an abbreviation."""
        for name, kind, why in tables.known(text):
            if place := self.reading.find_any_case(name) or self.reading.find_words(name):
                return self.where(place, "knowledge" if kind == "knowledge" else "convention", why)
        return None

    def with_region(self, text: str) -> Finding | None:
        """`City, Region`: the city is said, and where it lies is known or said."""
        city, comma, region = (part.strip() for part in text.rpartition(","))
        if not comma or not city:
            return None
        place = self.reading.find_any_case(city)
        alias = None if place else self.other_name(city)
        place = place or (alias.place if alias else None)
        if place is None:
            return None
        if self.reading.find_any_case(region):
            return self.where(place, "convention", "list")
        for name, _, why in tables.known(region):
            if name == city.lower():
                return self.where(place, "knowledge", why)
            if self.reading.find_any_case(name):
                return self.where(place, "convention", why)
        return None

    def own_language(self, text: str) -> Finding | None:
        """English, of a request in English."""
        first = next(
            (word for word in self.reading.words if word.text in ("the", "a", "to", "i", "me", "is", "for")),
            None,
        )
        if text.lower() in ("english", "en", "eng_latn") and first is not None:
            return Finding("convention", "the language of the request", first.place)
        return None

    def misspelt(self, text: str) -> Finding | None:
        """A word of the dialogue with a letter or two wrong."""
        wanted = split(text)
        if len(text) < 6 or any(char.isdigit() for char in text):
            return None
        places = []
        for word in wanted:
            near = (
                difflib.get_close_matches(word, self._said, 1, 0.84)
                if len(word) >= 6
                else [word] * (word in self._said)
            )
            if not near:
                return None
            places.append(self._said[near[0]])
        return self.where(places[0], "convention", "spelling") if places else None

    @cached_property
    def _said(self) -> dict[str, Span]:
        made: dict[str, Span] = {}
        for word in self.reading.words:
            made.setdefault(word.text, word.place)
        return made

    def put_together(self, text: str, schema: Json, tool: Tool | None) -> Finding | None:
        """A text of words that are said in other order or form, in a form that the definition may give."""
        if "\n" in text or _CODE.search(text):
            return self._expression(text)
        facts = schema.items() if isinstance(schema, dict) else ()
        defined = [*(str(value) for key, value in facts if key != "type"), tool.description if tool else ""]
        form = {stem(word) for word in split(" ".join(defined))}
        if len(split(text)) > _LONGEST and " " in text:
            return None
        words = [word for word in split(text) if word not in _STOP] or split(text)
        places, given = [], False
        for word in words:
            place = self.reading.stems.get(stem(word)) or self._abbreviated(word)
            if place is None and (found := self.other_name(word)) and found.kind == "convention":
                place = found.place
            if place is not None:
                places.append(place)
            elif stem(word) in form or (word in tables.COMMANDS and set(split(text)) & tables.COMMANDS):
                given = True
            else:
                return self._expression(text)
        note = "in the form that the definition gives" if given else "wording"
        return self.where(places[0], "convention", note) if places else None

    def _abbreviated(self, word: str) -> Span | None:
        """A word that begins as this one does, the shorter one at least three letters."""
        if len(word) < 3 or not word.isalpha():
            return None
        for said, place in self._said.items():
            if (
                len(said) >= 3
                and said.isalpha()
                and min(len(said), len(word)) * 2 >= max(len(said), len(word)) - 3
                and (said.startswith(word) or word.startswith(said))
            ):
                return place
        return None

    def _expression(self, text: str) -> Finding | None:
        """A formula or piece of code, however it is spaced and its signs are written."""
        wanted = _squeezed(text)
        if not re.search(r"[\d=()*+/^<>]", text):
            return None
        for index, whole in enumerate(self.reading.texts):
            squeezed = _squeezed(whole)
            if len(wanted) >= 2 and wanted in squeezed:
                return Finding("convention", "expression", Span(index, 0, len(whole)))
        return None


_FROM_ZERO = re.compile(
    r"zero-based|0-based|0 ?\(default\) is the first|starting (?:from|at) 0|0 is the first"
)
_IN_CENTS = re.compile(r"\bcents?\b|smallest unit")
_BEGINNING = re.compile(r"page number|page to|starting (?:point|index|page)|\boffset\b")


def _weakest(found: list[Finding]) -> Finding:
    return max(found, key=lambda one: KINDS.index(one.kind))
