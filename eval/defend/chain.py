"""A chain of defences at work: a moment of a dialogue as the requests that it takes."""

from collections.abc import Sequence

import msgspec

from robustbench_tc.schema import Sample

from ..record import Answer
from .base import Asking, Defence, Request, Said, Scene, Turn

Chain = Sequence[Defence]


def finished(said: Said, scene: Scene, asked: Sequence[Answer], *, repeat: int, number: int) -> Said:
    """What a moment ends with: the reply that counts, whether it calls, and the tokens and the time of all
    requests `asked`."""

    def total(name: str) -> int | None:
        there = [value for one in asked if (value := getattr(one, name)) is not None]
        return sum(there) if there else None

    calls = said.answer.status == "ok" and bool(scene.read(scene.row, said.answer))
    answer = msgspec.structs.replace(
        said.answer,
        repeat=repeat,
        number=number,
        has_call=calls,
        prompt_tokens=total("prompt_tokens"),
        completion_tokens=total("completion_tokens"),
        latency_s=total("latency_s"),
        retries=sum(one.retries for one in asked),
    )
    return Said(answer, said.inner)


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
