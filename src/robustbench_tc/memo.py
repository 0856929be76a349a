"""What was found about an object, kept with that very object."""

from collections.abc import Callable
from functools import update_wrapper
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Remembered(Generic[K, V]):
    """A function of one object that never changes, asked once for each, up to `limit` of them.

    Equal objects are asked about apart: nothing is compared or hashed. A result is shared: never change it.
    """

    def __init__(self, function: Callable[[K], V], limit: int) -> None:
        update_wrapper(self, function)
        self._function, self._limit = function, limit
        self._known: dict[int, tuple[K, V]] = {}
        """By address. An entry holds its object, so that no other can come to that address."""

    def __call__(self, one: K) -> V:
        found = self._known.get(id(one))
        if found is None:
            if len(self._known) >= self._limit:
                self._known.clear()
            found = self._known[id(one)] = (one, self._function(one))
        return found[1]

    def known(self, one: K) -> V | None:
        """What was found, if the object was asked about; nothing is asked or kept now."""
        found = self._known.get(id(one))
        return None if found is None else found[1]


def remembered(limit: int) -> Callable[[Callable[[K], V]], Remembered[K, V]]:
    """Decorator: the function as `Remembered`."""
    return lambda function: Remembered(function, limit)
