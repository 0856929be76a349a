"""`check` in a process of its own, with the limits of an episode: a file that is tried may do anything.

found = asyncio.run(check_apart(Path("library.py")))
"""

from pathlib import Path

from .find import find
from .host import CALL_SECONDS
from .processes import Lost, Parent

STEP_SECONDS = 4 * CALL_SECONDS
"""One step makes a call of gold up to twice over, after those before it."""

MOST_MISTAKES = 100
LONGEST = 1_000
"""Characters of a mistake: its text may come from the file."""


async def check_apart(file: Path, *, seconds: float = STEP_SECONDS) -> list[str]:
    """The mistakes in a world's file, each in one line; [] where it can be built and run.

    What hangs, ends its process or takes too much memory is a mistake that names the task and its call.
    Raises UserError for a file that cannot be imported.
    """
    world = find(str(file))
    parent = await Parent.start(world, "check")
    found: list[str] = []
    place = "its class"
    try:
        child = parent.fork()
        while len(found) < MOST_MISTAKES:
            # The child's own alarm is for a host that is gone: the host cuts off first.
            said = await child.ask(str(2 * seconds), seconds)
            if "mistake" in said:
                found.append(" ".join(str(said["mistake"]).split())[:LONGEST])
            elif "at" in said:
                place = str(said["at"])
            else:
                break
    except Lost as lost:
        why = f"takes more than {seconds:g} s" if lost.why == "timeout" else "ends its process"
        found.append(f"{world.file}: {place[:LONGEST]}: {why}: nothing after it was tried")
    finally:
        await parent.stop()
    return found
