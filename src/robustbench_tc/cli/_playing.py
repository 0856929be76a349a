"""What stands around `rbtc live run` while it plays: a bar of episodes, and what Ctrl-C leaves."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ..option import Verb
from . import _console

if TYPE_CHECKING:
    from ..eval.live.evaluate import Played


@contextmanager
def playing(verb: Verb, values: dict[str, Any]) -> "Iterator[dict[str, Any]]":
    """Yields what gets the run, and what gets each state; after Ctrl-C says what was kept."""
    from .eval import bar

    begun: list[Played] = []

    def kept() -> str:
        return f"{begun[0].how_far}; the same command goes on" if begun else "nothing was begun"

    with _console.keeping(kept), bar(True) as tell:
        yield {"started": begun.append, "progress": tell}
