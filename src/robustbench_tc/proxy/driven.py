"""A program of the user's, run once for each row behind the LLM door: for frameworks that own their loop.

The request is the clean one, on standard input, as `--command` gives it; the door makes the row of it on the
way to the model. OPENAI_BASE_URL and X-RBTC's session are in the environment, the verdicts in the journal.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple
from urllib.parse import quote

from robustbench_tc import seeding, taxonomy
from robustbench_tc.eval import wire
from robustbench_tc.eval.callables.backend import task_of
from robustbench_tc.eval.callables.command import Commands, Failed
from robustbench_tc.eval.callables.invocation import Invocation
from robustbench_tc.schema import Sample
from robustbench_tc.shown import Line, Part

from .scored import Scored
from .session import Session


class Ran(NamedTuple):
    """What became of the programs, and the run that was made of the journal."""

    there: int
    """Sessions that the journal had already."""
    failures: dict[str, int]
    """Why programs ended badly: the row counts by what the journal has of it."""
    scored: Scored

    def shown(self) -> Iterator[Part]:
        """What went wrong, and where the run is."""
        for reason, count in (*self.failures.items(), *self.scored.failures.items()):
            yield Line(f"{count} × {reason}", aside=True)
        if self.there:
            yield Line(f"{self.there} sessions were in the journal already", aside=True)
        where = self.scored.folder.path
        yield f"{self.scored.predictions} predictions in {where}; `rbtc report` and `rbtc gate` read it"


def sessions(rows: Sequence[Sample], types: Sequence[str]) -> list[tuple[Session, Sample, Sample]]:
    """For each row its session and its clean row, in the dataset's order."""
    clean = {row.clean_id: row for row in rows if row.type_code == taxonomy.CLEAN}
    return [
        (Session(row.clean_id, types.index(row.type_code)), clean[row.clean_id], row)
        for row in rows
        if row.type_code in types and row.clean_id in clean
    ]


async def drive(
    words: Sequence[str],
    wanted: Sequence[tuple[Session, Sample, Sample]],
    url: str,
    *,
    there: Collection[str],
    at_once: int,
    timeout_s: float,
    progress: Callable[[int], None],
) -> dict[str, int]:
    """Runs the program for every session that is not `there`; why programs ended badly. `url`: the door's, up
    to `/v1`."""
    slots, failures, done = asyncio.Semaphore(at_once), Counter[str](), 0

    async def one(session: Session, clean: Sample) -> None:
        nonlocal done
        async with slots:
            base = f"{url.removesuffix('/v1')}/s/{quote(str(session), safe='')}/v1"
            try:
                # The clean request: the program has tools of its own, no call comes back to the harness.
                task = task_of(
                    clean,
                    wire.first(clean, "fc"),
                    Invocation(clean, 1, {}),
                    session=f"{seeding.rng(0, 'door', 'session', str(session)).getrandbits(64):016x}",
                    seed=seeding.rng(0, "door", "seed", clean.clean_id).getrandbits(31),
                )
                await Commands(words, {"OPENAI_BASE_URL": base}).run(task, timeout_s)
            except TimeoutError:
                failures[f"it took longer than {timeout_s:g} s"] += 1
            except Failed as failed:
                failures[str(failed)] += 1
        done += 1
        progress(done)

    async with asyncio.TaskGroup() as group:
        for session, clean, _ in wanted:
            if str(session) not in there:
                group.create_task(one(session, clean))
    return dict(failures.most_common())
