"""Words of a golden text in another form than they are said: names, codes, order, spelling, formulas."""

import difflib
import re
from functools import cached_property

import msgspec

from robustbench_tc.schema import Json, Tool

from . import tables
from .reading import Finding, Kind, Place, Reading, split, stem

_STOP = frozenset(
    "a an the of in on at for to and or with by from is are my your our me i you it this that as be s".split()
)


class Wording(msgspec.Struct, frozen=True, dict=True):
    """What a reader makes of the words of one dialogue."""

    reading: Reading

    def where(self, place: Place, kind: Kind, note: str = "") -> Finding:
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
    def _said(self) -> dict[str, Place]:
        made: dict[str, Place] = {}
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

    def _abbreviated(self, word: str) -> Place | None:
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
                return Finding("convention", "expression", Place(index, 0, len(whole)))
        return None


_LONGEST = 12
"""Words of a text that a reader may be expected to put together as the golden value has it, word for word."""

_CODE = re.compile(r"[;{}]|==|\w\(")


def _squeezed(text: str) -> str:
    """A formula without spaces, brackets, multiplication signs and the head of a function."""
    plain = re.sub(r"lambda \w+:|^def .*?return |\bmath\.|\bnp\.", "", text.lower())
    plain = plain.replace("squared", "2").replace("cubed", "3").replace("\u00b2", "2").replace("\u00b3", "3")
    return re.sub(r"[\s*^()\[\]'\"`\\]|y\s?=|f\(x\)\s?=", "", plain)
