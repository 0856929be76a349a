"""Numeric parameters that measure something and do not say in which unit."""

import re
from collections.abc import Iterator

from robustbench_tc.schema import Tool

_SPLIT = re.compile(r"[^\W\d_]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_QUANTITIES = {
    "time": "duration timeout delay interval ttl",
    "money": "price amount cost budget salary fee income revenue",
    "size": "filesize weight mass height width length",
    "distance": "distance radius altitude elevation",
    "temperature": "temperature",
}
_KIND = {word: kind for kind, words in _QUANTITIES.items() for word in words.split()}
_UNITS = frozenset(
    "second seconds sec secs s ms millisecond milliseconds minute minutes min hour hours hr hrs h day days "
    "week weeks month months year years usd eur gbp jpy cny dollar dollars euro euros cent cents currency "
    "byte bytes kb mb gb bit bits kg g gram grams kilogram kilograms pound pounds lb lbs ounce ounces "
    "m meter meters metre metres km kilometer kilometers kilometre kilometres cm mm centimeter centimeters "
    "millimeter millimeters mile miles mi foot feet ft inch inches yard yards liter liters litre litres ml "
    "celsius fahrenheit kelvin c f k degree degrees percent percentage pixel pixels px unit units characters "
    "char chars word words token tokens item items "
    "beat beats night nights share shares number ratio level".split()
)


def missing_units(tool: Tool) -> Iterator[tuple[str, str]]:
    """(parameter, kind of quantity) where neither the name nor the description holds a unit."""
    for name, schema in tool.properties.items():
        if not isinstance(schema, dict) or schema.get("enum") is not None:
            continue
        types = schema.get("type")
        if not {"integer", "number"} & set(types if isinstance(types, list) else [types]):
            continue
        text = schema.get("description")
        named, said = _words(name), _words(text if isinstance(text, str) else "")
        kind = next((_KIND[word] for word in [*named, *said] if word in _KIND), None)
        if kind and not _UNITS & {*named, *said} and not re.search(r"[$€£¥°%]", str(text)):
            yield name, kind


def _words(text: str) -> list[str]:
    return [word.lower() for word in _SPLIT.findall(_CAMEL.sub(" ", text[:5000]))]
