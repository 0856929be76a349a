"""What the rules find in one text, and whether that was reviewed. Each distinct text is looked at once."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from typing import NamedTuple

from . import characters
from .instructions import instructions
from .leaves import Leaf
from .markup import markup
from .personal import personal
from .refusals import refusals
from .reviewed import fingerprint, reviewed
from .secrets import Match, guesses, tokens


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
    "refusals": Rule("A generator that refuses, or talks about its text, did not write the text.", refusals),
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


class Texts:
    """Looks at texts, and remembers what it found."""

    def __init__(
        self, allowed: frozenset[str] | None = None, *, guess: bool = True, persons: bool = True
    ) -> None:
        """`persons`: persons' addresses and numbers are looked for, `guess`: what may be a credential."""
        self._allowed = reviewed() if allowed is None else allowed
        self._guess, self._persons = guess, persons
        self._seen: dict[bytes, tuple[Find, ...]] = {}

    def finds(self, leaf: Leaf) -> tuple[Find, ...]:
        """What the rules and the search for credentials find, reviewed or not; computed once per text."""
        key = digest(f"{leaf.secret}\0{leaf.text}")
        known = self._seen.get(key)
        if known is None:
            known = self._seen[key] = (
                *(Find(name, said, said) for name, rule in RULES.items() for said in rule.find(leaf.text)),
                *self.credentials(leaf),
            )
        return known

    def credentials(self, leaf: Leaf) -> tuple[Find, ...]:
        """The credentials and persons' data of a text; guesses only where it stands in a row."""
        beside = f'{leaf.secret}: "{leaf.text}"' if leaf.secret else leaf.text
        found: dict[str, Match] = {}
        maybe = guesses(beside) if self._guess else ()
        for match in (*tokens(beside), *maybe, *(personal(leaf.text) if self._persons else ())):
            found.setdefault(match.value, match)
        return tuple(
            Find(CREDENTIAL, f"{match.kind} ({fingerprint(CREDENTIAL, match.value)[:8]})", match.value)
            for match in found.values()
        )

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


def said(found: Iterable[tuple[Flagged, Find]]) -> dict[str, list[str]]:
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


def digest(text: str) -> bytes:
    """16 bytes of BLAKE2b: the key under which a text's finds are remembered."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
