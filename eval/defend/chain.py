"""A chain of defences at work: a pass of a row as the requests that it takes."""

from collections.abc import Callable, Iterable, Sequence

import msgspec

from robustbench_tc.schema import Sample

from ..record import Answer
from .base import Asking, Defence, Request, Said, Scene, Turn

Chain = Sequence[Defence]

Kept = Callable[[int], Answer | None]
"""The recorded answer to a pass's request of this number, from 0; None where there is none."""


def replay(chain: Chain, scene: Scene, kept: Kept, *, repeat: int) -> Said | None:
    """A pass from recorded answers alone; None where one is missing."""
    number, asked = len(scene.turns) + 1, list[Answer]()
    steps = reply(chain, scene)
    try:
        next(steps)
        while True:
            found = kept(len(asked))
            if found is None:
                return None
            asked.append(found)
            steps.send(found)
    except StopIteration as end:
        return finished(end.value, scene, asked, repeat=repeat, number=number) if chain else end.value


def finished(said: Said, scene: Scene, asked: Iterable[Answer], *, repeat: int, number: int) -> Said:
    """What a pass ends with: the reply that counts, and whether it calls."""
    answer = together(said, asked, repeat=repeat, number=number)
    calls = answer.status == "ok" and bool(scene.read(scene.row, answer))
    return Said(msgspec.structs.replace(answer, has_call=calls), said.inner)


def shown(chain: Chain, row: Sample) -> Sample:
    """The row that the model is shown."""
    for one in chain:
        row = one.before(row)
    return row


def budget(chain: Chain) -> int:
    """The most requests that one pass of a row takes: a further one goes through all that stand behind."""
    most = 1
    for one in reversed(chain):
        most *= 1 + one.requests
    return most


def reply(chain: Chain, scene: Scene, draw: int = 0) -> Asking:
    """The reply of a model behind these defences, in the words of the scene's row."""
    row, _, turns, read = scene
    if not chain:
        answer = yield Request(row, turns, draw)
        return Said(answer)
    first, rest = chain[0], chain[1:]
    before = first.before(row)

    def model(turns: Sequence[Turn], draw: int = draw) -> Asking:
        inner = tuple(Turn(_inner(turn.said), turn.results) for turn in turns)
        return reply(rest, Scene(before, before, inner, read), draw)

    said = yield from first.after(Scene(row, before, tuple(turns), read), model)
    return said


def _inner(said: Said) -> Said:
    if said.inner is None:
        raise ValueError("a reply without the one that it was made of")
    return said.inner


def together(said: Said, asked: Iterable[Answer], *, repeat: int, number: int) -> Answer:
    """The answer of a pass: the reply, with the tokens and the time of all requests of the pass."""
    every = list(asked)

    def total(name: str) -> int | None:
        there = [value for one in every if (value := getattr(one, name)) is not None]
        return sum(there) if there else None

    return msgspec.structs.replace(
        said.answer,
        repeat=repeat,
        number=number,
        prompt_tokens=total("prompt_tokens"),
        completion_tokens=total("completion_tokens"),
        latency_s=total("latency_s"),
        retries=sum(one.retries for one in every),
    )
