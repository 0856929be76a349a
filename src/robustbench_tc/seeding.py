"""Randomness: one generator per (seed, type code, clean id), so that order never matters."""

import hashlib
import random


def rng(seed: int, *key: str) -> random.Random:
    """A generator that depends on `seed` and the parts of `key` only, whatever was drawn before."""
    parts = (f"|{len(part)}:{part}".encode("utf-8", "surrogatepass") for part in key)
    return random.Random(hashlib.sha256(b"".join((str(seed).encode(), *parts))).digest())
