"""Packages that are imported when something of them is used for the first time, not when they are named.

Great Expectations imports scipy.stats and altair for one expectation and two metrics that the gate does not
ask for: nearly half of the processor time of importing it.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any


class _StandIn(ModuleType):
    """Has whatever the module has, from the moment that it is asked for."""

    def __getattr__(self, name: str) -> Any:
        _give_back(self)
        return getattr(import_module(self.__name__), name)


@contextmanager
def postponed(*names: str) -> Iterator[None]:
    """Whoever imports one of the modules in this block holds a stand-in; after it others get the module.

    A module that was imported before is left as it is.
    """
    stand_ins = [_put(name) for name in names if name not in sys.modules]
    try:
        yield
    finally:
        for stand_in in stand_ins:
            _give_back(stand_in)


def _put(name: str) -> _StandIn:
    stand_in = _StandIn(name)
    package, _, last = name.rpartition(".")
    if package:
        setattr(import_module(package), last, stand_in)
    sys.modules[name] = stand_in
    return stand_in


def _give_back(stand_in: _StandIn) -> None:
    """Makes the name free for the module itself, if that is not there yet."""
    name = stand_in.__name__
    package, _, last = name.rpartition(".")
    if sys.modules.get(name) is stand_in:
        del sys.modules[name]
    if package and vars(sys.modules[package]).get(last) is stand_in:
        delattr(sys.modules[package], last)
