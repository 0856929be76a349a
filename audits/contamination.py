"""Whether training data ask what the benchmark asks, and whether queries inside the benchmark repeat.

Only what users say is compared: templates, tags and thoughts are stripped, case and punctuation are ignored.
A training row is contaminated if a benchmark query stands in it word for word, or half of the query's word
8-grams do. Queries of fewer than 8 words have no 8-gram: for them only equality counts.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from robustbench_tc.builders.plain import CLOSING_TURN
from robustbench_tc.builders.sources import Profile, read_pool
from robustbench_tc.io.parquet import read_rows, shards
from robustbench_tc.schema import Message, Sample, record
from robustbench_tc.taxonomy import CLEAN

from .folder import Folder
from .report import Overlap

GRAM = 8
SHARE = 0.5

LISTED = 200
"""Overlaps that a report lists, the highest first."""

SHINGLE = 3
ALIKE = 0.6
"""Two clean queries are near-duplicates when so much of their word 3-grams is common (Jaccard)."""

NO_LEAK_CHECK = "not done:"
"""How the note on a training build's leak check begins where there was none."""

Conversations: TypeAlias = Iterable[tuple[str, Sequence[Message]]]
"""Rows as (id, messages)."""

_TURN = re.compile(r"<user>(.*?)(?:</user>|\Z)", re.DOTALL)
_THOUGHT = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL)
_TAG = re.compile(r"<\|?/?\w[^<>\n]{0,60}>")


class Query(NamedTuple):
    """What a row's user says."""

    row: str
    turns: tuple[tuple[str, ...], ...]
    """Words per turn, in lower case."""

    @property
    def words(self) -> tuple[str, ...]:
        """All turns in a row."""
        return tuple(word for turn in self.turns for word in turn)


def query(row: str, messages: Iterable[Message]) -> Query:
    """The user's turns of a conversation; in a transcript inside one message, the marked ones."""
    turns: list[tuple[str, ...]] = []
    for message in messages:
        if message.role != "user":
            continue
        marked = _TURN.findall(message.content) or [message.content]
        if len(marked) > 1 and CLOSING_TURN.search(marked[-1]):  # a template, not a question
            marked.pop()
        for text in marked:
            plain = _TAG.sub(" ", _THOUGHT.sub(" ", text))
            if words := tuple(re.findall(r"\w+", plain.lower())):
                turns.append(words)
    return Query(row, tuple(turns))


def units(asked: Query) -> Iterator[tuple[str, ...]]:
    """What must not stand elsewhere: all that is said, and every longer turn of a dialogue by itself."""
    yield asked.words
    if len(asked.turns) > 1:
        yield from (turn for turn in asked.turns if len(turn) >= GRAM)


class Index:
    """Benchmark queries, to be looked up with other rows."""

    def __init__(self, queries: Iterable[Query]) -> None:
        self._equal: dict[tuple[str, ...], str] = {}
        self._holders: dict[tuple[str, ...], list[int]] = {}
        self._units: list[tuple[str, int]] = []
        """Row and number of distinct 8-grams of each unit that has any."""
        self.size = 0
        for self.size, asked in enumerate(queries, 1):
            for words in units(asked):
                if not words or words in self._equal:
                    continue
                self._equal[words] = asked.row
                if grams := _grams(words, GRAM):
                    for gram in grams:
                        self._holders.setdefault(gram, []).append(len(self._units))
                    self._units.append((asked.row, len(grams)))

    def look_up(self, other: Query) -> Overlap | None:
        """The closest benchmark query of a row; None if nothing is shared."""
        for words in units(other):
            if (row := self._equal.get(words)) is not None:
                return Overlap(left=row, right=other.row, shared=1.0, equal=True, contaminated=True)
        grams = {gram for turn in other.turns for gram in _grams(turn, GRAM)} | _grams(other.words, GRAM)
        shared = Counter(unit for gram in grams for unit in self._holders.get(gram, ()))
        if not shared:
            return None
        best = max(shared, key=lambda unit: (shared[unit] / self._units[unit][1], -unit))
        row, size = self._units[best]
        share = shared[best] / size
        return Overlap(
            left=row, right=other.row, shared=round(share, 4), equal=False, contaminated=share >= SHARE
        )


def overlaps(index: Index, others: Iterable[Query]) -> tuple[list[Overlap], int]:
    """Every row that shares anything with the benchmark, closest first, and how many rows were looked at."""
    found, looked_at = list[Overlap](), 0
    for looked_at, other in enumerate(others, 1):  # noqa: B007 - it is read behind the loop
        if (overlap := index.look_up(other)) is not None:
            found.append(overlap)
    return sorted(found, key=lambda o: (not o.equal, -o.shared)), looked_at


def training_queries(folder: Folder) -> Iterator[Query]:
    """The queries of a training folder, all configs and splits; equal ones once."""
    seen: set[tuple[tuple[str, ...], ...]] = set()
    for config in folder.configs():
        for split in folder.splits(config):
            for number, raw in enumerate(folder.rows(config, split)):
                asked = query(f"{config}/{split}[{number}]", messages(raw))
                if asked.turns not in seen:
                    seen.add(asked.turns)
                    yield asked


def messages(raw: dict[str, Any]) -> list[Message]:
    """The conversation of a training row (`prompt` or `messages`), whatever is malformed left out."""
    turns = raw.get("prompt") or raw.get("messages") or []
    return [
        Message(turn["role"], turn["content"])
        for turn in turns
        if isinstance(turn, dict)
        and isinstance(turn.get("role"), str)
        and isinstance(turn.get("content"), str)
    ]


def near_duplicates(queries: Sequence[Query]) -> list[Overlap]:
    """Pairs of clean queries that are equal, or have most of their word 3-grams in common."""
    shingles = [_grams(asked.words, SHINGLE) for asked in queries]
    holders: dict[tuple[str, ...], list[int]] = {}
    found: list[Overlap] = []
    same: dict[tuple[str, ...], list[int]] = {}
    for at, asked in enumerate(queries):
        same.setdefault(asked.words, []).append(at)
        common = Counter(earlier for gram in shingles[at] for earlier in holders.get(gram, ()))
        for earlier, number in common.items():
            alike = number / (len(shingles[at]) + len(shingles[earlier]) - number)
            if alike >= ALIKE and queries[earlier].words != asked.words:
                found.append(_near(queries[earlier], asked, alike))
        for gram in shingles[at]:
            holders.setdefault(gram, []).append(at)
    for places in same.values():
        found += [_near(queries[a], queries[b], 1.0) for a, b in pairwise(places)]
    return sorted(found, key=lambda o: (not o.equal, -o.shared, o.left))


def _near(left: Query, right: Query, alike: float) -> Overlap:
    equal = left.words == right.words
    return Overlap(left=left.row, right=right.row, shared=round(alike, 4), equal=equal, contaminated=False)


def _grams(words: Sequence[str], size: int) -> set[tuple[str, ...]]:
    return {tuple(words[at : at + size]) for at in range(len(words) - size + 1)}


def conversations(folder: Path) -> Conversations:
    """The clean rows of a benchmark folder, read as they are needed."""
    samples = (record(row, Sample) for row in read_rows(shards(folder / CLEAN)))
    return ((sample.id, sample.messages) for sample in samples)


@cache  # an audit after another in the same process: pinned files hold the same
def conversations_of_sources(root: Path, profile: Profile) -> Conversations:
    """What the rows of sources ask, each of whose files is as pinned."""
    return tuple((sample.id, sample.messages) for sample in read_pool(root, profile).samples)


def leaks_of(
    root: Path | None, progress: Callable[[str], None] = lambda line: None
) -> tuple[Callable[[str, Sequence[Message]], bool] | None, str]:
    """Whether a training row asks what the benchmark asks (the 199 and the full pools), and a note on it.

    The gate of a release asks the same question in the same way. Without sources nothing is compared.
    """
    if root is None:
        where = "no benchmark sources at hand (run `rbtc data fetch`, or pass --sources)."
        return None, f"{NO_LEAK_CHECK} {where}"
    progress("reading the benchmark's queries")
    samples = (*read_pool(root, "paper").samples, *read_pool(root, "full").samples)
    index = Index(query(sample.id, sample.messages) for sample in samples)

    def leaks(clean_id: str, messages: Sequence[Message]) -> bool:
        overlap = index.look_up(query(clean_id, messages))
        return overlap is not None and overlap.contaminated

    return leaks, f"user turns compared with {index.size} benchmark rows (the 199 and the full pools)."
