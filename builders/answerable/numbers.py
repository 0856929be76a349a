"""Numbers as people write them: digits, words, percents, multiples, units.

Words that are numbers or multiply them, and units with their factors, as `units.toml` lists them.
"""

import re
import tomllib
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, NamedTuple

from robustbench_tc.schema import Json

from ..plain import Span
from .reading import Reading

_LISTED: dict[str, Any] = tomllib.loads(Path(__file__).with_name("units.toml").read_text("utf-8"))

ONES: dict[str, int] = _LISTED["ones"]
ORDINALS: dict[str, int | str] = _LISTED["ordinals"]
"""Words that state a number without being one."""
MULTIPLES: dict[str, int] = _LISTED["multiples"]
SPELLED: dict[str, str] = {other: unit for unit, others in _LISTED["spellings"].items() for other in others}
"""Spelling → unit."""


def factors(unit: str) -> Iterator[Decimal]:
    """By what a number with this unit is multiplied in the other units of its dimension."""
    name = SPELLED.get(unit) or SPELLED.get(unit.removesuffix("s"), unit)
    for dimension in _LISTED["dimensions"]:
        if name in dimension:
            own = Decimal(dimension[name])
            for other, factor in dimension.items():
                if other != name:
                    yield own / Decimal(factor)


_NUMBER = re.compile(
    r"(?P<sign>[-\u2212])?(?P<digits>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+)"
    r"(?:[eE](?P<exponent>[-+]?\d{1,3}))?(?P<rest>\s?[%\u00b0\u2070]|(?:st|nd|rd|th)\b|[\s-]?[^\W\d_]+)?"
)
_FRACTION = re.compile(r"(?<![\d/])(\d{1,12})\s?/\s?(\d{1,12})(?![\d/])")
_POWER = re.compile(r"(\d+(?:\.\d+)?)\s?(?:x|\*|\u00d7)\s?10\s?(?:\^|\*\*)\s?\(?([-\u2212]?\d{1,3})(?!\d)\)?")

_TENTHS = Decimal(1).scaleb(-9)


class Mention(NamedTuple):
    """A number of the dialogue: what it may mean, how it is written, where."""

    value: Decimal
    how: str
    """"" as it is written, else in words."""
    place: Span


def mentions(reading: Reading) -> Iterator[Mention]:
    """Every number that somebody wrote, in each meaning that it may have."""
    for index, text in enumerate(reading.texts):
        yield from _in_digits(index, text)
        yield from _in_formulas(index, text)
    yield from _in_words(reading)


def _in_digits(index: int, text: str) -> Iterator[Mention]:
    for found in _NUMBER.finditer(text):
        value = Decimal(found["digits"].replace(",", ""))
        if "," in found["digits"]:  # `[200,300]`: two numbers
            for part in re.finditer(r"[\d.]+", found["digits"]):
                start = found.start("digits") + part.start()
                yield Mention(
                    Decimal(part.group()), "one of a list", Span(index, start, start + len(part.group()))
                )
        if found["exponent"]:
            value = value.scaleb(int(found["exponent"]))
        place = Span(index, found.start("digits"), found.end("digits"))
        rest = (found["rest"] or "").strip(" -").lower()
        before, after = text[: found.start()], text[found.end("digits") : found.end("digits") + 16]
        negative = found["sign"] or before.rstrip().endswith(("-", "\u2212", "minus", "negative"))
        meanings = (
            (True, value, ""),
            (negative, -value, ""),
            (_LOSS.search(before), -value, "a loss is negative"),
            (_WEST_OR_SOUTH.match(after), -value, "west and south are negative"),
            (rest == "%" or rest.startswith("percent"), value / 100, "percent as a fraction"),
            (rest in MULTIPLES, value * MULTIPLES.get(rest, 1), "multiple"),
            *((True, value * factor, "unit") for factor in factors(rest)),
        )
        for is_so, meant, how in meanings:
            if is_so:
                yield Mention(meant, how, place)


_FEET = re.compile(
    r"(?<!\d)(\d{1,4})\s?(?:ft|feet|foot|')\s?(\d{1,3})(?!\d)\s?(?:in|inches|inch|\"|'')?", re.IGNORECASE
)
_LOSS = re.compile(
    r"(?i)\b(?:loss|losses|lose|lost|donated|spent|withdr\w+|decrease\w*|minus|negative|below)\W+(?:\w+\W+){0,2}$"
)
_WEST_OR_SOUTH = re.compile(r"[\s\u00b0\u2032'\"]*(?:[WS]\b|west|south)")
_TWO_DIGITS = re.compile(r"['\u2019](\d\d)\b")
_YEARS_AGO = re.compile(r"(?i)\b(\w+) years? ago\b")


def _in_formulas(index: int, text: str) -> Iterator[Mention]:
    for found in _FEET.finditer(text):
        place = Span(index, *found.span())
        inches = int(found[1]) * 12 + int(found[2])
        yield Mention(Decimal(inches), "unit", place)
        yield Mention(Decimal(inches) * Decimal("2.54"), "unit", place)
    for found in _TWO_DIGITS.finditer(text):
        yield Mention(Decimal(2000 + int(found[1])), "year in two digits", Span(index, *found.span()))
    for found in _YEARS_AGO.finditer(text):
        ago = ONES.get(found[1].lower(), int(found[1]) if re.fullmatch(r"[0-9]{1,4}", found[1]) else 0)
        for year in re.findall(r"\b(?:19|20)\d\d\b", text):
            yield Mention(Decimal(int(year) - ago), "counted from a said year", Span(index, *found.span()))
    for found in _FRACTION.finditer(text):
        if int(found[2]):
            yield Mention(Decimal(found[1]) / Decimal(found[2]), "fraction", Span(index, *found.span()))
    for found in _POWER.finditer(text):
        exponent = int(found[2].replace("\u2212", "-"))
        if abs(exponent) < 100:
            yield Mention(Decimal(found[1]).scaleb(exponent), "power of ten", Span(index, *found.span()))


def _in_words(reading: Reading) -> Iterator[Mention]:
    words = reading.words
    for at, word in enumerate(words):
        if word.text in ORDINALS:
            yield Mention(Decimal(ORDINALS[word.text]), f"the word {word.text!r}", word.place)
        if (
            SPELLED.get(word.text, word.text) in ("h", "day", "week", "month", "year", "min")
            and len(word.text) > 2
        ):
            for factor in factors(word.text):
                yield Mention(factor, "unit", word.place)
        if word.text not in ONES and word.text not in MULTIPLES:
            continue
        total, current, last = Decimal(0), Decimal(0), at
        for last in range(at, min(at + 8, len(words))):
            name = words[last].text
            if name in ONES:
                current += ONES[name]
            elif name in MULTIPLES and len(name) > 2:
                factor = Decimal(MULTIPLES[name])
                current = max(current, Decimal(1)) * factor
                if factor >= 1000:
                    total, current = total + current, Decimal(0)
            elif name != "and" or last == at:
                break
            place = Span(word.place.message, word.place.start, words[last].place.end)
            yield Mention(total + current, "number word", place)
            following = words[last + 1].text if last + 1 < len(words) else ""
            for factor in factors(following):
                yield Mention((total + current) * factor, "unit", place)


_BOUND = re.compile(
    r"(?i)\b(?P<way>less|fewer|under|below|more|over|above|greater)(?:\sthan)?\s\$?(?P<n>\d{1,12})\b"
)
_RANGE = re.compile(r"(?i)\b(\d{1,12})\s?(?:to|-|\u2013|through|and|until)\s?(\d{1,12})\b")


def bounds(reading: Reading) -> Iterator[tuple[Decimal, Span]]:
    """The whole number next to a bound that is itself left out: "less than 5"."""
    for index, text in enumerate(reading.texts):
        for found in _BOUND.finditer(text):
            step = -1 if found["way"].lower() in ("less", "fewer", "under", "below") else 1
            yield Decimal(int(found["n"]) + step), Span(index, *found.span())


def within_ranges(reading: Reading) -> Iterator[tuple[Decimal, Span]]:
    """The whole numbers between two that are said as a range of at most a hundred."""
    for index, text in enumerate(reading.texts):
        for found in _RANGE.finditer(text):
            first, last = int(found[1]), int(found[2])
            for number in range(first + 1, min(last, first + 100)):
                yield Decimal(number), Span(index, *found.span())


def same(left: Decimal, right: Decimal) -> bool:
    """Equal, but for what a conversion leaves in the ninth digit."""
    return left == right or abs(left - right) <= _TENTHS * max(abs(left), abs(right))


def number(value: Json) -> Decimal | None:
    """The number that a golden value is, also as a text (`"1,000"`, `"$5"`); None for any other value."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    text = str(value).strip().replace(",", "") if isinstance(value, str) else repr(value)
    if isinstance(value, str) and not re.fullmatch(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?", text):
        return None
    try:
        return Decimal(text)
    except InvalidOperation:
        return None
