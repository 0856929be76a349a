"""Randomness: one generator per (seed, type code, clean id), so that order never matters."""

import hashlib
import random
from functools import lru_cache


def rng(seed: int, *key: str) -> random.Random:
    """A generator that depends on `seed` and the parts of `key` only, whatever was drawn before."""
    return random.Random(hashlib.sha256(_prefix(seed, *key)).digest())


class Series:
    """The generators of keys that begin alike, one after the other: what `rng` gives, at half the price."""

    def __init__(self, seed: int, *key: str) -> None:
        self._begun = hashlib.sha256(_prefix(seed, *key))
        self._generator = random.Random(0)

    def rng(self, last: str) -> random.Random:
        """The generator of the key that ends so. It is the same object again: the one before is gone."""
        digest = self._begun.copy()
        digest.update(_part(last))
        self._generator.seed(digest.digest())
        return self._generator


def _prefix(seed: int, *key: str) -> bytes:
    return b"".join((str(seed).encode(), *map(_part, key)))


@lru_cache(10_000)  # every type asks for the same ids again
def _part(part: str) -> bytes:
    return f"|{len(part)}:{part}".encode("utf-8", "surrogatepass")
