"""Which sets of words are nearly equal, by their Jaccard index, without comparing every pair.

Two sets can only be that alike if they share one of their rarest words (prefix filtering, Bayardo et al.
2007).
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence

COMPARED = 300_000
"""Pairs that are compared at most: all of 775 tools, and of more where they are not all in the same words."""


def pairs(sets: Sequence[frozenset[str]], least: float) -> Iterator[tuple[int, int]]:
    """Places of two sets whose shared share is `least` or more, each pair once; empty sets are like none."""
    frequency = Counter(word for words in sets for word in words)
    holders: dict[str, list[int]] = {}
    left = COMPARED
    for place, words in enumerate(sets):
        if not words:
            continue
        rarest = sorted(words, key=lambda word: (frequency[word], word))
        prefix = rarest[: len(words) - math.ceil(least * len(words) - 1e-9) + 1]
        others = dict.fromkeys(other for word in prefix for other in holders.get(word, ()))
        for other in others:
            left -= 1
            if left < 0:
                return
            shared = len(words & sets[other])
            if shared >= least * (len(words) + len(sets[other]) - shared) - 1e-9:
                yield other, place
        for word in prefix:
            holders.setdefault(word, []).append(place)
