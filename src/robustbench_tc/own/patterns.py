"""Regular expressions of a cases file, searched in what a model wrote: no text may keep one busy.

Python's `re` tries every way in which a pattern can divide a text. How many there are is bounded from the
parsed pattern before it is used: one with a repeat of something that itself varies (`(a+)+`) is refused, and
the more ways a pattern has, the shorter are the texts that it is searched in.
"""

import re
import unicodedata
import warnings
from collections.abc import Iterator, Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any, NamedTuple, TypeAlias

PATTERN = 500
"""Characters of a pattern."""

TEXTS = (10_000, 1_000)
"""Characters of the longest text that a pattern is searched in: the second for patterns of many ways."""

STEPS = 2 * 10**9
"""Steps that the search of one text may take by the bound; few texts come near it."""

_parser: Any = import_module("re._parser")
_compiler: Any = import_module("re._compiler")

_Node: TypeAlias = tuple[Any, Any]
"""An operation of a parsed pattern, and its operands."""

_REPEATS = frozenset({"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"})
_ONE_CHARACTER = frozenset({"LITERAL", "NOT_LITERAL", "IN", "ANY"})
_ASSERTIONS = frozenset({"ASSERT", "ASSERT_NOT"})

_ALPHABET = "a1A x-_.,:/@#" + "".join(map(chr, range(0x20, 0x3000))) + "\n\t\r"
"""Characters with which it is tried whether two parts of a pattern exclude each other; the first are those
that an example is made of."""


class Pattern(NamedTuple):
    """A pattern that can be used."""

    search: re.Pattern[str]
    longest: int
    """Characters of the longest text that it is searched in."""
    example: str
    """A text that it matches."""


def found_in(pattern: str, text: str) -> bool:
    """Whether the pattern is found in a text; in one that is too long for it nothing is found."""
    known = read_pattern(pattern)
    if isinstance(known, str) or len(text) > known.longest:
        return False
    text = unicodedata.normalize("NFC", text)
    return len(text) <= known.longest and known.search.search(text) is not None


@lru_cache(maxsize=4_096)
def read_pattern(pattern: str) -> Pattern | str:
    """The pattern, or in one phrase why it cannot be used."""
    if not pattern:
        return "is empty: write {any: true} for any value"
    if len(pattern) > PATTERN:
        return f"has {len(pattern):,} characters: at most {PATTERN} are allowed"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            tree = _parser.parse(unicodedata.normalize("NFC", pattern))
            nodes = list(tree)
            # A search finds the rest wherever it stands: what may match anything in front only costs time.
            if nodes and _name(nodes[0]) in _REPEATS and _is_anything(nodes[0]):
                nodes = nodes[1:]
            search = _compiler.compile(_parser.SubPattern(tree.state, nodes), 0)
    except (re.error, OverflowError, RecursionError, Warning) as error:
        return f"is no regular expression: {str(error)[:100]}"
    bound = _Bound(tree, pattern)
    longest = next((length for length in TEXTS if bound.steps(nodes, length) <= STEPS), None)
    if longest is None:
        return (
            "could take too long: a repeat stands inside a repeat, or too many parts may match the same "
            "text; write it more narrowly"
        )
    example = next((text for text in _examples(tree, longest) if search.search(text)), None)
    if example is None:
        return f"is found in no text that was tried (up to {longest:,} characters): write it more simply"
    return Pattern(search, longest, example)


def _name(node: _Node) -> str:
    return str(node[0])


def _is_anything(repeat: _Node) -> bool:
    low, high, body = repeat[1]
    return (
        low == 0
        and high == _parser.MAXREPEAT
        and [_name(one) for one in body] == ["ANY"]
        and _name(repeat) != "POSSESSIVE_REPEAT"
    )


def _body(node: _Node) -> list[list[_Node]]:
    """The sequences inside a node; [] for one without."""
    name, operands = _name(node), node[1]
    if name in _REPEATS:
        return [list(operands[2])]
    if name == "SUBPATTERN":
        return [list(operands[3])]
    if name == "ATOMIC_GROUP":
        return [list(operands)]
    if name == "BRANCH":
        return [list(one) for one in operands[1]]
    if name in _ASSERTIONS:
        return [list(operands[1])]
    if name == "GROUPREF_EXISTS":
        return [list(one or ()) for one in operands[1:]]
    return []


def _fitting(state: Any, node: _Node, alphabet: str) -> list[str]:
    """The characters of an alphabet that a node of one character matches."""
    one = _compiler.compile(_parser.SubPattern(state, [node]), 0)
    return [found[0] for found in one.finditer(alphabet)]  # findall would give the groups of the whole


def _has_scoped_flags(nodes: Sequence[_Node]) -> bool:
    """Whether flags hold for a part only: characters of it are then not those that they seem."""
    return any(
        (_name(node) == "SUBPATTERN" and any(node[1][1:3])) or any(map(_has_scoped_flags, _body(node)))
        for node in nodes
    )


class _Bound:
    """How long a search can take."""

    def __init__(self, tree: Any, pattern: str) -> None:
        self.state = tree.state
        self.alphabet = _ALPHABET + pattern
        self.sets: dict[str, frozenset[str]] = {}
        self.runs = False
        self.scoped = _has_scoped_flags(list(tree))

    def steps(self, nodes: list[_Node], length: int) -> int:
        """An upper bound for a text of that length."""
        self.length, self.runs = length, False
        anchored = bool(nodes) and _name(nodes[0]) == "AT" and not self.state.flags & re.MULTILINE
        starts = 1 if anchored and str(nodes[0][1]).startswith("AT_BEGINNING") else length
        ways = self.ways(nodes, [])
        return starts * ways * (length if self.runs else 1)

    def ways(self, nodes: Sequence[_Node], after: list[_Node | None]) -> int:
        """In how many ways a sequence can match from one place; `after`: what can follow it, [] for nothing,
        None for what is not known."""
        total = 1
        for place, node in enumerate(nodes):
            total *= self.ways_of(node, self.first(nodes[place + 1 :], after))
            if total > STEPS:
                return STEPS + 1
        return total

    def ways_of(self, node: _Node, after: list[_Node | None]) -> int:
        """The same of one node."""
        name = _name(node)
        if name in _REPEATS:
            return self.ways_of_repeat(node, after)
        if name in _ASSERTIONS:
            return self.ways(_body(node)[0], [])
        if name == "GROUPREF":
            return self.length  # the comparison itself
        parts = _body(node)
        counts = [self.ways(part, after) for part in parts]
        if name == "BRANCH":
            firsts = [self.first(part, after) for part in parts]
            alone = all(
                self.exclude(one, other) for at, one in enumerate(firsts) for other in firsts[at + 1 :]
            )
            return max(counts) if alone else sum(counts)
        return sum(counts) if counts else 1

    def ways_of_repeat(self, node: _Node, after: list[_Node | None]) -> int:
        low, high, body = int(node[1][0]), min(int(node[1][1]), self.length), list(node[1][2])
        if high <= 1:
            return self.ways(body, after) + (low == 0)
        if body and node[1][2].getwidth()[0] == 0:
            return STEPS + 1  # it could repeat nothing
        first = self.first(body, [None])
        inner = self.ways(body, [*first, *after])
        if inner > 1:
            return STEPS + 1 if high > 40 else min(int(inner**high), STEPS + 1)
        if low >= high or not after:
            return 1
        if self.exclude(first, after):
            self.runs = True  # one way, but it is walked back
            return 1
        return high - low + 1

    def first(self, nodes: Sequence[_Node], after: list[_Node | None]) -> list[_Node | None]:
        """What can stand at the beginning of a sequence: nodes of one character, None for what is not
        known."""
        found: list[_Node | None] = []
        for node in nodes:
            name = _name(node)
            if name in _ONE_CHARACTER:
                return [*found, node]
            if name not in {*_REPEATS, "SUBPATTERN", "BRANCH"} or (
                name == "SUBPATTERN" and any(node[1][1:3])
            ):
                return [*found, None]
            for part in _body(node):
                inner = self.first(part, [None])
                found += inner
            if not (name in _REPEATS and node[1][0] == 0):
                return found
        return [*found, *after]

    def exclude(self, left: list[_Node | None], right: list[_Node | None]) -> bool:
        """Whether no character can begin both."""
        if self.scoped or not left or not right or None in left or None in right:
            return False
        characters = [
            frozenset().union(*(self.characters(one) for one in side if one is not None))
            for side in (left, right)
        ]
        return characters[0].isdisjoint(characters[1])

    def characters(self, node: _Node) -> frozenset[str]:
        key = repr(node)
        if key not in self.sets:
            self.sets[key] = frozenset(_fitting(self.state, node, self.alphabet))
        return self.sets[key]


_VARIANTS = 12


def _examples(tree: Any, longest: int) -> Iterator[str]:
    """Texts that the pattern may match; the shortest first."""
    if tree.getwidth()[0] > longest:
        return
    for variant in range(_VARIANTS):
        for asserted in (False, True):
            text = _Example(tree.state, variant, asserted).of(tree)
            if len(text) <= longest:
                yield unicodedata.normalize("NFC", text)


class _Example:
    """A text built along a pattern. `variant`: how often repeats repeat, which alternative and which
    character is taken; `asserted`: what a look-ahead wants is written where it stands."""

    def __init__(self, state: Any, variant: int, asserted: bool) -> None:
        self.state, self.variant, self.asserted = state, variant, asserted
        self.groups: dict[int, str] = {}

    def of(self, nodes: Sequence[_Node]) -> str:
        return "".join(map(self.one, nodes))[: TEXTS[0] + 1]

    def one(self, node: _Node) -> str:
        name, operands = _name(node), node[1]
        if name == "LITERAL":
            return chr(operands)
        if name in _ONE_CHARACTER:
            fits = _fitting(self.state, node, _ALPHABET)
            return fits[self.variant % len(fits)] if fits else ""
        if name in _REPEATS:
            times = min(operands[0] + self.variant, operands[1])
            text = self.of(operands[2])
            return text * int(min(times, TEXTS[0] // max(len(text), 1) + 1))
        if name == "SUBPATTERN":
            text = self.of(operands[3])
            self.groups[operands[0]] = text
            return text
        if name == "GROUPREF":
            return self.groups.get(operands, "")
        if name == "ASSERT":
            return self.of(operands[1]) if self.asserted and operands[0] > 0 else ""
        if name == "ASSERT_NOT" or not (parts := _body(node)):
            return ""
        return self.of(parts[self.variant % len(parts)])
