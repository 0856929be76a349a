"""Whether a reply answers what the user asked: gold's values stand in it, and no other record's.

    answers = ({"title": ["Design critique"]}, {"event_id": ["E-5123"]})      # one or the other
    answered("You are invited to the Design critique.", answers, results, said)

A record is an object of a result; its fields are the values that are no objects. Numbers may be rounded to
the decimals that the reply gives, dates and times of day may be spelled as people do. A record that is copied
out as JSON is no answer.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from typing import Any

Json = Any
Answers = Sequence[Mapping[str, Sequence[Json]]]

_NUMBER = re.compile(r"(?<![\w.:-])-?[0-9][0-9,]*(?:\.[0-9]+)?(?![0-9]|:[0-9]|-[0-9])")
_TIME = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "june?", "july?", "aug", "sept?", "oct", "nov", "dec")
_PASTED = 3
"""Copying out a record of so many fields with their names is no answer."""


def answered(reply: str, answers: Answers, results: Iterable[str], said: str) -> bool:
    """Whether all values of one of `answers` stand in the reply, and none that a record of the results has
    in the same field and the answer's own record has not. Values that the user said do not count against it.
    """
    fields = {field for one in answers for field in one}
    wanted = [(field, value) for one in answers for field, values in one.items() for value in values]
    found = [record for text in results for record in records(text)]
    own = [value for _, value in wanted]
    own += [v for record in found if any(pair in wanted for pair in pairs(record)) for _, v in pairs(record)]
    others = [v for record in found for field, v in pairs(record) if field in fields and v not in own]
    wrong = [
        one
        for one in others
        if stands_in(one, reply) and not any(stands_in(one, str(text)) for text in (said, *own))
    ]
    right = any(all(stands_in(v, reply) for values in one.values() for v in values) for one in answers)
    pasted = [_bare(json.dumps(record)) for record in found if len(record) >= _PASTED]
    return right and not wrong and not any(one in _bare(reply) for one in pasted)


def records(text: str) -> Iterator[dict[str, Json]]:
    """Every object of a result, outer ones first; none of a result that is not JSON."""
    try:
        left = [json.loads(text)]
    except (ValueError, RecursionError):
        return
    while left:
        one = left.pop()
        if isinstance(one, dict):
            yield one
            left += one.values()
        elif isinstance(one, list):
            left += one


def pairs(record: Mapping[str, Json]) -> Iterator[tuple[str, Json]]:
    """A record's fields with their texts and numbers; a list of them is several of one field."""
    for field, value in record.items():
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, str | int | float) and not isinstance(one, bool) and one != "":
                yield field, one


def stands_in(value: Json, text: str) -> bool:
    """Whether a text or number stands in a text, spelled as people do."""
    if isinstance(value, int | float):
        return any(_is_rounded(value, match[0].replace(",", "")) for match in _NUMBER.finditer(text))
    spelled = rf"(?<![\w:])(?<![a-z]-)(?:{_spelled(value.strip())})(?!\w)"
    return re.search(spelled, text, re.IGNORECASE) is not None


def _is_rounded(value: float, said: str) -> bool:
    decimals = len(said.partition(".")[2])
    return float(said) == value or (decimals > 0 and float(said) == round(value, decimals))


def _spelled(value: str) -> str:
    """A pattern of a text's spellings: of a time of day, of an ISO date, else of its words, singular or
    plural."""
    if match := _TIME.fullmatch(value):
        hour, minute = int(match[1]), match[2]
        minutes, half = rf"[:.]{minute}", "ap"[hour >= 12]
        short = rf"(?:{minutes}){'?' * (minute == '00')}"
        twelve = rf"0?{hour % 12 or 12}{short}\s?{half}\.?m"
        return rf"0?{hour}{minutes}(?!\s?[ap]\.?m)|{twelve}"
    try:
        day = date.fromisoformat(value)
    except ValueError:
        return r"\s+".join(map(re.escape, value.split())) + "(?:e?s)?"
    month = rf"{_MONTHS[day.month - 1]}[a-z]*\.?"
    number = rf"0?{day.day}(?:st|nd|rd|th)?"
    return rf"{re.escape(value)}|{number} (?:of )?{month}|{month} {number}"


def _bare(text: str) -> str:
    """A text's letters and digits alone: JSON is the same however it is laid out."""
    return re.sub(r"[\W_]+", "", text).casefold()
