"""What an argument has to be: a plain value, or an object that says how to compare.

    {any: true}                       there, and not null
    {exact: value}                    the plain value, whatever it looks like
    {number: 19.9, tolerance: 0.01}   at most so far away, the edge included
    {date: 2026-11-21}                that day, as an ISO date or date-time or in the schema's `format`
    {set: [a, b]}                     a list without order, duplicates count once
    {one_of: [a, b]}                  one of these
    {regex: broken}                   a text in which the pattern is found

Each may have `optional: true`: the argument may be absent. Matchers stand at every depth. Any other object
is a plain value. Plain values compare by JSON type, texts after Unicode NFC and without outer blanks.
"""

import math
import re
import unicodedata
from collections.abc import Callable, Sequence
from fractions import Fraction

from robustbench_tc.schema import Json, dumps

from . import dates, pattern_examples, subschemas
from .patterns import found_in

MATCHERS = frozenset({"any", "exact", "number", "date", "set", "one_of", "regex"})
BESIDE = frozenset({"tolerance", "optional"})

_DECIMAL = re.compile(r"[+-]?(?:0|[1-9][0-9]{0,399})(?:\.[0-9]{1,400})?(?:[eE][+-]?[0-9]{1,3})?")


def kind(expected: Json) -> str | None:
    """Which matcher it is; None for a plain value."""
    if not isinstance(expected, dict) or not expected.keys() <= MATCHERS | BESIDE:
        return None
    found = expected.keys() & MATCHERS
    return next(iter(found)) if len(found) == 1 else None


def may_be_absent(expected: Json) -> bool:
    """Whether the argument may be left out: a plain null, or an optional matcher."""
    if expected is None:
        return True
    which = kind(expected)
    if which is None:
        return False
    if expected.get("optional") is True:
        return True
    return which == "one_of" and any(map(may_be_absent, _list(expected["one_of"])))


def matches(value: Json, expected: Json, schema: Json, root: Json = None) -> bool:
    """Whether an argument is what is expected of it.

    `schema` is the parameter's own, `root` the tool's, in which references are looked up (without it they say
    nothing). A matcher that cannot be used (`problem`) accepts nothing.
    """
    which = kind(expected)
    if which is None:
        return _equal(value, expected, schema, root, matches)
    stated = expected[which]
    match which:
        case "any":
            return value is not None and stated is True
        case "exact":
            return _plain(value, stated, schema, root)
        case "number":
            if isinstance(value, str) and not _is_numeric(schema, root):
                return False
            number, wanted, tolerance = map(_number, (value, stated, expected.get("tolerance", 0)))
            return None not in (number, wanted, tolerance) and abs(number - wanted) <= tolerance  # type: ignore[operator]
        case "date":
            if not isinstance(value, str) or not isinstance(stated, str):
                return False
            day = dates.day_of(value, subschemas.stated(schema, "format", root))
            return day is not None and day == dates.day_of(stated)
        case "set":
            return isinstance(value, list | tuple) and _same_set(value, _list(stated), schema, root)
        case "one_of":
            return any(matches(value, one, schema, root) for one in _list(stated))
        case _:
            return isinstance(value, str) and isinstance(stated, str) and found_in(stated, value)


# --- plain values -------------------------------------------------------------------------------------


def _plain(value: Json, expected: Json, schema: Json, root: Json) -> bool:
    """The same where nothing in `expected` is a matcher."""
    return _equal(value, expected, schema, root, _plain)


def _equal(
    value: Json, expected: Json, schema: Json, root: Json, inner: Callable[[Json, Json, Json, Json], bool]
) -> bool:
    """Equality of plain values; `inner` compares what lies in them."""
    # Loops, not generators: a case may be 200 deep, and each would be one more frame at every depth.
    if isinstance(expected, dict):
        if not isinstance(value, dict) or not value.keys() <= expected.keys():
            return False
        for key, one in expected.items():
            if key not in value:
                if not (may_be_absent(one) if inner is matches else one is None):
                    return False
            elif not inner(value[key], one, subschemas.property_of(schema, key, root), root):
                return False
        return True
    if isinstance(expected, list | tuple):
        if not isinstance(value, list | tuple) or len(value) != len(expected):
            return False
        for place, one in enumerate(expected):
            if not inner(value[place], one, subschemas.item_of(schema, place, root), root):
                return False
        return True
    return _scalars_equal(value, expected, schema, root)


def _scalars_equal(value: Json, expected: Json, schema: Json, root: Json) -> bool:
    if expected is None or isinstance(expected, bool) or isinstance(value, bool):
        return value is expected
    if isinstance(value, str) and isinstance(expected, str) and _text(value) == _text(expected):
        return True
    if (isinstance(value, str) or isinstance(expected, str)) and not _is_numeric(schema, root):
        return False
    number = _number(value)
    return number is not None and number == _number(expected)


def _text(text: str) -> str:
    return unicodedata.normalize("NFC", text).strip()


def _number(value: Json) -> Fraction | None:
    """A number, or a text that is one, exactly as it is written; None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return Fraction(value)
    if isinstance(value, float):
        return Fraction(repr(value)) if math.isfinite(value) else None
    if isinstance(value, str) and len(value) <= 1_000 and _DECIMAL.fullmatch(value.strip()):
        return Fraction(value.strip())
    return None


def _is_numeric(schema: Json, root: Json) -> bool:
    return not subschemas.types(schema, root).isdisjoint({"number", "integer"})


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def _same_set(value: Sequence[Json], wanted: list[Json], schema: Json, root: Json) -> bool:
    """Whether the items of a list are those that are wanted, in any order and any number."""
    # Without exact repeats: a model may repeat an item any number of times.
    items = {(type(one), one) if isinstance(one, str | int) else id(one): one for one in value}.values()
    item = subschemas.item_of(schema, 0, root)
    met: set[int] = set()
    for one in items:
        # Each pair is compared once: twice at every depth would be 2^depth times in all.
        fits = {place for place, other in enumerate(wanted) if matches(one, other, item, root)}
        if not fits:
            return False
        met |= fits
    return all(place in met or may_be_absent(one) for place, one in enumerate(wanted))


# --- what a user wrote --------------------------------------------------------------------------------


def problem(expected: Json) -> str | None:
    """Why what a case expects cannot be used, in one phrase; None where it can."""
    which = kind(expected)
    if which is None:
        return _problem_of_plain(expected)
    if not isinstance(expected.get("optional", False), bool):
        return "optional must be true or false"
    if "tolerance" in expected and which != "number":
        return f"tolerance goes with number, not with {which}"
    stated = expected[which]
    if which == "any":
        return None if stated is True else "any must be true"
    if which == "exact":
        return _not_finite(stated)
    if which == "number":
        if not _is_number(stated):
            return "number must be a number"
        tolerance = expected.get("tolerance", 0)
        return None if _is_number(tolerance) and tolerance >= 0 else "tolerance must be a number from 0"
    if which == "date":
        iso = isinstance(stated, str) and len(stated.strip()) == 10 and dates.day_of(stated)
        return None if iso else "date must be an ISO date such as 2026-11-21"
    if which == "regex":
        return _problem_of_regex(stated)
    if not isinstance(stated, list) or (which == "one_of" and not stated):
        return f"{which} must be a list" + (" that is not empty" if which == "one_of" else "")
    return next((f"{which}: {found}" for one in stated if (found := problem(one))), None)


def _problem_of_regex(pattern: Json) -> str | None:
    if not isinstance(pattern, str):
        return "regex must be a text"
    try:
        found = pattern_examples.example(pattern)
    except ValueError as error:
        return f"regex {pattern[:60]!r} {error}"
    return None if found is not None else f"regex {pattern[:60]!r} is found in no text that was tried"


def _problem_of_plain(expected: Json) -> str | None:
    if isinstance(expected, list | tuple):
        if any(kind(one) is not None and one.get("optional") is True for one in expected):
            return "optional means nothing inside a list: its items are counted; use set or one_of"
        return next((found for one in expected if (found := problem(one))), None)
    if isinstance(expected, dict):
        return next((found for one in expected.values() if (found := problem(one))), None)
    return _not_finite(expected)


def _not_finite(value: Json) -> str | None:
    """The same of a value in which nothing is a matcher."""
    try:
        dumps(value)
    except ValueError:
        return "a number must be finite"
    return None


def _is_number(value: Json) -> bool:
    return not isinstance(value, str) and _number(value) is not None


# --- a value that fits --------------------------------------------------------------------------------

SAMPLES: dict[str, Json] = {
    "string": "anything",
    "integer": 1,
    "number": 1.5,
    "boolean": True,
    "array": [],
    "object": {},
    "null": None,
}
"""A value where any is right, by declared type."""


def example(expected: Json, schema: Json, root: Json = None) -> Json:
    """A value that `matches` accepts; `expected` is one that can be used."""
    which = kind(expected)
    if which is None:
        if isinstance(expected, dict):
            return {
                key: example(one, subschemas.property_of(schema, key, root), root)
                for key, one in expected.items()
            }
        if isinstance(expected, list | tuple):
            items = enumerate(expected)
            return [example(one, subschemas.item_of(schema, at, root), root) for at, one in items]
        return expected
    stated = expected[which]
    if which == "any":
        return _anything(schema, root)
    if which == "date":
        day = dates.day_of(stated)
        return stated if day is None else dates.as_written(day, subschemas.stated(schema, "format", root))
    if which == "set":
        item = subschemas.item_of(schema, 0, root)
        return [example(one, item, root) for one in stated]
    if which == "one_of":
        return example(stated[0], schema, root)
    if which == "regex":
        return _text_that_matches(stated, schema, root)
    return stated


def _anything(schema: Json, root: Json) -> Json:
    choices = subschemas.stated(schema, "enum", root)
    known = choices if isinstance(choices, list) else [subschemas.stated(schema, "const", root)]
    for choice in known:
        if choice is not None:
            return choice
    words = subschemas.types(schema, root)
    return next((sample for word, sample in SAMPLES.items() if word in words), "anything")


def _text_that_matches(pattern: str, schema: Json, root: Json) -> Json:
    choices = subschemas.stated(schema, "enum", root)
    for choice in choices if isinstance(choices, list) else []:
        if isinstance(choice, str) and found_in(pattern, choice):
            return choice
    return pattern_examples.example(pattern) or ""
