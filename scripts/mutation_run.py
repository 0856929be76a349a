# ruff: noqa: T201 - a report for the terminal
"""Mutation run: does each area's own test suite notice when its code is wrong?

    make mutation                                 # 40 mutants each of perturb, score, parse, stats, audits
    python scripts/mutation_run.py --area score --mutants 10 --seed 1

Mutants are Cosmic Ray's (one changed operator, constant, condition …), drawn with a fixed seed: first a place
in the area's code, then one of the changes possible there; annotations are left out, since nothing runs them.
Each is written into a copy of the checkout, and the area's tests run there until the first failure: those
that run the changed line (as a run under `coverage` saw), files that take less time first; then the others,
which may reach it in another process. A survivor is either killed by a new test or listed in
`tests/equivalent_mutants.toml` with its reason. Exit code 1 where an area kills less than 85 %, or where a
survivor is not listed.

Verdicts are kept in out/mutation/AREA.jsonl, so an interrupted run goes on where it stopped. They hold for
the same code and tests; after a change every mutant is run again, the test that killed it before others.
`--fresh` forgets them.
"""

import argparse
import contextlib
import hashlib
import json
import resource
import shutil
import signal
import sys
import tempfile
import threading
import time
import tomllib
from collections import Counter, defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

import mutation_plugin as plugin
from coverage import CoverageData
from mutants import AREAS, ROOT, Mutant, drawn
from mutation_copy import TIMED_OUT, Copy, tracked

LISTED = ROOT / "tests" / "equivalent_mutants.toml"
KEPT = ROOT / "out" / "mutation"
KILLED_AT_LEAST = 0.85
TIMEOUT_S, TIMEOUT_TIMES = 900.0, 8
COMPUTING_S, COMPUTING_TIMES = 60, 4
"""A mutant loops, and so is killed, if its tests take longer than both (seconds; times the whole suite under
coverage), or compute longer than both: far above what the suite takes, so that a busy machine kills none."""

SURVIVED, FAILED, ENDLESS = "survived", "failed", "timed out"


class Verdict(NamedTuple):
    """What the area's tests said about a mutant."""

    state: str
    test: str = ""
    """The first test that failed."""
    runs_the_line: bool = True
    """Whether the mutant was killed by the tests that run the changed line."""


class Suite:
    """The tests of an area, passing without a mutant: their seconds, and which lines they run."""

    def __init__(self, area: str, copy: Copy) -> None:
        self.area = area
        self.checkout = digest(area)
        self.kept = {name: KEPT / f"{area}.{name}" for name in ("json", "coverage", "jsonl")}
        self.before = _kept_verdicts(self.kept["jsonl"])
        found = json.loads(self.kept["json"].read_text("utf-8")) if self.kept["json"].is_file() else {}
        if found.get("checkout") != self.checkout:
            found = self._measured(copy)
        self.seconds: float = found["seconds"]
        self.computing: float = found["computing"]
        self.times: dict[str, float] = found["times"]
        self.lines = CoverageData(str(self.kept["coverage"]))
        self.lines.read()
        self.writing = threading.Lock()

    def _measured(self, copy: Copy) -> dict[str, object]:
        """Runs the whole suite under coverage. Ends where a test fails without a mutant."""
        settings = copy.path / "mutation.coveragerc"
        places = "\n    ".join(AREAS[self.area].code)
        settings.write_text(f"[run]\nrelative_files = true\nsource =\n    {places}\n", "utf-8")
        start, used = time.monotonic(), _computed()
        if copy.measured(_files(self.area, copy.path), settings) != 0:
            raise SystemExit(
                f"the tests of {self.area} fail without a mutant, fix them first:\n{copy.said()}"
            )
        KEPT.mkdir(parents=True, exist_ok=True)
        shutil.copy2(copy.path / ".coverage", self.kept["coverage"])
        found = {
            "checkout": self.checkout,
            "seconds": round(time.monotonic() - start, 1),
            "computing": round(_computed() - used, 1),
            "times": json.loads((copy.path / plugin.TIMES).read_text("utf-8")),
        }
        self.kept["json"].write_text(json.dumps(found), "utf-8")
        return found

    @property
    def limits(self) -> tuple[float, int]:
        """Seconds in all, and of computing, after which a mutant's tests do not end."""
        computing = max(COMPUTING_S, round(COMPUTING_TIMES * self.computing))
        return max(TIMEOUT_S, TIMEOUT_TIMES * self.seconds), computing

    def covering(self, mutant: Mutant) -> list[str]:
        """The tests that run the mutant's line; of a line run on import only, those that run its file.

        Those of the file that takes least come first, but for the test that killed the mutant before.
        """
        by_line = self.lines.contexts_by_lineno(mutant.path)
        here = set(by_line.get(mutant.line, ())) - {""}
        chosen = [t for t in self.times if t in (here or set().union(*by_line.values()))]
        cost: defaultdict[str, float] = defaultdict(float)
        for test in chosen:
            cost[test.split("::")[0]] += self.times[test]
        killer = self.before.get(mutant.digest, {}).get("test", "")
        first = [killer] if killer in self.times else []
        return first + sorted((t for t in chosen if t != killer), key=lambda t: cost[t.split("::")[0]])

    def verdict(self, mutant: Mutant, copy: Copy) -> Verdict:
        """Runs the area's tests with the mutant in place of its file; what is known already is not run."""
        known = self.before.get(mutant.digest, {})
        if known.get("checkout") == self.checkout:
            return Verdict(known["state"], known["test"], known["runs_the_line"] == "yes")
        first, everything = self.covering(mutant), _files(self.area, copy.path)
        found, start = Verdict(SURVIVED), time.monotonic()
        with copy.holding(mutant.path, mutant.source):
            for here in (True, False):
                files = list(dict.fromkeys(t.split("::")[0] for t in first)) if here else everything
                if files and (
                    code := copy.tests(files, plugin.ONLY if here else plugin.NOT, first, self.limits)
                ):
                    found = Verdict(ENDLESS if code == TIMED_OUT else FAILED, copy.failed(), here)
                    break
        self._keep(mutant, found, time.monotonic() - start)
        return found

    def _keep(self, mutant: Mutant, found: Verdict, seconds: float) -> None:
        line = {
            "mutant": mutant.digest,
            "checkout": self.checkout,
            "place": f"{mutant.path}:{mutant.line}",
            "operator": mutant.operator,
            "before": mutant.before,
            "after": mutant.after,
            "state": found.state,
            "test": found.test,
            "runs_the_line": "yes" if found.runs_the_line else "no",
            "seconds": round(seconds, 1),
        }
        with self.writing, self.kept["jsonl"].open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def _kept_verdicts(path: Path) -> dict[str, dict[str, str]]:
    """The last verdict on each mutant. A line that an interruption cut off does not count."""
    found: dict[str, dict[str, str]] = {}
    for line in path.read_text("utf-8").splitlines() if path.is_file() else ():
        with contextlib.suppress(ValueError):
            one = json.loads(line)
            found[one["mutant"]] = one
    return found


def _computed() -> float:
    """Seconds of computing of all processes that this one waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _files(area: str, folder: Path) -> list[str]:
    patterns = (f"{p}/**/test_*.py" if (folder / p).is_dir() else p for p in AREAS[area].tests)
    return sorted({str(p.relative_to(folder)) for pattern in patterns for p in folder.glob(pattern)})


def digest(area: str) -> str:
    """Of everything that may change an area's verdicts: all but this run and other areas' tests."""
    own = set(_files(area, ROOT))
    found = hashlib.sha256()
    for name in sorted(tracked()):
        path = Path(name)
        other = path.parts[0] == "tests" and path.name.startswith("test_") and name not in own
        run = path.parts[0] == "scripts" and path.name.startswith("muta")
        if not (other or run or ROOT / name == LISTED):
            link = (ROOT / name).is_symlink()
            content = bytes((ROOT / name).readlink()) if link else (ROOT / name).read_bytes()
            found.update(name.encode() + b"\0" + hashlib.sha256(content).digest())
    return found.hexdigest()[:20]


def listed() -> dict[tuple[str, str, str], str]:
    """Equivalent mutants with their reasons."""
    if not LISTED.is_file():
        return {}
    entries = tomllib.loads(LISTED.read_text("utf-8")).get("mutant", [])
    return {(one["path"], one["before"], one["after"]): one["reason"] for one in entries}


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

    survivors, states, elsewhere = [], Counter[str](), 0
    pool = ThreadPoolExecutor(len(copies))
    try:
        for done, (mutant, found) in enumerate(pool.map(judged, mutants), 1):
            states[found.state] += 1
            elsewhere += not found.runs_the_line
            if found.state != FAILED:
                print(f"  {found.state}: {mutant.path}:{mutant.line} {mutant.operator}", flush=True)
                print(f"    - {mutant.before}\n    + {mutant.after}", flush=True)
            if found.state == SURVIVED:
                survivors.append(mutant)
            if done % 10 == 0:
                print(f"  {done} of {len(mutants)}: {len(survivors)} survived", flush=True)
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for copy in copies:
            copy.stop()
        pool.shutdown()
        raise
    pool.shutdown()
    equivalent = sum(one.key in listed() for one in survivors)
    killed = len(mutants) - len(survivors)
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
