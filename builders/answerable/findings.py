"""The classes of a golden value: from where a reader could take it."""

from typing import Literal, get_args

import msgspec

from .reading import Place

Kind = Literal[
    "free", "verbatim", "number", "date_time", "tool_result", "schema", "convention", "knowledge", "nowhere"
]

KINDS: tuple[Kind, ...] = get_args(Kind)
"""From the surest to the least sure; a list or object is of the class of its least sure part."""

MEANING: dict[Kind, str] = {
    "free": "any value is accepted, or the parameter may be left out",
    "verbatim": "it stands in the dialogue",
    "number": "a number that is said in words, as a percent or multiple, or that follows from said ones",
    "date_time": "a date or time that is said in another form, or counted from a stated day",
    "tool_result": "it stands in an earlier call or in what it gave",
    "schema": "the definition says it: default, choice, example, yes or no",
    "convention": "another form of what is said: case, plural, unit, code, spelling, order of words",
    "knowledge": "general knowledge about what is said, from a small table",
    "nowhere": "nobody says it, no definition does, no convention gives it",
}


class Finding(msgspec.Struct, frozen=True):
    """The class of one golden value, and what it rests on."""

    kind: Kind
    note: str = ""
    """The rule, or what is missing; never quotes the value (some are credentials)."""
    place: Place | None = None
    """The passage of the dialogue."""


NOWHERE = Finding("nowhere", "nobody says it, no definition does, and no convention gives it")
