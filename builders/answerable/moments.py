"""A date or time as a golden text or a person writes it."""

import re
from datetime import date
from typing import NamedTuple

MONTHS = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTH = r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)(?![a-z])\.?"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>(?:19|20|1[0-8])\d{2})"
_SEP = r"[-/.\u5e74\u6708\s]\s?"

FORMS = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        r"(?<!\d)(?P<year>20\d\d)(?P<month>0[1-9]|1[0-2])(?P<day>[0-2]\d|3[01])(?!\d)",
        rf"(?<!\d){_YEAR}{_SEP}(?P<month>\d{{1,2}}){_SEP}(?P<day>\d{{1,2}})(?!\d)",
        r"(?<!\d)(?P<month>\d{1,2})[-/.](?P<day>\d{1,2})[-/.](?P<year>\d{4}|\d{2})(?!\d)",
        r"(?<!\d)(?P<day>\d{1,2})[-/.](?P<month>\d{1,2})[-/.](?P<year>\d{4}|\d{2})(?!\d)",
        rf"\b{_MONTH}\s*(?:the\s)?{_DAY}\b(?:,?\s*(?:of\s)?{_YEAR}\b)?",
        rf"\b{_DAY}[\s-]*(?:of\s)?(?:the\s)?{_MONTH}(?:[\s,-]*(?:of\s)?{_YEAR}\b)?",
        rf"\b{_MONTH}[\s,-]*(?:of\s)?(?:the\syear\s)?{_YEAR}\b",
        rf"\b{_YEAR}[\s,-]*{_MONTH}",
        rf"\b{_MONTH}",
        rf"(?<![\d.,$]){_YEAR}(?!\d|[.,]\d)",
        r"(?<!\d)(?P<month>\d{1,2})[-/](?P<day>\d{1,2})(?![\d/-])",
        r"(?<!\d)(?P<day>\d{1,2})[-/](?P<month>\d{1,2})(?![\d/-])",
    )
)


class Moment(NamedTuple):
    """A golden date, as far as it says one."""

    year: int | None = None
    month: int | None = None
    day: int | None = None
    clock: tuple[int, int, int] | None = None


def golden(value: str) -> list[Moment]:
    """Each date or time that a golden text may be, and nothing but that; [] for any other text."""
    text = value.strip().rstrip("Z").strip()
    clock, rest = None, text
    timed = re.search(
        r"(?:^|[T\s,])(\d{1,2}):(\d{2})(?::(\d{2}))?(?:\.\d+)?\s*([ap]\.?m\.?)?(?:\s?(?:[+-]\d\d:?\d\d|UTC))?$",
        text,
        re.IGNORECASE,
    )
    hour = re.fullmatch(r"(\d{1,2})\s*([ap]\.?m\.?)", text, re.IGNORECASE)
    if timed:
        clock = (hour_of(int(timed[1]), timed[4]), int(timed[2]), int(timed[3] or 0))
        rest = text[: timed.start()].strip(" ,T")
    elif hour:
        clock, rest = (hour_of(int(hour[1]), hour[2]), 0, 0), ""
    if not rest:
        return [Moment(clock=clock)] if clock else []
    rest = re.sub(r"(?i)^(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?,?\s", "", rest)
    read = (moment_of(found) for form in FORMS if (found := form.fullmatch(rest)))
    return [moment._replace(clock=clock) for moment in read if moment is not None and moment.month]


def hour_of(hour: int, half: str | None) -> int:
    mark = (half or "").lower()
    mark = (
        "p"
        if mark.endswith(("afternoon", "evening", "night"))
        else "a"
        if mark.endswith("morning")
        else mark[:1]
    )
    if mark == "p" and hour < 12:
        return hour + 12
    return 0 if mark == "a" and hour == 12 else hour


def moment_of(found: re.Match[str]) -> Moment | None:
    parts = found.groupdict()
    year, month, day = parts.get("year"), parts.get("month"), parts.get("day")
    number = None
    if month:
        number = int(month) if month.isdigit() else 1 + [m[:3] for m in MONTHS].index(month.lower()[:3])
    full = int(year) + (2000 if len(year) == 2 else 0) if year else None
    made = Moment(full, number, int(day) if day else None)
    if not 1 <= (made.month or 1) <= 12 or not 1 <= (made.day or 1) <= 31:
        return None
    return made


def date_of(moment: Moment) -> date | None:
    if moment.year is None or moment.month is None or moment.day is None:
        return None
    try:
        return date(moment.year, moment.month, moment.day)
    except ValueError:
        return None
