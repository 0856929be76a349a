"""Numbers as people write them: digits, words, percents, multiples, units."""

import re
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from typing import NamedTuple

from .reading import Place, Reading

_NUMBER = re.compile(
    r"(?P<sign>[-\u2212])?(?P<digits>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+)"
    r"(?:[eE](?P<exponent>[-+]?\d+))?(?P<rest>\s?[%\u00b0\u2070]|(?:st|nd|rd|th)\b|[\s-]?[^\W\d_]+)?"
)
_FRACTION = re.compile(r"(?<![\d/])(\d+)\s?/\s?(\d+)(?![\d/])")
_POWER = re.compile(r"(\d+(?:\.\d+)?)\s?(?:x|\*|\u00d7)\s?10\s?(?:\^|\*\*)\s?\(?([-\u2212]?\d+)\)?")

ONES = {
    **{"zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8},
    **{"nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15},
    **{"sixteen": 16, "seventeen": 17, "eighteen": 18, "nineteen": 19, "twenty": 20, "thirty": 30},
    **{"forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90},
}
ORDINALS = {
    **{"first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8},
    **{"ninth": 9, "tenth": 10, "twice": 2, "once": 1, "thrice": 3, "couple": 2, "pair": 2, "both": 2},
    **{"dozen": 12, "single": 1, "a": 1, "an": 1, "each": 1, "next": 1, "latest": 1, "half": "0.5"},
    **{"quarter": "0.25", "no": 0, "none": 0, "free": 0, "century": 100, "decade": 10, "double": 2},
    **{"triple": 3, "squared": 2, "square": 2, "cubed": 3, "quadratic": 2, "cubic": 3, "fair": "0.5"},
    **{"all": 1, "per": 1, "fortnight": 14, "week": 7, "month": 30, "year": 365, "rest": 0, "without": 0},
}
"""Words that state a number without being one."""

MULTIPLES = {
    **{"hundred": 100, "k": 1000, "thousand": 1000, "grand": 1000, "m": 10**6, "mn": 10**6, "mm": 10**6},
    **{"million": 10**6, "millions": 10**6, "b": 10**9, "bn": 10**9, "billion": 10**9, "billions": 10**9},
    **{"trillion": 10**12, "dozen": 12, "lakh": 10**5, "crore": 10**7},
}

_DIMENSIONS: tuple[dict[str, str], ...] = (
    {
        "mm": "0.001",
        "cm": "0.01",
        "m": "1",
        "km": "1000",
        "inch": "0.0254",
        "ft": "0.3048",
        "mile": "1609.344",
        "nm": "0.000000001",
        "um": "0.000001",
    },
    {
        "s": "1",
        "min": "60",
        "h": "3600",
        "day": "86400",
        "week": "604800",
        "month": "2592000",
        "year": "31536000",
        "ms": "0.001",
    },
    {"mg": "0.001", "g": "1", "kg": "1000", "t": "1000000", "lb": "453.59237"},
    {"mb": "1", "gb": "1024", "tb": "1048576", "kb": "0.0009765625"},
    {"w": "1", "kw": "1000", "mw": "1000000"},
    {"hz": "1", "khz": "1000", "mhz": "1000000", "ghz": "1000000000"},
    {"v": "1", "mv": "0.001", "kv": "1000"},
    {"uc": "0.000001", "c": "1", "nc": "0.000000001"},
    {"j": "1", "kj": "1000"},
    {"pa": "1", "kpa": "1000", "atm": "101325"},
    {"l": "1", "ml": "0.001"},
    {"mol": "1", "mmol": "0.001"},
    {"percent": "1", "fraction": "100"},
    {"month": "1", "year": "12", "quarter": "3", "decade": "120"},
    {"day": "1", "week": "7", "month": "30", "year": "365"},
    {"year": "1", "decade": "10", "century": "100"},
    {"f": "1", "uf": "0.000001", "nf": "0.000000001", "pf": "0.000000000001"},
    {"t": "1", "mt": "0.001"},
    {"henry": "1", "mh": "0.001", "uh": "0.000001"},
)
_SPELLED = {
    **{
        "millimeter": "mm",
        "centimeter": "cm",
        "meter": "m",
        "metre": "m",
        "kilometer": "km",
        "kilometre": "km",
    },
    **{
        "inches": "inch",
        "feet": "ft",
        "foot": "ft",
        "miles": "mile",
        "second": "s",
        "sec": "s",
        "minute": "min",
    },
    **{"mins": "min", "hour": "h", "hr": "h", "hrs": "h", "days": "day", "weeks": "week", "months": "month"},
    **{
        "years": "year",
        "yrs": "year",
        "milligram": "mg",
        "gram": "g",
        "kilogram": "kg",
        "kilo": "kg",
        "ton": "t",
    },
    **{
        "tonne": "t",
        "pound": "lb",
        "lbs": "lb",
        "watt": "w",
        "kilowatt": "kw",
        "megawatt": "mw",
        "volt": "v",
    },
    **{
        "microcoulomb": "uc",
        "coulomb": "c",
        "nanometer": "nm",
        "litre": "l",
        "liter": "l",
        "milliliter": "ml",
    },
    **{
        "joule": "j",
        "kilojoule": "kj",
        "hertz": "hz",
        "gigabyte": "gb",
        "megabyte": "mb",
        "milligrams": "mg",
    },
    **{"yr": "year", "decades": "decade", "quarters": "quarter", "atmosphere": "atm", "microfarad": "uf"},
    **{"kilograms": "kg", "millivolt": "mv", "tesla": "t", "kms": "km", "μc": "uc", "µc": "uc"},
    **{
        "μf": "uf",
        "µf": "uf",
        "μm": "um",
        "µm": "um",
        "in": "inch",
        "henries": "henry",
        "nights": "day",
        "night": "day",
    },
}
_TENTHS = Decimal(1).scaleb(-9)


class Mention(NamedTuple):
    """A number of the dialogue: what it may mean, how it is written, where."""

    value: Decimal
    how: str
    """"" as it is written, else in words."""
    place: Place


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
                    Decimal(part.group()), "one of a list", Place(index, start, start + len(part.group()))
                )
        if found["exponent"]:
            value = value.scaleb(int(found["exponent"]))
        place = Place(index, found.start("digits"), found.end("digits"))
        rest = (found["rest"] or "").strip(" -").lower()
        after = text[found.end("digits") : found.end("digits") + 16]
        yield Mention(value, "", place)
        if found["sign"] or text[: found.start()].rstrip().endswith(("-", "\u2212", "minus", "negative")):
            yield Mention(-value, "", place)
        if _LOSS.search(text[: found.start()]):
            yield Mention(-value, "a loss is negative", place)
        if re.match(r"[\s\u00b0\u2032'\"]*(?:[WS]\b|west|south)", after):
            yield Mention(-value, "west and south are negative", place)
        if rest == "%" or rest.startswith("percent"):
            yield Mention(value / 100, "percent as a fraction", place)
        if rest in MULTIPLES:
            yield Mention(value * MULTIPLES[rest], "multiple", place)
        for factor in _factors(rest):
            yield Mention(value * factor, "unit", place)


_FEET = re.compile(r"(\d+)\s?(?:ft|feet|foot|')\s?(\d+)\s?(?:in|inches|inch|\"|'')?", re.IGNORECASE)
_LOSS = re.compile(
    r"(?i)\b(?:loss|losses|lose|lost|donated|spent|withdr\w+|decrease\w*|minus|negative|below)\W+(?:\w+\W+){0,2}$"
)
_TWO_DIGITS = re.compile(r"['\u2019](\d\d)\b")
_YEARS_AGO = re.compile(r"(?i)\b(\w+) years? ago\b")


def _in_formulas(index: int, text: str) -> Iterator[Mention]:
    for found in _FEET.finditer(text):
        place = Place(index, *found.span())
        inches = int(found[1]) * 12 + int(found[2])
        yield Mention(Decimal(inches), "unit", place)
        yield Mention(Decimal(inches) * Decimal("2.54"), "unit", place)
    for found in _TWO_DIGITS.finditer(text):
        yield Mention(Decimal(2000 + int(found[1])), "year in two digits", Place(index, *found.span()))
    for found in _YEARS_AGO.finditer(text):
        ago = ONES.get(found[1].lower(), int(found[1]) if found[1].isdigit() else 0)
        for year in re.findall(r"\b(?:19|20)\d\d\b", text):
            yield Mention(Decimal(int(year) - ago), "counted from a said year", Place(index, *found.span()))
    for found in _FRACTION.finditer(text):
        if int(found[2]):
            yield Mention(Decimal(found[1]) / Decimal(found[2]), "fraction", Place(index, *found.span()))
    for found in _POWER.finditer(text):
        exponent = int(found[2].replace("\u2212", "-"))
        if abs(exponent) < 100:
            yield Mention(Decimal(found[1]).scaleb(exponent), "power of ten", Place(index, *found.span()))


def _in_words(reading: Reading) -> Iterator[Mention]:
    words = reading.words
    for at, word in enumerate(words):
        if word.text in ORDINALS:
            yield Mention(Decimal(ORDINALS[word.text]), f"the word {word.text!r}", word.place)
        if (
            _SPELLED.get(word.text, word.text) in ("h", "day", "week", "month", "year", "min")
            and len(word.text) > 2
        ):
            for factor in _factors(word.text):
                yield Mention(factor, "unit", word.place)
        if word.text not in ONES and word.text not in MULTIPLES:
            continue
        total, current, last = 0, 0, at
        for last in range(at, min(at + 8, len(words))):
            name = words[last].text
            if name in ONES:
                current += ONES[name]
            elif name in MULTIPLES and len(name) > 2:
                factor = MULTIPLES[name]
                current = max(current, 1) * factor
                if factor >= 1000:
                    total, current = total + current, 0
            elif name != "and" or last == at:
                break
            place = Place(word.place.message, word.place.start, words[last].place.end)
            yield Mention(Decimal(total + current), "number word", place)
            following = words[last + 1].text if last + 1 < len(words) else ""
            for factor in _factors(following):
                yield Mention((total + current) * factor, "unit", place)


def _factors(unit: str) -> Iterator[Decimal]:
    """By what a number with this unit is multiplied in the other units of its dimension."""
    name = _SPELLED.get(unit) or _SPELLED.get(unit.removesuffix("s"), unit)
    for dimension in _DIMENSIONS:
        if name in dimension:
            own = Decimal(dimension[name])
            for other, factor in dimension.items():
                if other != name:
                    yield own / Decimal(factor)


_BOUND = re.compile(
    r"(?i)\b(?P<way>less|fewer|under|below|more|over|above|greater)(?:\sthan)?\s\$?(?P<n>\d+)\b"
)
_RANGE = re.compile(r"(?i)\b(\d+)\s?(?:to|-|\u2013|through|and|until)\s?(\d+)\b")


def bounds(reading: Reading) -> Iterator[tuple[Decimal, Place]]:
    """The whole number next to a bound that is itself left out: "less than 5"."""
    for index, text in enumerate(reading.texts):
        for found in _BOUND.finditer(text):
            step = -1 if found["way"].lower() in ("less", "fewer", "under", "below") else 1
            yield Decimal(int(found["n"]) + step), Place(index, *found.span())


def within_ranges(reading: Reading) -> Iterator[tuple[Decimal, Place]]:
    """The whole numbers between two that are said as a range of at most a hundred."""
    for index, text in enumerate(reading.texts):
        for found in _RANGE.finditer(text):
            first, last = int(found[1]), int(found[2])
            for number in range(first + 1, min(last, first + 100)):
                yield Decimal(number), Place(index, *found.span())


def same(left: Decimal, right: Decimal) -> bool:
    """Equal, but for what a conversion leaves in the ninth digit."""
    return left == right or abs(left - right) <= _TENTHS * max(abs(left), abs(right))


def number(value: object) -> Decimal | None:
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
