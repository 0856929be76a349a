"""What can be seen of two worlds: the first read that they answer differently."""

import re
from collections.abc import Iterable

from robustbench_tc.schema import Json, dumps
from robustbench_tc.worlds.host import Handle
from robustbench_tc.worlds.same_state import state_hash

_ERROR = re.compile(r"^\s*(?:\{\s*\"error\"\s*:|Error during execution:)")


def failed(text: str) -> bool:
    """Whether a result says that the call failed: an object with an error in front, or upstream's words."""
    return _ERROR.match(text) is not None


async def hash_of(world: Handle) -> str:
    """Of the state that a world is in."""
    return state_hash((await world.snapshot()).state)


async def first_difference(
    one: Handle, other: Handle, reads: Iterable[tuple[str, dict[str, Json]]]
) -> str | None:
    """The first read that two worlds answer differently, tried in copies of them. A tool that is called a
    read and yet moves the world is passed over, and what it did is gone."""
    tried = [await one.copy(), await other.copy()]
    before = await hash_of(one)
    settled, moving = set[str](), set[str]()
    try:
        for name, arguments in reads:
            if name in moving:
                continue
            answers = [await world.call(name, arguments) for world in tried]
            if name not in settled and not failed(answers[0].text):
                if await hash_of(tried[0]) != before:
                    moving.add(name)
                    for world in tried:
                        await world.aclose()
                    tried = [await one.copy(), await other.copy()]
                    continue
                settled.add(name)
            if answers[0].text != answers[1].text and not any(answer.problem for answer in answers):
                return f"{name} {dumps(arguments)}"
    finally:
        for world in tried:
            await world.aclose()
    return None
