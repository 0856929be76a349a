"""What a defence is, and a chain of them at work: a moment of a dialogue as the requests that it takes.

Defences stand in a chain, each in front of the next and the last in front of the model. Each sees the row and
the replies in its own words: what the ones before it changed is part of its row, what the ones behind it
change it never sees. A further request goes through all that stand behind it. Nothing here talks to an
endpoint, so that a run and the reading of its journal take the same steps.
"""

from collections.abc import Callable, Generator, Sequence
from math import prod
from typing import NamedTuple, Protocol

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


class Scene(NamedTuple):
    """What a defence has to do with in one pass of a row."""

    row: Sample
    shown: Sample
    """What `before` made of it."""
    turns: tuple[Turn, ...]
    read: Callable[[Sample, Answer], tuple[Call, ...]]
    """The calls of an answer to a row, as the run's replies are read."""
    noticed: set[str]
    """Codes of the defences that have said so far that something is wrong; the chain adds to it."""


def unchanged(row: Sample, way: str) -> Sample:
    """The row as it is."""
    return row


def passed_on(scene: Scene, model: Model, way: str) -> Asking:
    """The reply as it is."""
    said = yield from model(scene.turns)
    return said.outer()


class Defence(NamedTuple):
    """A row of the table of defences (`defend.DEFENCES`); as it was named: `vote:5` is `vote` that way."""

    code: str
    what: str
    """One sentence for tables."""
    before: Callable[[Sample, str], Sample] = unchanged
    """The row that is shown, which keeps its id, type and answered calls; of the row and the way."""
    after: Callable[[Scene, Model, str], Asking] = passed_on
    """The reply of one pass."""
    ways: tuple[str, ...] = ()
    """What may stand behind the colon; the first is meant where nothing does."""
    requests: int = 0
    """The most further requests in one pass."""
    modes: tuple[str, ...] = ("prompt", "fc")
    notices: bool = False
    """Whether it says that something is wrong by acting at all: by showing another row, or by asking the
    model other than once."""
    way: str = ""


Chain = Sequence[Defence]


def total(answers: Sequence[Answer], name: str) -> Json:
    """The sum of a field that not every answer has; None where none has it."""
    there = [value for one in answers if (value := getattr(one, name)) is not None]
    return sum(there) if there else None


def finished(said: Said, scene: Scene, asked: Sequence[Answer], *, repeat: int, number: int) -> Said:
    """What a moment ends with: the reply that counts, whether it calls, and the tokens and the time of all
    requests `asked`."""
    calls = said.answer.status == "ok" and bool(scene.read(scene.row, said.answer))
    answer = msgspec.structs.replace(
        said.answer,
        repeat=repeat,
        number=number,
        has_call=calls,
        prompt_tokens=total(asked, "prompt_tokens"),
        completion_tokens=total(asked, "completion_tokens"),
        latency_s=total(asked, "latency_s"),
        retries=sum(one.retries for one in asked),
    )
    return Said(answer, said.inner)


def shown(chain: Chain, row: Sample, noticed: set[str] | None = None) -> Sample:
    """The row that the model is shown. `noticed` gets the codes of those that thereby say that something is
    wrong."""
    for one in chain:
        given, row = row, one.before(row, one.way)
        if noticed is not None and one.notices and row != given:
            noticed.add(one.code)
    return row


def budget(chain: Chain) -> int:
    """The most requests that one pass of a row takes: a further one goes through all that stand behind."""
    return prod(1 + one.requests for one in chain)


def reply(chain: Chain, scene: Scene, draw: int = 0) -> Asking:
    """The reply of a model behind these defences, in the words of the scene's row."""
    row, _, turns, read, noticed = scene
    if not chain:
        answer = yield Request(row, turns, draw)
        return Said(answer)
    first, rest = chain[0], chain[1:]
    before = first.before(row, first.way)
    asked = 0

    def model(turns: Sequence[Turn], draw: int = draw) -> Asking:
        nonlocal asked
        asked += 1
        inner = tuple(Turn(turn.said.inner or turn.said, turn.results) for turn in turns)
        return reply(rest, Scene(before, before, inner, read, noticed), draw)

    said = yield from first.after(Scene(row, before, tuple(turns), read, noticed), model, first.way)
    # The row's own error is seen once a call was answered with it.
    answered = asked > 0 and any(turn.results is None for turn in turns)
    seen = before if answered else msgspec.structs.replace(before, injected_error=row.injected_error)
    if first.notices and (asked != 1 or seen != row):
        noticed.add(first.code)
    return said
