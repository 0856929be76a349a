"""Whether a training row asks what the benchmark asks."""

import re
from collections import Counter
from collections.abc import Iterable

GRAM = 8
"""Words of a shingle. Two queries are the same when one shares half of its shingles with the other."""


class Leaks:
    """The benchmark's queries, to be called with the user's turns of a training row."""

    def __init__(self, queries: Iterable[str]) -> None:
        self._equal: set[str] = set()
        self._holders: dict[str, list[int]] = {}
        self._grams: list[int] = []
        for query in queries:
            words = _words(query)
            if " ".join(words) in self._equal:
                continue
            self._equal.add(" ".join(words))
            grams = _grams(words)
            for gram in grams:
                self._holders.setdefault(gram, []).append(len(self._grams))
            self._grams.append(len(grams))

    def __len__(self) -> int:
        """Distinct queries."""
        return len(self._equal)

    def __call__(self, turns: Iterable[str]) -> bool:
        """Whether a turn equals a query (case, punctuation, spacing apart) or holds half of its shingles."""
        for turn in turns:
            words = _words(turn)
            if words and " ".join(words) in self._equal:
                return True
            shared = Counter(query for gram in _grams(words) for query in self._holders.get(gram, ()))
            if any(2 * count >= self._grams[query] for query, count in shared.items()):
                return True
        return False


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def _grams(words: list[str]) -> set[str]:
    return {" ".join(words[i : i + GRAM]) for i in range(len(words) - GRAM + 1)}
