"""Tools that a model can hardly tell apart: their names or their descriptions share most of their words.

Similarity is Jaccard's: words in both over words in either, case folded; names split at `_`, `-`, `.`, digits
and camelCase humps. Two sets that reach a threshold share a word among their rarest ones (prefix filtering),
so only those are compared.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence

NAMES, DESCRIPTIONS = 0.6, 0.9
"""From where names and descriptions count as near-duplicates."""
SHOWN = 5
"""Earlier tools that one finding holds at most."""
_WORDS = re.compile(r"[^\W\d_]+|\d+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def words(text: str) -> frozenset[str]:
    """The words of a name or description, of its first 5,000 characters."""
    return frozenset(_WORDS.findall(_HUMP.sub(" ", text[:5000]).casefold()))


def alike(sets: Sequence[frozenset[str]], threshold: float) -> Iterator[tuple[int, list[int]]]:
    """For each set the first `SHOWN` earlier ones that reach the threshold; empty sets resemble nothing."""
    often = Counter(word for one in sets for word in one)
    index: dict[str, dict[tuple[int, int], list[int]]] = {}
    distinct: dict[frozenset[str], int] = {}
    for place, one in enumerate(sets):
        if not one:
            continue
        if one in distinct:
            yield place, [distinct[one]]
            continue
        distinct[one] = place
        ordered = sorted(one, key=lambda word: (often[word], word))
        # a small margin: 0.6 * 5 is above 3 in binary
        prefix = ordered[: len(one) - math.ceil(threshold * len(one) - 1e-9) + 1]
        found: list[int] = []
        for other in dict.fromkeys(_candidates(prefix, len(one), index, threshold)):
            both = len(one & sets[other])
            if both >= threshold * (len(one) + len(sets[other]) - both) - 1e-9:
                found.append(other)
                if len(found) == SHOWN:
                    break
        for at, word in enumerate(prefix):
            index.setdefault(word, {}).setdefault((len(one), len(one) - at), []).append(place)
        if found:
            yield place, sorted(found)


def _candidates(
    prefix: list[str], size: int, index: dict[str, dict[tuple[int, int], list[int]]], threshold: float
) -> Iterator[int]:
    """Earlier sets with a word of the prefix, without those whose words from there on cannot suffice."""
    for at, word in enumerate(prefix):
        for (length, left), places in index.get(word, {}).items():
            if min(size - at, left) >= threshold / (1 + threshold) * (size + length) - 1e-9:
                yield from places
