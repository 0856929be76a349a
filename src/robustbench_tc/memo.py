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
        self.found: dict[int, tuple[K, V]] = {}
        """Object and result by address. An entry holds its object: no other can come to that address."""

    def __call__(self, one: K) -> V:
        found = self.found.get(id(one))
        if found is None:
            if len(self.found) >= self._limit:
                self.found.clear()
            found = self.found[id(one)] = (one, self._function(one))
        return found[1]

    def passing(self, one: K) -> V:
        """As the call, for an object that hardly comes again: what is found now is not kept."""
        found = self.found.get(id(one))
        return self._function(one) if found is None else found[1]


def remembered(limit: int) -> Callable[[Callable[[K], V]], Remembered[K, V]]:
    """Decorator: the function as `Remembered`."""
    return lambda function: Remembered(function, limit)
