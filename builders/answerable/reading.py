"""What a reader has in front of him: the texts of a row's messages, their words and numbers with their places.

The classes of a golden value: from where a reader could take it.
"""

import re
import unicodedata
from functools import cached_property
from typing import Literal, NamedTuple, get_args

import msgspec

from robustbench_tc.schema import Sample

from ..plain import Span

_RESULT = re.compile(r"<(obs|tool_call)>.*?</\1>", re.DOTALL)
"""In a transcript: an earlier call, and what it gave."""

_WORD = re.compile(r"[^\W\d_]+|\d+(?:[.,:]\d+)*")
_LATIN = re.compile(r"[0-9A-Za-z\u00c0-\u024f]")


class Word(NamedTuple):
    """A word in small letters without accents, its stem, and where it stands."""

    text: str
    stem: str
    place: Span


class Reading(msgspec.Struct, frozen=True, dict=True):
    """The messages of one row, read once for all its golden values."""

    texts: tuple[str, ...]
    results: tuple[tuple[tuple[int, int], ...], ...]
    """Passages of each message that are an earlier call or its result."""

    @classmethod
    def of_sample(cls, sample: Sample) -> "Reading":
        passages = [
            ((0, len(message.content)),)
            if message.role == "tool"
            else tuple(found.span() for found in _RESULT.finditer(message.content))
            for message in sample.messages
        ]
        # A line break that is spelled out is not a letter of the next word; the places stay.
        return cls(
            tuple(message.content.replace("\\n", "  ") for message in sample.messages), tuple(passages)
        )

    @cached_property
    def words(self) -> tuple[Word, ...]:
        return tuple(
            Word(plain, stem(plain), Span(index, *found.span()))
            for index, text in enumerate(self.texts)
            for found in _WORD.finditer(text)
            for plain in (fold(found.group()),)
        )

    @cached_property
    def stems(self) -> dict[str, Span]:
        """Every stem with the first place where it stands."""
        return {word.stem: word.place for word in reversed(self.words)}

    def earlier(self, place: Span) -> bool:
        """Whether the passage lies in an earlier call or its result."""
        return any(start <= place.start < end for start, end in self.results[place.message])

    def calls_of(self, name: str) -> int:
        """How often the dialogue has called the tool of this name."""
        called = re.compile(rf'<tool_call>\s*{{\s*"name":\s*"{re.escape(name)}"')
        return sum(len(called.findall(text)) for text in self.texts)

    def find(self, text: str) -> Span | None:
        """Where `text` stands as it is, not inside a longer word; what people said before what tools gave."""
        return self._first(text, self.texts)

    def find_any_case(self, text: str) -> Span | None:
        """As `find`, in large or small letters."""
        return self._first(text.lower(), tuple(one.lower() for one in self.texts))

    def find_unit(self, text: str) -> Span | None:
        """Where `text` stands right after a number: the cm of "5cm"."""
        for index, whole in enumerate(self.texts):
            if found := re.search(rf"(?<=\d){re.escape(text)}(?![^\W_])", whole):
                return Span(index, *found.span())
        return None

    def _first(self, text: str, texts: tuple[str, ...]) -> Span | None:
        later = None
        for index, whole in enumerate(texts):
            start = whole.find(text) if text else -1
            while start >= 0:
                place = Span(index, start, start + len(text))
                if _stands_alone(whole, place):
                    if not self.earlier(place):
                        return place
                    later = later or place
                start = whole.find(text, start + 1)
        return later

    def find_words(self, text: str, *, stems: bool = False) -> Span | None:
        """Where the words of `text` stand one after the other, whatever their case and what is between them."""
        wanted = [stem(word) if stems else word for word in split(text)]
        if not wanted:
            return None
        said = [word.stem if stems else word.text for word in self.words]
        for start in range(len(said) - len(wanted) + 1):
            if said[start : start + len(wanted)] == wanted:
                first, last = self.words[start].place, self.words[start + len(wanted) - 1].place
                if first.message == last.message:
                    return Span(first.message, first.start, last.end)
        return None


def _stands_alone(whole: str, place: Span) -> bool:
    """Whether the passage is not part of a longer word or number."""
    before, after = whole[max(0, place.start - 1) : place.start], whole[place.end : place.end + 1]
    first, last = whole[place.start], whole[place.end - 1]
    if place.end - place.start == 1 and before in ("'", "\u2019") and whole[place.start - 2].isalpha():
        return False  # the m of "I'm"
    return not (_joined(before, first) or _joined(last, after))


def _joined(left: str, right: str) -> bool:
    return bool(left and right and _LATIN.match(left) and _LATIN.match(right))


def fold(word: str) -> str:
    """In small letters, without accents."""
    plain = unicodedata.normalize("NFKD", word.lower())
    return "".join(letter for letter in plain if not unicodedata.combining(letter))


def split(text: str) -> list[str]:
    """The words of a text, as `Reading.words` has them; a name in camel case as its parts."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text)
    return [fold(word) for word in _WORD.findall(spaced)]


_ENDINGS = (
    "ically",
    "ation",
    "ical",
    "ings",
    "ing",
    "edly",
    "ies",
    "ied",
    "ion",
    "ers",
    "er",
    "ed",
    "es",
    "ly",
    "al",
    "s",
    "e",
    "y",
)


def stem(word: str) -> str:
    """The word without its ending: one for plural and singular, noun and verb."""
    if len(word) > 4:
        for ending in _ENDINGS:
            if word.endswith(ending) and len(word) - len(ending) >= 3:
                word = word.removesuffix(ending)
                break
    elif len(word) == 4 and word.endswith("s") and not word.endswith("ss"):
        word = word[:-1]
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "ls":
        word = word[:-1]
    return word


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
    place: Span | None = None
    """The passage of the dialogue."""


NOWHERE = Finding("nowhere", "nobody says it, no definition does, and no convention gives it")
