"""The facts of every source, as the other rooms read them, and what a source has left out."""

from collections.abc import Callable, Iterable

import msgspec

from robustbench_tc.sources import Source

from .base import Reader
from .pins import pins

_OF_THE_READER = {"name": "source"}
"""Facts that the reader has under another name."""


def facts(reader: Reader) -> Source:
    """The source's facts. Raises ValueError naming the source and what it does not state."""
    plain = {name: getattr(reader, _OF_THE_READER.get(name, name)) for name in Source.__struct_fields__}
    if left_out := [name for name, value in plain.items() if value is msgspec.UNSET]:
        raise ValueError(f"{reader.source}: its READER does not state {', '.join(left_out)}")
    try:
        return msgspec.convert(msgspec.to_builtins(plain), Source)
    except msgspec.ValidationError as error:
        raise ValueError(f"{reader.source}: {error}") from None


def problems(
    reader: Reader, readers: Iterable[Reader], has_scorer: Callable[[str], bool] | None = None
) -> list[str]:
    """What is wrong with the facts and pins of one source, one sentence each.

    `has_scorer`: whether there is a scorer of a name; None: unknown.
    """
    try:
        facts(reader)
    except ValueError as error:
        return [str(error)]
    wrong = []
    if not reader.files:
        wrong.append("it names no file")
    pinned = {pin.path for pin in pins().files}
    read = [*reader.files, *(map(reader.answers_of, reader.files) if reader.answers_of else ())]
    wrong += [f"{file} is not pinned in builders/data/pins.json" for file in read if file not in pinned]
    for other in readers:
        if other is not reader and other.order == reader.order:
            wrong.append(f"order {reader.order} is taken by {other.source}")
    if has_scorer is not None and not has_scorer(str(reader.scorer)):
        wrong.append(f"scorer names {reader.scorer!r}, and there is no such scorer or module:function")
    if "__" in reader.source or not reader.source.isidentifier():
        wrong.append("its name is a plain word without `__`: clean ids begin with it")
    return [f"{reader.source}: {one}" for one in wrong]


def all_facts(readers: Iterable[Reader], has_scorer: Callable[[str], bool]) -> tuple[Source, ...]:
    """The facts of every source, in order. Raises ValueError with every problem, one a line."""
    known = tuple(readers)
    if wrong := [one for reader in known for one in problems(reader, known, has_scorer)]:
        raise ValueError("\n".join(wrong))
    return tuple(facts(reader) for reader in known)
