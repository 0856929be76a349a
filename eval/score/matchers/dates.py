"""Days as an argument may write them: ISO 8601, or as the parameter's `format` says."""

import re
from datetime import date

_ISO = re.compile(
    r"([0-9]{4})-?([0-9]{2})-?([0-9]{2})"
    r"(?:[Tt ]([0-9]{2})(?::?([0-9]{2})(?::?([0-9]{2})(?:[.,][0-9]{1,9})?)?)?"
    r" ?(?:[Zz]|[+-][0-9]{2}(?::?[0-9]{2})?)?)?"
)

_WORDS = {
    "%Y": "year", "%m": "month", "%d": "day", "YYYY": "year", "yyyy": "year", "MM": "month", "mm": "month",
    "DD": "day", "dd": "day",
}  # fmt: skip
_PLACES = re.compile("|".join(_WORDS))
_DIGITS = {"year": 4, "month": 2, "day": 2}


def day_of(text: str, written: object = None) -> date | None:
    """The day that a text names, as an ISO date or date-time, or in the order of a schema's `format`
    (`DD.MM.YYYY`, `%d/%m/%Y`). The day of a date-time is the one that is written, whatever its offset."""
    text = text.strip()
    if len(text) > 64:
        return None
    if iso := _ISO.fullmatch(text):
        hour, minute, second = (int(part or 0) for part in iso.groups()[3:])
        if hour > 24 or minute > 59 or second > 60:
            return None
        return _date(*map(int, iso.groups()[:3]))
    parts = _PLACES.findall(written) if is_order(written) and isinstance(written, str) else []
    if not parts:
        return None
    between = [re.escape(one) for one in _PLACES.split(str(written))]
    groups = [f"([0-9]{{{_DIGITS[_WORDS[part]]}}})" for part in parts]
    found = re.fullmatch("".join(a + b for a, b in zip(between, [*groups, ""], strict=True)), text)
    if found is None:
        return None
    read = {_WORDS[part]: int(digits) for part, digits in zip(parts, found.groups(), strict=True)}
    return _date(read["year"], read["month"], read["day"])


def is_order(written: object) -> bool:
    """Whether a `format` says in which order year, month and day stand."""
    if not isinstance(written, str) or len(written) > 40:
        return False
    return sorted(_WORDS[part] for part in _PLACES.findall(written)) == ["day", "month", "year"]


def as_written(day: date, written: object) -> str:
    """The day as a schema's `format` wants it; the ISO date where it says nothing."""
    if written == "date-time":
        return f"{day.isoformat()}T00:00:00Z"
    if not is_order(written):
        return day.isoformat()
    values = {"year": f"{day.year:04}", "month": f"{day.month:02}", "day": f"{day.day:02}"}
    return _PLACES.sub(lambda part: values[_WORDS[part[0]]], str(written))


def _date(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None
