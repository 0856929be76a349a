"""Are a tool's parameters a JSON Schema (2020-12) that ends in itself?"""

from collections.abc import Iterator
from functools import cache, lru_cache
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import unquote

from robustbench_tc.errors import need_extra
from robustbench_tc.schema import Json, dumps, loads

Path: TypeAlias = tuple[str, ...]
"""The keys that lead to a place in a schema."""

_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_FOREIGN = ("$schema", "$id", "$vocabulary", "$anchor", "$dynamicAnchor", "$recursiveAnchor")
"""Keywords that give a schema another address, or another language, than the row says."""

_NAMED = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
"""Keywords whose keys are names, not keywords."""

_VALUES = ("enum", "const", "default", "example", "examples")
DEEPEST = 64
"""Levels of a schema that are looked into."""


class _Keyword(NamedTuple):
    place: Path
    name: str
    value: Json


def invalid(parameters: Json) -> str:
    """What is wrong with the schema, or "". Tools that differ in descriptions only are asked about once."""
    return _invalid(dumps(_undescribed(parameters)))


def _undescribed(schema: Json, depth: int = 0) -> Json:
    """The schema with its descriptions, which may be any text, made empty."""
    if isinstance(schema, dict) and depth < DEEPEST:
        return {
            key: "" if key == "description" and isinstance(value, str) else _undescribed(value, depth + 1)
            for key, value in schema.items()
        }
    return schema


@lru_cache(maxsize=65_536)
def _invalid(text: str) -> str:
    parameters = loads(text)
    try:
        error = None if _valid_in_parts(parameters) else next(_validator().iter_errors(parameters), None)
    except RecursionError:
        return "the schema nests too deep"
    if error is not None:
        place = "/".join(map(str, error.absolute_path))
        return f"not a JSON Schema: {error.validator} at /{place}"
    keywords = list(_keywords(parameters, ()))
    for keyword in keywords:
        if keyword.name in _FOREIGN:
            return f"{keyword.name} in a tool's schema"
        if not isinstance(keyword.value, str) or not keyword.value.startswith("#"):
            return f"a remote {keyword.name}"
    targets = {keyword.place: _target(parameters, keyword.value) for keyword in keywords}
    if None in targets.values():
        return "a $ref that leads nowhere"
    return "a $ref that leads back to itself" if _goes_round(targets) else ""


def _valid_in_parts(schema: Json) -> bool:
    """Whether it is a schema, as the metaschema says, which is asked about each distinct part once.

    It wants of every value of `properties` that it is a schema, and nothing of their names.
    """
    inner = schema.get("properties") if isinstance(schema, dict) else None
    if isinstance(schema, dict) and isinstance(inner, dict):
        return all(map(_valid_in_parts, inner.values())) and _valid_part(dumps({**schema, "properties": {}}))
    return _valid_part(dumps(schema))


@lru_cache(maxsize=65_536)
def _valid_part(text: str) -> bool:
    return next(_validator().iter_errors(loads(text)), None) is None


def _keywords(schema: Json, place: Path) -> Iterator[_Keyword]:
    """Every reference and foreign keyword, where keywords stand."""
    if len(place) > DEEPEST:
        return
    if isinstance(schema, list):
        for index, inner in enumerate(schema):
            yield from _keywords(inner, (*place, str(index)))
    if not isinstance(schema, dict):
        return
    for key, value in schema.items():
        if key in (*_REFERENCES, *_FOREIGN):
            yield _Keyword((*place, key), key, value)
        elif key in _NAMED and isinstance(value, dict):
            for name, inner in value.items():
                yield from _keywords(inner, (*place, key, name))
        elif key not in _VALUES:
            yield from _keywords(value, (*place, key))


def _target(root: Json, pointer: str) -> Path | None:
    """The place that a local reference names; None where nothing stands."""
    parts = unquote(pointer[1:]).split("/")
    if parts[0]:
        return None
    place = tuple(part.replace("~1", "/").replace("~0", "~") for part in parts[1:])
    here = root
    for key in place:
        if isinstance(here, dict) and key in here:
            here = here[key]
        elif isinstance(here, list) and key.isdigit() and int(key) < len(here):
            here = here[int(key)]
        else:
            return None
    return place


def _goes_round(targets: dict[Path, Path | None]) -> bool:
    """Whether following the references inside of what a reference names ever comes back to it."""
    inside = {
        place: [other for other in targets if target is not None and other[: len(target)] == target]
        for place, target in targets.items()
    }
    done: set[Path] = set()

    def back(place: Path, on_the_way: tuple[Path, ...]) -> bool:
        if place in on_the_way:
            return True
        if place in done:
            return False
        found = any(back(other, (*on_the_way, place)) for other in inside[place])
        done.add(place)
        return found

    return any(back(place, ()) for place in targets)


@cache
def _validator() -> Any:
    try:
        from jsonschema import Draft202012Validator
    except ImportError:
        raise need_extra("jsonschema", "audit") from None
    return Draft202012Validator(Draft202012Validator.META_SCHEMA)
