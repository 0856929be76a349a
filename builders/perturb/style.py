"""New tools in the form of the registry that they join, by code.

A model writes schemas in a form of its own, and the form alone would tell a new tool from an original one. So
the registry gives its form, and nothing else: the keys of the schema and their order, the words for types,
and how many parameters are required, as of the tool that the new one stands beside. Names, descriptions and
parameters stay as they were written and judged: none is copied from another tool, none is added, none goes.

Nothing is drawn: the same registry and the same new tool give the same result.
"""

import re
from collections.abc import Sequence
from functools import lru_cache

from robustbench_tc.schema import Json, Tool

_SAID = frozenset(("type", "description"))
"""Keys that every parameter may have."""

_OTHER_NUMBER: dict[str, Json] = {"integer": "number", "number": "integer"}

_SAYING_LITTLE = frozenset(
    "a an the of for to in on at by with from and or this that which is are it its one given tool api get "
    "gets return returns retrieve retrieves list lists find finds".split()
)


def in_form_of(registry: Sequence[Tool], tool: Tool, beside: Tool) -> Tool | None:
    """The new tool in the form of a registry (without control tools), of which `beside` is one.

    None where a parameter has a key that no parameter of the registry has, or one that says more of a type
    than its name, in a type that the registry has not: it could only be reshaped.
    """
    own = [inner for one in registry for inner in one.properties.values() if isinstance(inner, dict)]
    words, keys = [inner.get("type") for inner in own], _SAID.union(*own)
    entries = next((inner["items"] for inner in own if "items" in inner), None)
    properties: dict[str, Json] = {}
    for name, inner in tool.properties.items():
        # The registry's word for a type: itself, the other word for numbers, or a text.
        also = (inner.get("type"), _OTHER_NUMBER.get(str(inner.get("type"))))
        word = next((one for one in also if one is not None and one in words), "string")
        if not (inner.keys() <= keys and (word == inner.get("type") or inner.keys() <= _SAID)):
            return None
        typed = {"type": word} | {key: value for key, value in inner.items() if key != "type"}
        if word == "array" and isinstance(entries, dict) and "items" not in inner:
            typed = {"type": word, "items": {"type": entries.get("type", "string")}} | typed
        properties[name] = typed
    form: dict[str, Json] = {"properties": properties, "required": _required(tool, beside)}
    parameters = {key: form.get(key, value) for key, value in beside.parameters.items()}
    return Tool(tool.name, tool.description, {"type": "object", "properties": properties} | parameters)


def _required(tool: Tool, beside: Tool) -> list[str]:
    """As large a share as of the tool beside it, those first that were written as required."""
    names = list(tool.properties)
    if not beside.properties:
        return list(tool.required)
    number = (2 * len(beside.required) * len(names) + len(beside.properties)) // (2 * len(beside.properties))
    if 0 < len(beside.required) < len(beside.properties) and len(names) > 1:  # some are, and some are not
        number = min(max(number, 1), len(names) - 1)
    first = sorted(names, key=lambda name: name not in tool.required)[:number]
    return [name for name in names if name in first]


def near_duplicates(one: Tool, other: Tool) -> bool:
    """Whether two tools are all but the same: by the words of their names, of their descriptions, or both."""
    if one.name == other.name:
        return True
    names = _shared(_name_words(one.name), _name_words(other.name))
    words = _shared(_description_words(one.description), _description_words(other.description))
    return names >= 100 or words >= 60 or names + words >= 105


def _shared(one: frozenset[str], other: frozenset[str]) -> int:
    """How many in a hundred of the words of either are in both, rounded down."""
    return 100 * len(one & other) // len(one | other) if one and other else 0


@lru_cache(10_000)
def _name_words(name: str) -> frozenset[str]:
    found = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name)
    return frozenset(_singular(word.lower()) for word in found)


@lru_cache(10_000)
def _description_words(text: str) -> frozenset[str]:
    words = re.findall(r"[a-z0-9]+", text.lower())
    return frozenset(_singular(word) for word in words if word not in _SAYING_LITTLE)


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word
