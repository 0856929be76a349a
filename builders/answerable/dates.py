"""Dates and times as people write them, and what a reader may conclude from a stated day.

A date or time as a golden text or a person writes it.
"""

import re
from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal
from functools import cached_property
from typing import NamedTuple

import msgspec

from ..plain import Span
from .numbers import ONES
from .reading import Reading

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
    if mark.startswith("p") or mark.endswith(("afternoon", "evening", "night")):
        return hour + 12 if hour < 12 else hour
    return 0 if mark.startswith(("a", "in the morning")) and hour == 12 else hour


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


_CLOCK = re.compile(
    r"(?<![\d:.\w])(?P<hour>\d{1,2})(?:[:.](?P<minute>\d{2}))?(?::(?P<second>\d{2}))?\s*"
    r"(?P<half>[ap]\.?\s?m\b\.?|o'?clock|hours?\b|hrs?\b|h\b|in the (?:morning|afternoon|evening)|at night)?(?![\w:]|\.\d)",
    re.IGNORECASE,
)
_BEFORE_A_TIME = re.compile(
    r"(?i)(?:\b(?:at|from|to|until|till|by|between|and|around|before|after)|-|\u2013)\s?$"
)
_DAYS_AHEAD = {"today": 0, "tonight": 0, "tomorrow": 1, "yesterday": -1, "now": 0, "after": 2}
_NAMED = {"noon": 12, "midday": 12, "midnight": 0}
_TODAY = re.compile(
    r"(?i)(?:today(?:'s date)?|tonight|current date|the date|date today|now)(?:\s+is|\s+was|:|,|\s+\()+\s*(?:\w+day,?\s)?"
    r"|GetToday\D*?<obs>\s*\W*|get_today_date\D*?<obs>\s*\W*"
)
_DURATION = re.compile(
    r"(?i)\b(?P<n>\d{1,6}(?:\.\d{1,6})?|an?|one|two|three|four|five|six|half an)[\s-]*(?P<unit>hour|hr|minute|min)"
)
_COUNTED = {"a": 1.0, "an": 1.0, "half an": 0.5}
_STAY = re.compile(r"(?i)\b(?P<n>\d+|\w+)[\s-](?P<unit>day|night|week)s?\b")
_AGO = re.compile(
    r"(?i)\b(?P<n>\d+|\w+)\s(?P<unit>day|week|month|year)s?\s(?P<way>ago|later|from now|before|after|earlier|from today)"
)
_SPAN = re.compile(
    r"(?i)\b(?P<way>past|last|next|this|coming|in|for|within)\s(?:the\s)?(?:(?:past|last|next)\s)?(?P<n>\d+\s|\w+\s)?(?P<unit>day|week|month|year|weekend)s?\b"
)


class Evidence(msgspec.Struct, frozen=True):
    """Where a date could be taken from, or (`place` None) what is missing."""

    note: str
    place: Span | None = None


class Calendar(msgspec.Struct, frozen=True, dict=True):
    """The dates and times of a dialogue."""

    reading: Reading

    @cached_property
    def written_dates(self) -> tuple[tuple[Moment, Span], ...]:
        """Every date as it is written; one that can be read two ways, both ways."""
        return tuple(
            (moment, Span(index, *match.span()))
            for index, text in enumerate(self.reading.texts)
            for form in FORMS
            for match in form.finditer(text)
            if (moment := moment_of(match)) is not None
        )

    @cached_property
    def today(self) -> tuple[date, Span] | None:
        """The day that the dialogue states as its own."""
        for index, text in enumerate(self.reading.texts):
            for match in _TODAY.finditer(text):
                for moment, place in self.written_dates:
                    near = place.message == index and match.end() <= place.start <= match.end() + 3
                    if near and (day := date_of(moment)):
                        return day, place
        return None

    @cached_property
    def clocks(self) -> tuple[tuple[int, int, int, Span], ...]:
        """Every time of day; one without am or pm also twelve hours later."""
        found = []
        for index, text in enumerate(self.reading.texts):
            for match in _CLOCK.finditer(text):
                hour, minute, second = (int(match[part] or 0) for part in ("hour", "minute", "second"))
                bare = not (match["half"] or match["minute"])
                if hour > 24 or minute > 59 or (bare and not _BEFORE_A_TIME.search(text[: match.start()])):
                    continue
                place = Span(index, *match.span())
                plain = hour_of(hour, match["half"])
                found.append((plain % 24, minute, second, place))
                if not match["half"] and hour <= 12:
                    found.append(((hour + 12) % 24, minute, second, place))
        named = ((_NAMED[word.text], 0, 0, word.place) for word in self.reading.words if word.text in _NAMED)
        return (*found, *named)

    def find(self, moment: Moment) -> Evidence:
        """Where the day and the time of `moment` could be taken from."""
        day = self._day(moment) if moment.month else Evidence("time of day")  # a golden date names a month
        if (day.place is None and day.note != "time of day") or moment.clock is None:
            return day
        clock = self._clock(moment.clock, day.place)
        if clock.place is None:
            return clock
        return Evidence("; ".join(dict.fromkeys((day.note, clock.note))), day.place or clock.place)

    def _clock(self, clock: tuple[int, int, int], day: Span | None) -> Evidence:
        for *said, place in self.clocks:
            if tuple(said) == clock:
                return Evidence("time of day", place)
        if clock in ((0, 0, 0), (23, 59, 59), (23, 59, 0)) and day is not None:
            return Evidence("a whole day", day)
        starts = {hour * 60 + minute for hour, minute, _, _ in self.clocks}
        for index, text in enumerate(self.reading.texts):
            for match in _DURATION.finditer(text):
                n = match["n"].lower()
                count = _COUNTED.get(n) or ONES.get(n) or float(n)
                minutes = int(count * (60 if match["unit"].lower().startswith("h") else 1))
                if any((start + minutes) % 1440 == clock[0] * 60 + clock[1] for start in starts):
                    return Evidence("start and duration", Span(index, *match.span()))
        return Evidence("nobody says this time of day")

    def _day(self, moment: Moment) -> Evidence:
        partial = None
        for said, place in self.written_dates:
            if said[:3] == moment[:3]:
                return Evidence("date", place)
            if said[1:3] == moment[1:3] and said.year is None:
                partial = partial or place
        for day, note, place in self.relative:
            if (day.month, day.day) == moment[1:3] and moment.year in (None, day.year):
                return Evidence(note, place)
        if partial is not None and moment.year is not None:
            return self._year(moment.year, partial)
        return self._near(moment)

    def _near(self, moment: Moment) -> Evidence:
        """Parts of the date from two mentions: an end of a month or year, a range within one, a year apart."""
        of_year = [(said, place) for said, place in self.written_dates if said.year == moment.year]
        for said, place in of_year:
            whole_year = said.month is None and moment.month == 1
            if said.day is None and moment.day == 1 and (said.month == moment.month or whole_year):
                return Evidence("first day of a named month or year", place)
            if said.day is None and (moment.day or 0) >= 28 and said.month in (moment.month, None):
                return Evidence("last day of a named month or year", place)
        months = [place for said, place in self.written_dates if said.month == moment.month]
        numbers = {int(word.text) for word in self.reading.words if re.fullmatch(r"[0-9]{1,2}", word.text)}
        if moment.day in numbers and months and (of_year or moment.year is None):
            return Evidence("day, month and year said apart", months[0])
        if moment.day and self.today is None:
            return Evidence("nobody says this date, and no day is stated to count from")
        return Evidence("nobody says this date")

    def _year(self, year: int, place: Span) -> Evidence:
        """A day and month are said without the year: it may be said elsewhere."""
        if self.today is not None and year - self.today[0].year in (0, 1):
            return Evidence("year of the stated day", place)
        if any(said.year == year and said.month for said, _ in self.written_dates):
            return Evidence("year of the dialogue's other dates", place)
        if any(said.year == year for said, _ in self.written_dates):
            return Evidence("date, year said apart", place)
        return Evidence("the year is not said: it would have to be guessed")

    @cached_property
    def relative(self) -> tuple[tuple[date, str, Span], ...]:
        """The days that are named by their distance from the stated day, or from a day that is said."""
        anchors = dict.fromkeys(day for said, _ in self.written_dates if (day := date_of(said)))
        found = list(self._words_from(self.today[0])) if self.today else []
        for day in [*([self.today[0]] if self.today else []), *anchors][:4]:
            found += self._spans_from(day)
        return tuple(found)

    def month(self, number: Decimal) -> Span | None:
        """Where a date of this month stands."""
        return next((place for said, place in self.written_dates if said.month == number), None)

    @cached_property
    def differences(self) -> tuple[tuple[Decimal, Span], ...]:
        """The days between two days, and hours, minutes, seconds between two times, and each hour, as numbers."""
        found: list[tuple[Decimal, Span]] = []
        dated = [
            (said if said.year else said._replace(year=2024), place) for said, place in self.written_dates
        ]
        days = [(day, place) for said, place in dated if (day := date_of(said))]
        for one, place in days[:8]:
            for other, _ in days[:8]:
                apart = (
                    (other.replace(year=one.year) - one).days if (other.month, other.day) != (2, 29) else 0
                )
                found += [(Decimal(many), place) for many in ((other - one).days, apart) if many > 0]
        clocks = [(h * 3600 + m * 60 + s, place) for h, m, s, place in self.clocks]
        for first, place in clocks[:8]:
            found.append((Decimal(first // 3600), place))
            for later, _ in clocks[:8]:
                found += [(Decimal(later - first) / unit, place) for unit in (1, 60, 3600) if later > first]
        return tuple(found)

    def _words_from(self, today: date) -> Iterator[tuple[date, str, Span]]:
        note = "counted from the stated day"
        for word in self.reading.words:
            if word.text in _DAYS_AHEAD:
                yield today + timedelta(_DAYS_AHEAD[word.text]), note, word.place
            if word.text in WEEKDAYS:
                ahead = (WEEKDAYS.index(word.text) - today.weekday()) % 7
                for days in (ahead, ahead + 7, ahead - 7, 7 - today.weekday() + WEEKDAYS.index(word.text)):
                    yield today + timedelta(days), note, word.place

    def _spans_from(self, today: date) -> Iterator[tuple[date, str, Span]]:
        note = "counted from a stated day"
        for index, text in enumerate(self.reading.texts):
            for form in (_AGO, _SPAN, _STAY):
                for match in form.finditer(text):
                    n = _count((match["n"] or "1").strip().lower())
                    if n is None or n > 100:
                        continue
                    for day in _shifted(today, n, match["unit"].lower()):
                        yield day, note, Span(index, *match.span())


def _count(word: str) -> int | None:
    if re.fullmatch(r"[0-9]{1,5}", word):
        return int(word)
    return ONES.get(word, 1 if word in ("a", "an", "the", "last", "next", "past", "") else None)


def _shifted(today: date, n: int, unit: str) -> Iterator[date]:
    """The days that many units before and after, the first and last ones of such a span too."""
    days = {"day": 1, "night": 1, "week": 7, "weekend": 7}.get(unit)
    for way in (1, -1):
        if days:
            for off in (0, -1, 1):
                yield today + timedelta(way * (n * days + off))
            if unit not in ("day", "night"):
                monday = today + timedelta(way * n * days - today.weekday())
                yield from (monday, monday + timedelta(5), monday + timedelta(6))
        else:
            months = today.year * 12 + today.month - 1 + way * n * (12 if unit == "year" else 1)
            for day in (today.day, today.day - 1, 1):
                try:
                    yield date(months // 12, months % 12 + 1, day)
                except ValueError:
                    yield date(months // 12, months % 12 + 1, 28)
