"""Can a rule that understands nothing tell the rows in which no call is right from those in which one is due?

For every type in which calling nothing is right although the registry stands, so that the request decides.
Its rows are put beside those of its control (`PerturbationType.control`) of the same samples, and two rules
are fitted: whether the request has one of a few words (or signs), and a threshold on the overlap of request
and registry (BM25, the tool that overlaps most). Each is fitted on four fifths of the registries and decides
in the others.
"""

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from math import log
from typing import NamedTuple, TypeAlias

import msgspec

from robustbench_tc import taxonomy
from robustbench_tc.schema import Tool, dumps

from .classifier import FOLDS, folds
from .folder import Folder
from .report import Check, Failure, check

TOLD = 0.75
"""Balanced accuracy above which a rule counts as one that tells the rows apart."""

WORDS = 4
"""Words of a rule at most."""

ENOUGH = 30
"""Rows of a type, and of its control, below which a rule's figure says nothing."""

_COLUMNS = ["clean_id", "messages", "tools"]
_SIGN = re.compile(r"\w+|[^\w\s]")
_WORD = re.compile(r"[^\W\d_]+|\d+")
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
_TOOLS = msgspec.json.Decoder(tuple[Tool, ...])


class Asked(NamedTuple):
    """What a rule sees of a row."""

    due: bool
    """Whether a call is due."""
    request: str
    tools: tuple[str, ...]
    """What each tool says, as one text."""
    registry: Hashable


class Example(NamedTuple):
    """What the rules look at."""

    due: bool
    words: frozenset[str]
    overlap: float


Rule: TypeAlias = Callable[[Example], bool]
"""Whether a call is made."""


def audit(build: Folder) -> list[Check]:
    """The check, where the build has such a type with its control."""
    there = set(build.configs())
    kinds = [  # no call is right, with the registry of the clean row
        kind
        for kind in taxonomy.known_with(there)
        if kind.control in there and kind.no_call == "right" and "the set of tools" not in kind.may_change
    ]
    if not kinds:
        return []
    said, failures = list[str](), list[Failure]()
    for kind in kinds:
        rows, controls, words, overlaps = figures(build, kind)
        if min(rows, controls) < ENOUGH:
            said.append(f"{kind.code}: {rows} rows and {controls} controls are too few")
            continue
        said.append(f"{kind.code}: words {words:.3f}, overlap {overlaps:.3f}")
        rules = {"a few words of the request": words, "its overlap with the registry": overlaps}
        failures += [
            Failure(kind.code, f"{name} tells its rows from their controls: {value:.3f} balanced")
            for name, value in rules.items()
            if value > TOLD
        ]
    protects = "Rows in which no call is right must be read to be told from those in which one is due."
    return [
        check("shortcuts.declining_needs_reading", protects, len(kinds), failures, reason="; ".join(said))
    ]


def figures(build: Folder, kind: taxonomy.PerturbationType) -> tuple[int, int, float, float]:
    """Rows of a type and of its control for the same samples, and the balanced accuracy of both rules."""
    none, due = (dict(_asked(build, code, code == kind.control)) for code in (kind.code, kind.control))
    rows = [*none.values(), *(due[clean_id] for clean_id in none if clean_id in due)]
    examples = [
        Example(one.due, frozenset(_SIGN.findall(one.request)), value)
        for one, value in zip(rows, overlap(rows), strict=True)
    ]
    groups = [one.registry for one in rows]
    told, overlaps = (held_out(examples, groups, fit) for fit in (by_words, by_overlap))
    return len(none), len(rows) - len(none), told, overlaps


def _asked(build: Folder, code: str, due: bool) -> Iterable[tuple[str, Asked]]:
    for chunk in build.chunks(code):
        for raw in build.read_chunk(chunk, _COLUMNS):
            tools = _TOOLS.decode(raw["tools"])
            said = "\n".join(one["content"] for one in raw["messages"] if one["role"] != "system")
            texts = (f"{one.name} {one.description} {dumps(one.properties)}" for one in tools)
            read = tuple(_HUMP.sub(" ", text).lower() for text in texts)
            registry = tuple(sorted(one.name for one in tools))
            yield str(raw["clean_id"]), Asked(due, said.lower(), read, registry)


def held_out(
    examples: Sequence[Example], groups: Sequence[Hashable], fit: Callable[[Sequence[Example]], Rule]
) -> float:
    """The balanced accuracy of fitted rules, each on the groups that it was not fitted on."""
    placed = list(zip(examples, folds(groups), strict=True))
    right: list[tuple[bool, bool]] = []
    for fold in range(FOLDS):
        rule = fit([one for one, its in placed if its != fold])
        right += [(one.due, rule(one) == one.due) for one, its in placed if its == fold]
    return balanced(right)


def balanced(right: Iterable[tuple[bool, bool]]) -> float:
    """The mean of the shares right where a call is due and where none is, of (due, right) pairs."""
    pairs = Counter(right)
    return sum(pairs[due, True] / max(pairs[due, True] + pairs[due, False], 1) for due in (True, False)) / 2


def by_words(examples: Sequence[Example]) -> Rule:
    """Calls, or does not, where the request has one of a few words, which are added as long as they help."""
    best, chosen, calls = 0.5, frozenset[str](), True
    for side in (True, False):
        value, words = 0.0, frozenset[str]()
        for _ in range(WORDS):
            missed = [(one.due is side, one.words) for one in examples if not one.words & words]
            held = {
                wanted: Counter(w for its, found in missed if its is wanted for w in found)
                for wanted in (True, False)
            }
            size = {wanted: sum(one.due is (side is wanted) for one in examples) for wanted in (True, False)}
            gain, word = max(
                ((held[True][w] / size[True] - held[False][w] / size[False], w) for w in held[True]),
                default=(0.0, ""),
            )
            if gain <= 0:
                break
            value, words = value + gain, words | {word}
        if 0.5 + value / 2 > best:
            best, chosen, calls = 0.5 + value / 2, words, side
    return lambda one: bool(one.words & chosen) is calls


def by_overlap(examples: Sequence[Example]) -> Rule:
    """Calls where the overlap is at least the best bound, or where it is less."""
    best, bound, calls = 0.5, 0.0, True
    for least in sorted({one.overlap for one in examples}):
        value = balanced((one.due, (one.overlap >= least) is one.due) for one in examples)
        if max(value, 1 - value) > best:
            best, bound, calls = max(value, 1 - value), least, value >= 0.5
    return lambda one: (one.overlap >= bound) is calls


def overlap(rows: Sequence[Asked]) -> list[float]:
    """For each row the BM25 score of its request against the tool of its registry that scores highest."""
    known = {text: Counter(_WORD.findall(text)) for row in rows for text in row.tools}
    held = Counter(word for words in known.values() for word in words)
    usual = sum(words.total() for words in known.values()) / max(len(known), 1)
    weight = {word: log(1 + (len(known) - n + 0.5) / (n + 0.5)) for word, n in held.items()}

    def score(request: Sequence[str], words: Counter[str]) -> float:
        length = 1.5 * (0.25 + 0.75 * words.total() / usual)
        return sum(weight[one] * words[one] * 2.5 / (words[one] + length) for one in request if one in words)

    requests = (_WORD.findall(row.request) for row in rows)
    return [
        round(max((score(request, known[text]) for text in row.tools), default=0.0), 6)
        for request, row in zip(requests, rows, strict=True)
    ]
