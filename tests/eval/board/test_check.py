"""`check` writes the same bytes whatever happens: killed anywhere, in any order, in any number of processes."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from robustbench_tc.eval.board.place import Hub

from .conftest import RunOf
from .hubs import Results

POINTS = 20


def killed_at(point: int, work: Callable[[], object], owner: Any, name: str) -> int:
    """Does the work in a child that dies by SIGKILL at a point: before or after a use of the context manager
    `owner.name`. How many points the child passed."""
    reading, writing = os.pipe()
    if not (child := os.fork()):
        real: Callable[..., AbstractContextManager[Any]] = getattr(owner, name)

        def reached() -> None:
            os.write(writing, b".")
            if os.fstat(writing).st_size == -1 or next(count) == point:
                os.kill(os.getpid(), signal.SIGKILL)

        @contextmanager
        def counting(*args: Any, **how: Any) -> Iterator[Any]:
            reached()
            with real(*args, **how) as given:
                yield given
            reached()

        count = iter(range(10_000))
        setattr(owner, name, counting)
        work()
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        passed = len(pipe.read())
    os.waitpid(child, 0)
    return passed


def points(total: int) -> list[int]:
    return sorted({round(at * (total - 1) / (POINTS - 1)) for at in range(POINTS)})


def test_a_killed_check_is_made_good_by_the_next(listed: Results, local_run_of: RunOf, run_of: RunOf) -> None:
    """With a run to answer, one to enter, and one that came otherwise than it was checked."""
    listed.submit(local_run_of("oracle"))
    bad = listed.push(
        {f"runs/m/A/20261120-0123456789ab/{name}": b"x" for name in ("run.json", "submission.yaml")}
    )
    listed.submit(local_run_of("oracle", mode="fc"))
    changed = listed.submit(local_run_of("gives-up-on-error", mode="fc")).number
    assert changed is not None
    listed.check()
    listed.push(
        {"status.yaml": b"format: 1\ndataset: evil\n"}, onto=changed, token="hf_ada_of_lab_0123456789"
    )
    listed.merge(2)
    listed.merge(changed)
    listed.submit(local_run_of("liar" if False else "copies-previous"))

    def after(result: Results) -> tuple[object, ...]:
        result.check()
        return (result.files, *(result.comments(number) for number in range(1, 7)))

    total = killed_at(-1, listed.copy("acme/counted").check, Hub, "_asking")
    wanted = after(listed.copy("acme/whole"))
    assert len(points(total)) == POINTS
    for point in points(total):
        copy = listed.copy(f"acme/killed-{point}")
        assert killed_at(point, copy.check, Hub, "_asking") == point + 1
        assert after(copy) == wanted, point
    assert len(listed.copy("acme/again").read()[0]) == 1 and bad
