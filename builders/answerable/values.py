"""The class of one golden value: from where a reader could take it.

Values are looked for as they are, then as dates and numbers, then in the definition, then in another wording."""

import difflib
import re
from collections.abc import Iterable
from decimal import Decimal
from functools import cached_property
from typing import TypeAlias

import msgspec

from robustbench_tc.schema import ANY, OMIT, Json, Tool

from ..plain import Span, literal
from . import dates, numbers, schemas, tables
from .reading import KINDS, NOWHERE, Finding, Kind, Reading, split, stem

Schema: TypeAlias = dict[str, Json]

UNDECLARED: Schema = {}
"""Of a parameter that its tool does not declare."""

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

    def _defined(self, value: Json, schema: Schema, tool: Tool | None) -> Finding | None:
        if schema is UNDECLARED or not (said := schemas.source(value, schema, tool, self._says)):
            return None
        return Finding("schema", said)

    def accepted(self, values: Iterable[Json], schema: Json, tool: Tool | None) -> Finding:
        """The class of a parameter: the surest one of the values that are accepted."""
        best = NOWHERE
        for value in values:
            if value is None or value in (OMIT, ANY):
                return Finding("free", "any value" if value == ANY else "may be left out")
            found = self.value(value, schema if isinstance(schema, dict) else UNDECLARED, tool)
            if best is NOWHERE or KINDS.index(found.kind) < KINDS.index(best.kind):
                best = found
        return best

    def value(self, value: Json, schema: Schema, tool: Tool | None) -> Finding:
        """The class of one value; that of a list or object is the class of its least sure part."""
        if isinstance(value, list):
            return self._list(value, schema, tool)
        if isinstance(value, dict):
            return self._object(value, schema, tool)
        if isinstance(value, bool):
            return self._defined(value, schema, tool) or Finding("schema", "yes or no")
        if isinstance(value, int | float):
            return self._number(value, schema, tool)
        return self._text(str(value), schema, tool)

    def _list(self, value: list[Json], schema: Schema, tool: Tool | None) -> Finding:
        if found := self._defined(value, schema, tool):
            return found
        items = schema.get("items")
        inner = {"description": schema.get("description", "")} | (items if isinstance(items, dict) else {})
        return _weakest([self.value(one, inner, tool) for one in value], "empty list")

    def _object(self, value: dict[str, Json], schema: Schema, tool: Tool | None) -> Finding:
        properties = schema.get("properties")
        found = []
        for name, one in value.items():
            inner = properties.get(name) if isinstance(properties, dict) else None
            if not isinstance(inner, dict):
                inner = {"description": schema.get("description", "")}
            if self.accepts_inside and isinstance(one, list):
                found.append(self.accepted(one, inner, tool))
            else:
                found.append(self.value(one, inner, tool))
        return _weakest(found, "empty object")

    def _number(self, value: int | float, schema: Schema, tool: Tool | None) -> Finding:
        wanted = numbers.number(value)
        assert wanted is not None
        return (
            self._mentioned(wanted, "verbatim", "")
            or self._defined(value, schema, tool)
            or self._derived(wanted, schema)
            or NOWHERE
        )

    def _derived(self, wanted: Decimal, schema: Schema) -> Finding | None:
        """A number that follows from those that are said."""
        text = str(schema.get("description", "")).lower()
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
        for word in self.reading.words:
            if any(numbers.same(Decimal(str(count)), wanted) for count in tables.COUNTS.get(word.text, ())):
                return Finding("knowledge", "a number that everybody knows", word.place)
        following = (
            *self.calendar.differences,
            *numbers.bounds(self.reading),
            *numbers.within_ranges(self.reading),
        )
        place = next((place for value, place in following if value == wanted), None)
        return None if place is None else Finding("number", "follows from what is said", place)

    def _text(self, value: str, schema: Schema, tool: Tool | None) -> Finding:
        text = value.strip()
        wanted = numbers.number(text)
        dated = [self.calendar.find(moment) for moment in dates.golden(text)]
        day = next((one for one in dated if one.place is not None), None)
        if found := (
            self.where(self.reading.find(text), "verbatim")
            or (day and self.where(day.place, "date_time", day.note))
            or (wanted is not None and self._mentioned(wanted, "number", "digits"))
            or self._defined(value, schema, tool)
        ):
            return found
        if dated:
            return Finding("nowhere", dated[0].note)
        if found := (wanted is not None and self._derived(wanted, schema)) or self.where(
            self.reading.find(text.replace("\n", "  ")), "convention", "line breaks"
        ):
            return found
        if text.lower() in ("true", "false"):
            return Finding("schema", "yes or no")
        halves = text.split(" to ")
        if len(halves) > 1 and all(map(dates.golden, halves)):
            return _weakest([self._text(half, schema, tool) for half in halves])
        if isinstance(inner := literal(text), list | dict):
            return self.value(inner, schema, tool)
        return self._in_other_form(text, schema, tool)

    def _in_other_form(self, text: str, schema: Schema, tool: Tool | None) -> Finding:
        """The class of a text that nobody says as it is and no definition has."""
        if len(text) < 3 and text.isalpha():  # a code: IT is not the word "it"
            return self.other_name(text) or self.where(self.reading.find_unit(text), "verbatim") or NOWHERE
        found = (
            self.where(self.reading.find_any_case(text), "convention", "case")
            or self.where(self.reading.find_words(text), "convention", "case and punctuation")
            or self.where(self.reading.find_words(text, stems=True), "convention", "inflection")
            or self.other_name(text)
            or self.with_region(text)
            or self.own_language(text)
        )
        if found is None and "," in text and tables.is_region(text.rpartition(",")[2]):
            return NOWHERE  # a city is said, and where it lies is neither said nor known
        return found or self.put_together(text, schema, tool) or self.misspelt(text) or NOWHERE

    def _mentioned(self, wanted: Decimal, kind: Kind, note: str) -> Finding | None:
        """The class of a number that is said; `kind` and `note`: where it is said in digits."""
        one = next((one for one in self.numbers if numbers.same(one.value, wanted)), None)
        if one is None:
            return None
        if one.how == "unit":
            return Finding("convention", "unit", one.place)
        return self.where(one.place, "number" if one.how else kind, one.how or note)

    # Words in another form than they are said: names, codes, order, spelling, formulas.

    def where(self, place: Span | None, kind: Kind, note: str = "") -> Finding | None:
        """A finding at this passage, if there is one; in an earlier call or its result it is of that class."""
        if place is None:
            return None
        return Finding("tool_result" if self.reading.earlier(place) else kind, note, place)

    def other_name(self, text: str) -> Finding | None:
        """Another form of a name that is said: a code, a symbol, an abbreviation."""
        for name, kind, why in tables.known(text):
            if place := self.reading.find_any_case(name) or self.reading.find_words(name):
                return self.where(place, "knowledge" if kind == "knowledge" else "convention", why)
        return None

    def with_region(self, text: str) -> Finding | None:
        """`City, Region`: the city is said, and where it lies is known or said."""
        city, _, region = (part.strip() for part in text.rpartition(","))
        place, alias = self.reading.find_any_case(city), self.other_name(city)
        if place is None and alias is not None:
            place = alias.place
        if place and self.reading.find_any_case(region):
            return self.where(place, "convention", "list")
        for name, _, why in tables.known(region) if place else ():
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
        if len(text) < 6 or any(char.isdigit() for char in text):
            return None
        near = [
            difflib.get_close_matches(word, self._said, 1, 0.84 if len(word) >= 6 else 1)
            for word in split(text)
        ]
        return self.where(self._said[near[0][0]], "convention", "spelling") if near and all(near) else None

    @cached_property
    def _said(self) -> dict[str, Span]:
        made: dict[str, Span] = {}
        for word in self.reading.words:
            made.setdefault(word.text, word.place)
        return made

    def put_together(self, text: str, schema: Schema, tool: Tool | None) -> Finding | None:
        """A text of words that are said in other order or form, in a form that the definition may give."""
        if "\n" in text or _CODE.search(text):
            return self._expression(text)
        defined = [str(value) for key, value in schema.items() if key != "type"]
        defined.append(tool.description if tool else "")
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
        return next((place for said, place in self._said.items() if _one_begins_the_other(said, word)), None)

    def _expression(self, text: str) -> Finding | None:
        """A formula or piece of code, however it is spaced and its signs are written."""
        wanted = _squeezed(text)
        if len(wanted) < 2 or not re.search(r"[\d=()*+/^<>]", text):
            return None
        for index, whole in enumerate(self.reading.texts):
            if wanted in _squeezed(whole):
                return Finding("convention", "expression", Span(index, 0, len(whole)))
        return None


def _one_begins_the_other(said: str, word: str) -> bool:
    """Whether the shorter word has three letters or more, and about half of those of the longer one."""
    shorter, longer = sorted((said, word), key=len)
    return (
        len(shorter) >= 3
        and said.isalpha()
        and len(shorter) * 2 >= len(longer) - 3
        and longer.startswith(shorter)
    )


_FROM_ZERO = re.compile(
    r"zero-based|0-based|0 ?\(default\) is the first|starting (?:from|at) 0|0 is the first"
)
_IN_CENTS = re.compile(r"\bcents?\b|smallest unit")
_BEGINNING = re.compile(r"page number|page to|starting (?:point|index|page)|\boffset\b")


def _weakest(found: list[Finding], empty: str = "") -> Finding:
    return max(found, key=lambda one: KINDS.index(one.kind), default=Finding("convention", empty))
