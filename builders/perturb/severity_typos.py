"""Severity, series `typos`: 1, 3 and 8 keyboard slips in the request, by rule.

A slip replaces a letter by its neighbour on the keyboard, swaps two letters, drops one or doubles one. It
never touches a word's first letter, a word that a golden argument has, a name, quoted text, or anything with
a digit in it. No dictionary is asked: a slip can give another English word (`from`, `form`).
"""

import random
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from robustbench_tc.schema import Sample
from robustbench_tc.taxonomy import Rows

from .base import (
    Context,
    Facts,
    NotApplicable,
    Perturbation,
    lost_digits,
    lost_values,
    register,
)
from .query import gold_texts, kept_values, query_span, query_text, replace_span, rewritten
from .registry_flood import name_words

NUMBERS = frozenset(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred "
    "thousand million billion dozen half quarter third double triple once twice first second fourth "
    "fifth sixth seventh eighth ninth tenth".split()
)
NEGATIONS = frozenset(
    "no not never none nor neither nobody nothing nowhere without cannot except unless dont doesnt "
    "didnt isnt arent wasnt werent wont wouldnt shouldnt cant couldnt".split()
)
"""Words of which one letter changes what is asked."""


def telling_words(sample: Sample) -> frozenset[str]:
    """The words that tell a gold tool's name from its siblings': the listed tools that share a word of it."""
    accepted = {call.name for answer in sample.golden_answers for call in answer}
    others = [name_words(tool.name) for tool in sample.tools if tool.name not in accepted]
    found: set[str] = set()
    for words in map(name_words, accepted):
        siblings = [other for other in others if words & other]
        found |= {word for word in words if any(word not in other for other in siblings)}
    return frozenset(found)


_WITH_APOSTROPHE = re.compile(r"[^\W\d_]+(?:['’][a-z]+)?")


def protected(text: str, sample: Sample) -> frozenset[str]:
    """The words of a request, in lower case, that no typing error may touch: number words, negations, and
    what tells the gold tool's name from its siblings'."""
    telling = telling_words(sample)
    plain = {word.lower(): re.sub("['’]", "", word.lower()) for word in _WITH_APOSTROPHE.findall(text)}
    fixed = NUMBERS | NEGATIONS | telling | {f"{word}s" for word in telling}
    return frozenset(word for word, bare in plain.items() if bare in fixed)


_WORD = re.compile(r"(?<![\w'@./\\-])[A-Za-z][a-z]{2,}(?![\w'@/\\]|[.\-]\w|:/)")
"""A word of three letters or more, small but for its first: no part of an address, a path or a compound."""
_QUOTED = re.compile(r"\"[^\"\n]*\"|`[^`\n]*`|(?<!\w)'[^'\n]+'(?!\w)|“[^”\n]*”")
_LETTERS = re.compile(r"([A-Za-z]+)")

NEIGHBOURS: Mapping[str, str] = {
    "q": "wa", "w": "qeas", "e": "wrsd", "r": "etdf", "t": "ryfg", "y": "tugh", "u": "yihj", "i": "uojk",
    "o": "ipkl", "p": "ol", "a": "sqwz", "s": "adwezx", "d": "sferxc", "f": "dgrtcv", "g": "fhtyvb",
    "h": "gjyubn", "j": "hkuinm", "k": "jliom", "l": "kop", "z": "xas", "x": "zcsd", "c": "xvdf", "v": "cbfg",
    "b": "vngh", "n": "bmhj", "m": "njk",
}  # fmt: skip
"""Letter → the letters beside it on a QWERTY keyboard, above and below it too."""


class Word(NamedTuple):
    """A word that may be mistyped."""

    start: int
    end: int
    slips: int
    """How many it takes at most: one, and of eight letters or more one for every four."""


def _is_within_a_word(text: str, start: int, end: int) -> bool:
    beside = text[max(start - 1, 0) : start] + text[end : end + 1]
    return any(one.isalnum() or one == "_" for one in beside)


def _words(sample: Sample) -> tuple[Word, ...]:
    """The words of the request that may be mistyped, in order."""
    text = query_text(sample)
    fixed = protected(text, sample)
    free = free_words(text, gold_texts(sample), kept_values(sample, text))
    return tuple(word for word in free if text[word.start : word.end].lower() not in fixed)


def free_words(text: str, gold: Sequence[str], kept: Sequence[str]) -> tuple[Word, ...]:
    """The words of a text that may be mistyped, in order.

    `gold`: texts of golden arguments, whose words stay; `kept`: those that stand in the text as they are.
    """
    copied = {word.casefold() for value in gold for word in re.findall(r"[^\W\d_]+", value)}
    fixed = [match.span() for match in _QUOTED.finditer(text)]
    for value in filter(None, kept):
        spans = [match.span() for match in re.finditer(re.escape(value), text)]
        if all(_is_within_a_word(text, *span) for span in spans):
            fixed += spans
    found = []
    for match in _WORD.finditer(text):
        start, end = match.span()
        named = match.group()[0].isupper() and not _begins_a_sentence(text, start)
        if named or match.group().casefold() in copied or any(a < end and start < b for a, b in fixed):
            continue
        found.append(Word(start, end, max(1, (end - start) // 4)))
    return tuple(found)


def _begins_a_sentence(text: str, at: int) -> bool:
    """Whether what stands at that place begins the text, a line or a sentence."""
    while at and (text[at - 1].isspace() or text[at - 1] in "\"'("):
        at -= 1
        if text[at] == "\n":
            return True
    return not at or text[at - 1] in ".!?"


class Typos(Perturbation, frozen=True, kw_only=True):
    """So many slips in the request; nothing else changes."""

    slips: int

    def perturb(self, sample: Sample, rng: random.Random, context: Context) -> Sample:
        """Draws the words (each once before one twice), then each word's places and kinds of slips.

        Raises NotApplicable(`too_few_words`) where the request has no room for them.
        """
        text = mistype(query_text(sample), _words(sample), self.slips, rng)
        messages, change = replace_span(sample, query_span(sample), text)
        return self.row(sample, [change], messages=messages)

    def check(self, clean: Sample, row: Sample) -> list[str]:
        """Only words that may be mistyped differ, by `slips` slips in all."""
        before = query_text(clean)
        typed, outside = rewritten(clean, row)
        wrong = self.beyond(clean, row) + outside
        if lost_values(typed, kept_values(clean, before)) or lost_digits(before, typed):
            wrong.append("the query lost a gold value or digits")
        old, new = _LETTERS.split(before), _LETTERS.split(typed)
        if old[::2] != new[::2]:
            return [*wrong, "more than letters changed"]
        slips, at = 0, 0
        free = {word.start: word for word in _words(clean)}
        for one, other in zip(old, new, strict=True):
            if one != other:
                word = free.get(at)
                found = _slips(one, other)
                if word is None or word.end - word.start != len(one) or one[0] != other[0]:
                    wrong.append(f"{one!r} may not be mistyped")
                elif found > word.slips:
                    wrong.append(f"{one!r} is mistyped {found} times")
                slips += found
            at += len(one)
        if slips != self.slips:
            wrong.append(f"{slips} slips instead of {self.slips}")
        return wrong


TYPOS: Facts = {
    "component": "observation",
    "level": "perception",
    "pack": "severity",
    "channel": "query",
    "method": "rule",
    "may_change": ("messages",),
    "ground_truth_changes": False,
    "train_augmentable": True,
    "applies_to": "every source",
    "prior_art": "letters swapped and mistyped in translation (Belinkov and Bisk 2018), not for tool calls",
    "series": "typos",
}


def mistype(text: str, words: Sequence[Word], slips: int, rng: random.Random) -> str:
    """The text with so many slips in these words. Raises NotApplicable where they have no room for them."""
    chosen = rng.sample(words, min(slips, len(words)))
    if len(chosen) < slips:
        again = [word for word in words for _ in range(word.slips - 1)]
        if len(chosen) + len(again) < slips:
            raise NotApplicable("too_few_words")
        chosen += rng.sample(again, slips - len(chosen))
    for word in sorted(set(chosen), reverse=True):
        typed = _mistyped(text[word.start : word.end], chosen.count(word), rng)
        text = text[: word.start] + typed + text[word.end :]
    return text


def _mistyped(word: str, slips: int, rng: random.Random) -> str:
    """The word with so many slips, none of which undoes another."""
    for _ in range(100):
        places = sorted(rng.sample(range(1, len(word)), slips))
        if any(b - a < 2 for a, b in pairwise(places)):
            continue
        typed = word
        for place in reversed(places):
            typed = _slip(typed, place, rng)
        if slips == 1 or _slips(word, typed) == slips:
            return typed
    raise NotApplicable("no_slip_found")


def _slip(word: str, place: int, rng: random.Random) -> str:
    letter, following = word[place], word[place + 1 : place + 2]
    kind = rng.choice(("neighbour", "swap", "drop", "double"))
    if kind == "swap" and following not in ("", letter):
        return word[:place] + following + letter + word[place + 2 :]
    if kind == "drop":
        return word[:place] + word[place + 1 :]
    if kind == "double":
        return word[:place] + letter + word[place:]
    return word[:place] + rng.choice(NEIGHBOURS[letter]) + word[place + 1 :]


def _slips(word: str, typed: str) -> int:
    """The fewest slips that lead from one to the other (letters replaced, swapped, dropped or put in); a
    letter is replaced by its neighbour, and put in beside its like, or it counts as 9."""
    before: list[int] = []
    last = list(range(0, 9 * len(typed) + 1, 9))
    for i, letter in enumerate(word, 1):
        line = [i]
        for j, other in enumerate(typed, 1):
            replaced = last[j - 1] + (
                0 if letter == other else 1 if other in NEIGHBOURS.get(letter, "") else 9
            )
            put_in = line[j - 1] + (1 if letter == other else 9)
            best = min(replaced, put_in, last[j] + 1)
            if i > 1 and j > 1 and letter == typed[j - 2] and word[i - 2] == other:
                best = min(best, before[j - 2] + 1)
            line.append(best)
        before, last = last, line
    return last[-1]


_HOW_MADE = (
    "{slips} by rule in the user's query (API-Bank: the last substantive user turn): a letter becomes its "
    "neighbour on the keyboard, two are swapped, one is dropped or doubled. The first letter of a word, "
    "names, quoted text, digits and every word that a golden argument copies stay. A word takes one slip; "
    "one of eight letters or more takes one for every four."
)


register(
    Typos(
        **TYPOS,
        code="typos_1",
        order=601,
        display_name="Typo-1",
        label="1 typo by rule",
        what_is_modified="The user query gains one keyboard slip by rule; gold values stay as they were.",
        how_made=_HOW_MADE.format(slips="One slip"),
        slips=1,
        dose=1,
        rows=Rows(paper=199, bundled=73, full=2853),
    ),
    Typos(
        **TYPOS,
        code="typos_2",
        order=602,
        display_name="Typo-3",
        label="3 typos by rule",
        what_is_modified="The user query gains three keyboard slips by rule; gold values stay as they were.",
        how_made=_HOW_MADE.format(slips="Three slips"),
        slips=3,
        dose=3,
        rows=Rows(paper=191, bundled=71, full=2757),
    ),
    Typos(
        **TYPOS,
        code="typos_3",
        order=603,
        display_name="Typo-8",
        label="8 typos by rule",
        what_is_modified="The user query gains eight keyboard slips by rule; gold values stay as they were.",
        how_made=_HOW_MADE.format(slips="Eight slips"),
        slips=8,
        dose=8,
        rows=Rows(paper=120, bundled=44, full=1804),
    ),
)
