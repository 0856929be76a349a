# ruff: noqa: T201 - a report for the terminal
"""Mutation run: does each area's own test suite notice when its code is wrong?

    make mutation                                 # 40 mutants each of perturb, score, parse, stats, audits
    python scripts/mutation_run.py --area score --mutants 10 --seed 1

Mutants are Cosmic Ray's (one changed operator, constant, condition …), drawn with a fixed seed: first a place
in the area's code, then one of the changes possible there; annotations are left out, since nothing runs them.
Each is written into a copy of the checkout, and the area's tests run there until the first failure: those
that run the changed line (as a run under `coverage` saw), files that take less time first; then the others,
which may reach it in another process. A survivor is either killed by a new test or listed in
`tests/equivalent_mutants.toml` with its reason; a listed one is not run again, and counts as a survivor.
Exit code 1 where an area kills less than 85 %, or where a survivor is not listed.

Verdicts are kept in out/mutation/AREA.jsonl, so an interrupted run goes on where it stopped. After a change
of code every mutant is run again, the test that killed it before others. After a change of an area's tests a
killed mutant stays so while the file that killed it is the same, and a survivor meets the changed files only.
What `coverage` saw is kept too, and only says which tests run first: after a change it is not taken again,
but at the end the tests that killed mutants have to pass without one. `--fresh` forgets both.
"""

import argparse
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from mutants import AREAS, Mutant, drawn
from mutation_copy import Copy
from mutation_suite import ENDLESS, FAILED, KEPT, SURVIVED, Suite, Verdict

KILLED_AT_LEAST = 0.85


def judge(area: str, mutants: Sequence[Mutant], copies: Sequence[Copy]) -> bool:
    """Prints an area's survivors and its line of the table; whether it meets the bar."""
    start, suite = time.monotonic(), Suite(area, copies[0])
    idle: SimpleQueue[Copy] = SimpleQueue()
    for copy in copies:
        idle.put(copy)
    print(
        f"{area}: {len(suite.times)} tests, {suite.computing:.0f} s of computing under coverage", flush=True
    )

    def judged(mutant: Mutant) -> tuple[Mutant, Verdict]:
        copy = idle.get()
        try:
            return mutant, suite.verdict(mutant, copy)
        finally:
            idle.put(copy)

    survivors, verdicts = [], list[Verdict]()
    pool = ThreadPoolExecutor(len(copies))
    try:
        for done, (mutant, found) in enumerate(pool.map(judged, mutants), 1):
            verdicts.append(found)
            if found.state != FAILED:
                print(f"  {found.state}: {mutant.path}:{mutant.line} {mutant.operator}", flush=True)
                print(f"    - {mutant.before}\n    + {mutant.after}", flush=True)
            if found.state == SURVIVED:
                survivors.append(mutant)
            if done % 10 == 0:
                print(f"  {done} of {len(mutants)}: {len(survivors)} survived", flush=True)
        suite.confirm(verdicts, copies[0])
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for copy in copies:
            copy.stop()
        pool.shutdown()
        raise
    pool.shutdown()
    equivalent = sum(one.key in suite.equivalent for one in survivors)
    killed = len(mutants) - len(survivors)
    states, elsewhere = Counter(v.state for v in verdicts), sum(not v.runs_the_line for v in verdicts)
    print(
        f"{area}: {killed} of {len(mutants)} killed ({killed / len(mutants):.1%}; {states[ENDLESS]} by the "
        f"time limit, {elsewhere} by tests that do not run the line here), {len(survivors)} survived, "
        f"{equivalent} of them listed as equivalent; {time.monotonic() - start:.0f} s",
        flush=True,
    )
    return killed >= KILLED_AT_LEAST * len(mutants) and equivalent == len(survivors)


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not 1 or more")
    return number


def main() -> int:
    """Prints the table and the survivors; the exit code is the verdict."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--area", action="append", choices=sorted(AREAS), help="default: every area")
    options.add_argument("--mutants", type=_positive, default=40)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--num-proc", type=_positive, default=2)
    options.add_argument("--fresh", action="store_true", help="forget the verdicts in out/mutation")
    given = options.parse_args()
    if given.fresh:
        shutil.rmtree(KEPT, ignore_errors=True)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="rbtc-mutants-") as scratch:
        copies = [Copy(Path(scratch) / f"copy{number}") for number in range(given.num_proc)]
        try:
            good = [
                judge(area, drawn(area, given.mutants, given.seed), copies) for area in given.area or AREAS
            ]
        except KeyboardInterrupt:
            print(f"interrupted: the verdicts so far are in {KEPT}; the same command goes on", flush=True)
            return 130
        finally:
            for copy in copies:
                copy.stop()
    return int(not all(good))


if __name__ == "__main__":
    sys.exit(main())
