"""What a defence is: a row made into the one that is shown, and a reply into the one that is scored.

Defences stand in a chain, each in front of the next and the last in front of the model. Each sees the row and
the replies in its own words: what the ones before it changed is part of its row, what the ones behind it
change it never sees. A further request goes through all that stand behind it. Nothing here talks to an
endpoint: `chain` turns a pass of a row into requests, so that a run and the reading of its journal take the
same steps.
"""

from collections.abc import Callable, Generator, Sequence
from typing import ClassVar, NamedTuple, Protocol

import msgspec

from robustbench_tc.schema import Call, Json, Sample

from ..record import Answer


class Said(NamedTuple):
    """A reply in the words of one place in the chain."""

    answer: Answer
    inner: "Said | None" = None
    """The same reply one place nearer to the model; None at the model."""

    def outer(self, answer: Answer | None = None) -> "Said":
        """The reply one place further from the model: as it is, or as `answer`."""
        return Said(self.answer if answer is None else answer, self)


class Turn(NamedTuple):
    """A reply, and what its calls were answered with, in their order; None: with the row's own text."""

    said: Said
    results: tuple[str, ...] | None


class Request(NamedTuple):
    """One request to the model."""

    row: Sample
    """As the model is shown it."""
    turns: tuple[Turn, ...]
    draw: int = 0
    """Which of several samples of the same request, from 0."""


Asking = Generator[Request, Answer, Said]
"""Yields requests, is sent their answers, returns a reply."""


class Model(Protocol):
    """What stands behind a defence."""

    def __call__(self, turns: Sequence[Turn], draw: int = 0) -> Asking:
        """Its reply after these turns."""
        ...


class Scene(NamedTuple):
    """What a defence has to do with in one pass of a row."""

    row: Sample
    shown: Sample
    """What `before` made of it."""
    turns: tuple[Turn, ...]
    read: Callable[[Sample, Answer], tuple[Call, ...]]
    """The calls of an answer to a row, as the run's replies are read."""


class Defence:
    """One defence, as it was named: `vote:5` is `vote` with the argument 5. This one does nothing."""

    code: ClassVar[str]
    what: ClassVar[str]
    """One sentence for tables."""
    arguments: ClassVar[tuple[str, ...]] = ()
    """What may stand behind the colon; the first is meant where nothing does."""
    requests = 0
    """The most further requests in one pass."""
    modes: ClassVar[tuple[str, ...]] = ("prompt", "fc")

    def __init__(self, argument: str = "") -> None:
        self.argument = argument

    def before(self, row: Sample) -> Sample:
        """The row that is shown. Keeps its id, type and answered calls."""
        return row

    def after(self, scene: Scene, model: Model) -> Asking:
        """The reply of one pass."""
        said = yield from model(scene.turns)
        return said.outer()


def calling(answer: Answer, calls: Sequence[Call]) -> Answer:
    """An answer with other calls than its own, in the form of native ones: texts have no one form."""
    from robustbench_tc.schema import dumps

    made: list[dict[str, Json]] = [
        {"id": f"call_{number}", "name": call.name, "arguments": dumps(call.parameters)}
        for number, call in enumerate(calls)
    ]
    return msgspec.structs.replace(answer, text=None, tool_calls=made)
