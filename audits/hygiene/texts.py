"""The texts of a value, what the rules find in one, and whether that was reviewed. Each is looked at once."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from robustbench_tc.schema import Json

from . import characters
from .prose import instructions, markup, remarks
from .reviewed import fingerprint, reviewed
from .secrets import Match, guesses, personal, tokens

NUMBER = 9
"""Digits from which a number is a text too: it may be somebody's."""

DEEPEST = 64
"""Levels that are looked into; `hygiene.length` fails long before."""

_SECRET_NAME = re.compile(
    r"pass(?:word|wd|code|phrase)?\b|secret|token\b|api ?key|access ?key|private ?key|credential|\bauth\b"
)
_HOLDS_A_VALUE = ("default", "const", "enum", "example", "examples")


class Leaf(NamedTuple):
    """A text, and where a name beside it says that it is a secret, that name."""

    text: str
    secret: str = ""


def leaves(value: Json, secret: str = "", depth: int = 0) -> Iterator[Leaf]:
    """Keys and strings of a value, and its long numbers.

    `secret` is the name of the field or parameter that holds the value, if it is called like one.
    """
    if isinstance(value, str):
        yield Leaf(value, secret)
    elif isinstance(value, dict) and depth < DEEPEST:
        for key, inner in value.items():
            yield Leaf(str(key))
            # A parameter's schema holds its value under one of a few keys; its description is prose.
            passed_on = secret if secret and key in _HOLDS_A_VALUE else ""
            yield from leaves(inner, _secret_name(str(key)) or passed_on, depth + 1)
    elif isinstance(value, list | tuple) and depth < DEEPEST:
        for inner in value:
            yield from leaves(inner, secret, depth + 1)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        text = str(value)
        if sum(char.isdigit() for char in text) >= NUMBER:
            yield Leaf(text, secret)


@lru_cache(maxsize=65_536)
def _secret_name(name: str) -> str:
    """`aws_secretAccessKey` as words, if it names a secret; else ""."""
    words = re.sub(r"[_\-.\s]+", " ", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name[:200])).strip().lower()
    return words if _SECRET_NAME.search(words) else ""


# --- rules --------------------------------------------------------------------------------------------


class Rule(NamedTuple):
    """A check of the gate, `hygiene.NAME`."""

    protects: str
    find: Callable[[str], Iterator[str]]
    """What it finds in a text, each said so that it may be printed; the same thing twice is said twice."""


RULES = {
    "control_characters": Rule(
        "A control character moves a terminal's cursor, ends a line or a string unseen.",
        characters.control_characters,
    ),
    "bidi_characters": Rule(
        "A bidirectional control shows a text in another order than a model reads it.",
        characters.bidi_characters,
    ),
    "invisible_characters": Rule(
        "What a reviewer cannot see a model still reads, and a value with it matches nothing.",
        characters.invisible_characters,
    ),
    "encoding_damage": Rule(
        "A text that was decoded wrongly once holds other values than the golden call.",
        characters.encoding_damage,
    ),
    "imitated_letters": Rule(
        "A word of two alphabets looks like another word: no value of it can be copied.",
        characters.imitated_letters,
    ),
    "instructions": Rule(
        "An order to the reader makes a row measure obedience to it instead of the perturbation.",
        instructions,
    ),
    "markup": Rule(
        "Markup is executed or rendered by the page that shows a row, and hides text from a reader.", markup
    ),
    "refusals": Rule("A generator that refuses, or talks about its text, did not write the text.", remarks),
}
"""What may not stand in any text of a row, by name."""

CREDENTIAL = "credential"
"""The rule of everything that `secrets` and `personal` find."""

SHOWN = 3
"""Finds that a message spells out; the others are counted."""


class Find(NamedTuple):
    """One thing that a rule found in one text."""

    rule: str
    said: str
    """What may be printed of it."""
    value: str
    """What is compared: for a credential the string itself, which is never printed."""

    def fingerprint(self, text: str) -> str:
        """Under which it is reviewed: an edited text is another one, a credential is the same anywhere."""
        return fingerprint(self.rule, self.value if self.rule == CREDENTIAL else text)


class Flagged(NamedTuple):
    """A text with finds, and where it stands."""

    place: str
    text: str
    finds: tuple[Find, ...]


class Known(NamedTuple):
    """What a clean row holds, against which its perturbed rows are held."""

    texts: frozenset[str]
    """Those with finds."""
    most: "Counter[tuple[str, str]]"
    """How often one of its texts holds a thing at most."""
    whole: str
    """All that it says: a credential in it is not a new one, however it was found there."""


class Scope(NamedTuple):
    """Which credentials are looked for."""

    guess: bool = True
    """What may be one."""
    persons: bool = True
    """Persons' addresses and numbers."""


@lru_cache(maxsize=200_000)
def finds(leaf: Leaf, scope: Scope = Scope()) -> tuple[Find, ...]:
    """What the rules and the search for credentials find, reviewed or not. It depends on nothing else, so the
    audits of a process share it."""
    by_rule = (Find(name, said, said) for name, rule in RULES.items() for said in rule.find(leaf.text))
    return (*by_rule, *credentials(leaf, scope))


def credentials(leaf: Leaf, scope: Scope) -> Iterator[Find]:
    """The credentials and persons' data of a text."""
    beside = f'{leaf.secret}: "{leaf.text}"' if leaf.secret else leaf.text
    maybe = guesses(beside) if scope.guess else ()
    found: dict[str, Match] = {}
    for match in (*tokens(beside), *maybe, *(personal(leaf.text) if scope.persons else ())):
        found.setdefault(match.value, match)
    for match in found.values():
        yield Find(CREDENTIAL, f"{match.kind} ({fingerprint(CREDENTIAL, match.value)[:8]})", match.value)


def flagged(place: str, value: Json, scope: Scope = Scope()) -> list[Flagged]:
    """The texts of a value in which something is found."""
    return [Flagged(place, leaf.text, found) for leaf in leaves(value) if (found := finds(leaf, scope))]


class Texts:
    """Holds finds against what was reviewed, and against a clean row."""

    def __init__(self, allowed: frozenset[str] | None = None, scope: Scope = Scope()) -> None:
        self.scope = scope
        self._allowed = reviewed() if allowed is None else allowed

    def unreviewed(self, found: Iterable[Flagged]) -> Iterator[tuple[Flagged, Find]]:
        """What nobody looked at yet."""
        for flagged in found:
            for find in flagged.finds:
                if find.fingerprint(flagged.text) not in self._allowed:
                    yield flagged, find

    def brought_in(self, found: Iterable[Flagged], known: Known) -> Iterator[tuple[Flagged, Find]]:
        """What was not reviewed and is not in the clean row: not the text, nor the thing as often in one."""
        for flagged in found:
            if flagged.text in known.texts:
                continue
            left = Counter(known.most)
            for _, find in self.unreviewed([flagged]):
                if find.rule == CREDENTIAL and find.value in known.whole:
                    continue
                left[find.rule, find.value] -= 1
                if left[find.rule, find.value] < 0:
                    yield flagged, find


def known(found: Iterable[Flagged], whole: str) -> Known:
    """What a clean row's perturbed rows are compared with; `whole` is all of the clean row's text."""
    texts = list(found)
    most: Counter[tuple[str, str]] = Counter()
    for flagged in texts:
        most |= Counter((find.rule, find.value) for find in flagged.finds)
    return Known(frozenset(flagged.text for flagged in texts), most, whole)


def finds_by_rule(found: Iterable[tuple[Flagged, Find]]) -> dict[str, list[str]]:
    """What to say about finds, by rule."""
    by_rule: dict[str, list[str]] = {}
    for flagged, find in found:
        by_rule.setdefault(find.rule, []).append(f"{flagged.place}: {find.said}")
    return by_rule


def in_short(found: Iterable[str]) -> str:
    """The first of what was found, each once, and how much more there is; "" where there is nothing."""
    each = list(dict.fromkeys(found))
    more = f" and {len(each) - SHOWN} more" if len(each) > SHOWN else ""
    return "; ".join(one[:120] for one in each[:SHOWN]) + more
