"""A name or a text as its words; and whether a number needs a unit that its parameter does not say."""

import re

from robustbench_tc.schema import Json

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_a-zA-Z]+|\d+")


def words_of(text: str) -> frozenset[str]:
    """Its distinct words in small letters; `getOrder_byId` has get, order, by and id."""
    return frozenset(word.casefold() for word in _WORD.findall(text))


_MEASURED = frozenset(
    "timeout duration delay interval ttl elapsed lifetime deadline uptime "  # time
    "price amount cost budget fee salary income payment balance revenue rent wage "  # money
    "size length width height weight depth thickness volume capacity mass "  # size
    "distance radius altitude elevation mileage "  # distance
    "temperature temp".split()
)
"""Words of a parameter's name that ask for a unit."""

_COUNTED = frozenset("page batch sample font pool window list array chunk".split())
"""Words beside `size` and `length` that make it a count."""

_UNITS = frozenset(
    "s sec secs second seconds ms millisecond milliseconds us microseconds ns min mins minute minutes h "
    "hr hrs hour hours day days week weeks month months year years epoch unix timestamp "
    "usd eur gbp jpy cny inr chf euro euros dollar dollars cent cents pound pounds yen yuan rupees currency "
    "byte bytes kb mb gb tb kib mib gib bit bits px pixel pixels pt "
    "m cm mm km meter meters metre metres centimeter centimeters centimetres kilometer kilometers kilometres "
    "mile miles foot feet ft inch inches in yard yards "
    "g kg mg gram grams kilogram kilograms lb lbs ounce ounces oz ton tons tonnes "
    "l ml liter liters litre litres gallon gallons "
    "celsius fahrenheit kelvin degree degrees c f k percent percentage ratio fraction rate unit units "
    "character characters letters words tokens items rows elements count number".split()
)
_SIGNS = re.compile(r"[%$€£¥°]")


def lacks_unit(name: str, schema: dict[str, Json]) -> bool:
    """Whether a numeric parameter is of time, money, size, distance or temperature, and no unit is named."""
    types = schema.get("type")
    words = types if isinstance(types, list) else [types]
    if not {"integer", "number"} & {word for word in words if isinstance(word, str)}:
        return False
    named = words_of(name)
    if not named & _MEASURED or named & _COUNTED:
        return False
    said = str(schema.get("description") or "")
    if "enum" in schema or "const" in schema or _SIGNS.search(said):
        return False
    return not ((named - _MEASURED) | words_of(said)) & _UNITS
