"""Texts in place of texts, keyed: same shape, never the text itself, and different texts stay different.

The letters and digits of a text are one number in a mixed base. A keyed permutation takes the number to
another place, one step further, and back: a permutation without fixed points, so no text stays what it is
and no two become equal.
"""

from collections.abc import Callable, Sequence
from hashlib import shake_256
from string import ascii_lowercase, digits

ROUNDS = 6


def changed(key: bytes, label: str, text: str, keep: Callable[[int], bool] | None = None) -> str:
    """`text` in small letters, with its letters and digits in another place of what has its shape.

    `keep`: which places stay. Letters beyond a to z become some of those, without the promise that different
    texts stay different.
    """
    places = [at for at, char in enumerate(text) if char.isalnum() and not (keep and keep(at))]
    if not places:
        return text
    alphabets = [digits if text[at].isdecimal() else ascii_lowercase for at in places]
    inside = set(places)
    shape = "".join(
        ("0" if char.isdecimal() else "a") if at in inside else char for at, char in enumerate(text)
    )
    seed = b"\0".join([key, label.encode(), shape.encode()])
    if all(text[at] in alphabet for at, alphabet in zip(places, alphabets, strict=True)):
        number, size = 0, 1
        for at, alphabet in zip(places, alphabets, strict=True):
            number = number * len(alphabet) + alphabet.index(text[at])
            size *= len(alphabet)
        found = _written(step(seed, number, size), alphabets)
    else:
        stream = shake_256(seed + b"\0" + text.encode()).digest(2 * len(places))
        found = [alphabet[stream[n] % len(alphabet)] for n, alphabet in enumerate(alphabets)]
    out = list(text)
    for at, char in zip(places, found, strict=True):
        out[at] = char
    return "".join(out)


def _written(number: int, alphabets: Sequence[str]) -> list[str]:
    found = []
    for alphabet in reversed(alphabets):
        number, digit = divmod(number, len(alphabet))
        found.append(alphabet[digit])
    return found[::-1]


def step(seed: bytes, number: int, size: int) -> int:
    """Another number below `size`: the one after it in a keyed order of them all. `size` is at least 2."""
    half = max(1, ((size - 1).bit_length() + 1) // 2)

    def round_of(turn: int, side: int) -> int:
        given = seed + bytes([0, turn]) + side.to_bytes((half + 7) // 8, "big")
        return int.from_bytes(shake_256(given).digest((half + 7) // 8), "big") & ((1 << half) - 1)

    def walk(value: int, turns: Sequence[int], forward: bool) -> int:
        while True:  # until it falls into the range again: about every second value does
            left, right = value >> half, value & ((1 << half) - 1)
            for turn in turns:
                if forward:
                    left, right = right, left ^ round_of(turn, right)
                else:
                    left, right = right ^ round_of(turn, left), left
            value = left << half | right
            if value < size:
                return value

    there = walk(number, range(ROUNDS), True)
    return walk((there + 1) % size, range(ROUNDS)[::-1], False)
