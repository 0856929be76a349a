"""A program of the user's, run once for each row behind the LLM door: for frameworks that own their loop.

The request is the clean one, on standard input, as `--command` gives it; the door makes the row of it on the
way to the model. OPENAI_BASE_URL and X-RBTC's session are in the environment, the verdicts in the journal.
"""

import asyncio
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple
from urllib.parse import quote

from robustbench_tc import seeding, taxonomy
from robustbench_tc.eval import wire
from robustbench_tc.eval.callables import command
from robustbench_tc.eval.callables.agent import task_of
from robustbench_tc.eval.callables.invocation import Invocation
from robustbench_tc.eval.callables.task import Failed
from robustbench_tc.option import Tell
from robustbench_tc.schema import Sample
from robustbench_tc.shown import Line, Part

from .plan import Session
from .scored import Scored


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
        yield (
            f"{self.scored.predictions} predictions in {self.scored.folder.path}; `rbtc report` and "
            "`rbtc gate` read it"
        )


async def drive(
    words: Sequence[str],
    rows: Sequence[Sample],
    types: Sequence[str],
    url: str,
    *,
    there: Collection[str],
    at_once: int,
    timeout_s: float,
    progress: Tell,
) -> tuple[int, dict[str, int]]:
    """Runs the program for each row of these types whose session is not `there`.

    `url`: the door's, up to `/v1`. Returns how many sessions were there, and why programs ended badly.
    """
    slots, failures, done = asyncio.Semaphore(at_once), Counter[str](), 0
    clean = {row.clean_id: row for row in rows if row.type_code == taxonomy.CLEAN}
    wanted = [
        (Session(row.clean_id, types.index(row.type_code)), clean[row.clean_id])
        for row in rows
        if row.type_code in types and row.clean_id in clean
    ]
    left = [(session, row) for session, row in wanted if str(session) not in there]

    async def one(session: Session, row: Sample) -> None:
        nonlocal done
        async with slots:
            base = f"{url.removesuffix('/v1')}/s/{quote(str(session), safe='')}/v1"
            # The clean request: the program has tools of its own, no call comes back to the harness.
            task = task_of(
                row,
                wire.first(row, "fc"),
                Invocation(row, 1, {}),
                session=f"{seeding.rng(0, 'door', 'session', str(session)).getrandbits(64):016x}",
                seed=seeding.rng(0, "door", "seed", row.clean_id).getrandbits(31),
            )
            try:
                await command.run(words, task, timeout_s, {"OPENAI_BASE_URL": base})
            except TimeoutError:
                failures[f"it took longer than {timeout_s:g} s"] += 1
            except Failed as failed:
                failures[str(failed)] += 1
        done += 1
        progress(f"{done} of {len(left)} rows")

    async with asyncio.TaskGroup() as group:
        for session, row in left:
            group.create_task(one(session, row))
    return len(wanted) - len(left), dict(failures.most_common())
