"""Words that are numbers or multiply them, and units with their factors."""

from collections.abc import Iterator
from decimal import Decimal

ONES = {
    **{"zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8},
    **{"nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15},
    **{"sixteen": 16, "seventeen": 17, "eighteen": 18, "nineteen": 19, "twenty": 20, "thirty": 30},
    **{"forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90},
}
ORDINALS: dict[str, int | str] = {
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
_SPELLINGS = """\
mm millimeter
cm centimeter
m meter metre
km kilometer kilometre kms
inch inches in
ft feet foot
mile miles
nm nanometer
um μm µm
s second sec
min minute mins
h hour hr hrs
day days nights night
week weeks
month months
year years yrs yr
mg milligram milligrams
g gram
kg kilogram kilo kilograms
t ton tonne tesla
lb pound lbs
mb megabyte
gb gigabyte
w watt
kw kilowatt
mw megawatt
hz hertz
v volt
mv millivolt
uc microcoulomb μc µc
c coulomb
j joule
kj kilojoule
atm atmosphere
l litre liter
ml milliliter
quarter quarters
decade decades
uf microfarad μf µf
henry henries
"""
"""A unit a line, and how else it is spelled."""

SPELLED = {other: unit for unit, *others in map(str.split, _SPELLINGS.splitlines()) for other in others}
"""Spelling → unit."""


def factors(unit: str) -> Iterator[Decimal]:
    """By what a number with this unit is multiplied in the other units of its dimension."""
    name = SPELLED.get(unit) or SPELLED.get(unit.removesuffix("s"), unit)
    for dimension in _DIMENSIONS:
        if name in dimension:
            own = Decimal(dimension[name])
            for other, factor in dimension.items():
                if other != name:
                    yield own / Decimal(factor)
