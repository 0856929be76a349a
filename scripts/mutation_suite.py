"""The tests of an area: which lines they run, how long they take, and what they say about a mutant."""

import contextlib
import hashlib
import json
import re
import resource
import shutil
import threading
import time
import tomllib
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import mutation_plugin as plugin
from coverage import CoverageData
from mutants import AREAS, ROOT, Mutant
from mutation_copy import TIMED_OUT, Copy, tracked

LISTED = ROOT / "tests" / "equivalent_mutants.toml"
PAGE = ROOT / "docs" / "extending.md"
"""Where the figures of the last run stand."""
KEPT = ROOT / "out" / "mutation"
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
    """The tests of an area: their seconds, and which lines they run.

    Both were measured once, perhaps at older code and tests. They say what is run first and what is endless;
    they settle no verdict, because every test runs before a mutant counts as a survivor.
    """

    def __init__(self, area: str, copy: Copy) -> None:
        self.area = area
        self.checkout, self.files = digest(area), hashes(area)
        self.kept = {name: KEPT / f"{area}.{name}" for name in ("json", "coverage", "jsonl")}
        self.before = _kept_verdicts(self.kept["jsonl"])
        self.equivalent = listed()
        found = json.loads(self.kept["json"].read_text("utf-8")) if self.kept["json"].is_file() else {}
        if "files" not in found:
            found = self._measured(copy)
        self.measured_here = (found["checkout"], found.get("tests")) == (self.checkout, self.files)
        same = {path for path, known in found["files"].items() if _sha256(path) == known}
        self.unchanged = frozenset(same)
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
            "tests": self.files,
            "seconds": round(time.monotonic() - start, 1),
            "computing": round(_computed() - used, 1),
            "times": json.loads((copy.path / plugin.TIMES).read_text("utf-8")),
            "files": {path: _sha256(path) for path in tracked() if path.startswith(AREAS[self.area].code)},
        }
        self.kept["json"].write_text(json.dumps(found), "utf-8")
        return found

    @property
    def limits(self) -> tuple[float, int]:
        """Seconds in all, and of computing, after which a mutant's tests do not end."""
        computing = max(COMPUTING_S, round(COMPUTING_TIMES * self.computing))
        return max(TIMEOUT_S, TIMEOUT_TIMES * self.seconds), computing

    def covering(self, mutant: Mutant) -> list[str]:
        """The tests that run the mutant's line; those that run its file, where the line is run on import only
        or the file has changed since it was measured.

        Those of the file that takes least come first, but for the test that killed the mutant before.
        """
        by_line = self.lines.contexts_by_lineno(mutant.path)
        here = set(by_line.get(mutant.line, ())) - {""} if mutant.path in self.unchanged else set()
        here = here or set().union(*by_line.values())
        chosen = [t for t in self.times if t in here and _file(t) in self.files]
        cost = self._cost(chosen)
        killer = self.before.get(mutant.digest, {}).get("test", "")
        first = [killer] if _file(killer) in self.files else []
        return first + sorted((t for t in chosen if t != killer), key=lambda t: cost[_file(t)])

    def _cost(self, tests: Iterable[str]) -> dict[str, float]:
        """Seconds of each file; a file that was not measured, and so is new, takes none."""
        cost: defaultdict[str, float] = defaultdict(float)
        for test in tests:
            cost[_file(test)] += self.times[test]
        return cost

    def everything(self) -> list[str]:
        """The files of tests, those that take least first."""
        cost = self._cost(self.times)
        return sorted(self.files, key=lambda name: cost[name])

    def confirm(self, found: Iterable[Verdict], copy: Copy) -> None:
        """The tests that killed mutants pass without one: a test that always fails would kill them all."""
        killers = {one.test for one in found if one.state == FAILED}
        if self.measured_here or not killers:
            return
        named = {_file(test) for test in killers}
        files = [f for f in self.everything() if f in named or "" in killers]  # "": importing it failed
        if copy.tests(files, plugin.ONLY, sorted(killers), self.limits):
            raise SystemExit(
                f"{copy.failed()} fails without a mutant too and so kills none, fix it first:\n{copy.said()}"
            )

    def verdict(self, mutant: Mutant, copy: Copy) -> Verdict:
        """Runs the area's tests with the mutant in place of its file; what is known already is not run.

        A mutant listed as equivalent counts as a survivor without being run: no test is expected to see it.
        """
        if mutant.key in self.equivalent:
            return Verdict(SURVIVED)
        known = self.before.get(mutant.digest)
        if known is not None and known["state"] != SURVIVED and self._holds(known):
            return Verdict(known["state"], known["test"], known["runs_the_line"] == "yes")
        left = [name for name in self.everything() if not self._passed(known, name)]
        first = [test for test in self.covering(mutant) if _file(test) in left]
        if not left:
            return Verdict(SURVIVED)
        rounds = [(plugin.ONLY, first), (plugin.NOT, first)]
        if first and known is not None and first[0] == known["test"]:  # alone: no other file is collected
            rounds = [(plugin.ONLY, first[:1]), (plugin.ONLY, first[1:]), (plugin.NOT, first)]
        found, start = Verdict(SURVIVED), time.monotonic()
        with copy.holding(mutant.path, mutant.source):
            for chosen, tests in rounds:
                here = chosen is plugin.ONLY
                files = list(dict.fromkeys(map(_file, tests))) if here else left
                if files and (code := copy.tests(files, chosen, tests, self.limits)):
                    found = Verdict(ENDLESS if code == TIMED_OUT else FAILED, copy.failed(), here)
                    break
        self._keep(mutant, found, time.monotonic() - start)
        return found

    def _holds(self, known: dict[str, Any]) -> bool:
        """Whether a mutant that was noticed would be again: the code and what noticed it are the same."""
        if known["checkout"] != self.checkout:
            return False
        file, tests = _file(known["test"]), known["tests"]
        return bool(tests.get(file, "") == self.files.get(file) if file else tests == self.files)

    def _passed(self, known: dict[str, Any] | None, name: str) -> bool:
        """Whether the tests of a file, as it is, did not notice the mutant."""
        if known is None or known["state"] != SURVIVED or known["checkout"] != self.checkout:
            return False
        return bool(known["tests"].get(name) == self.files[name])

    def _keep(self, mutant: Mutant, found: Verdict, seconds: float) -> None:
        line = {
            "mutant": mutant.digest,
            "checkout": self.checkout,
            "tests": self.files,
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


def _kept_verdicts(path: Path) -> dict[str, dict[str, Any]]:
    """The last verdict on each mutant. A line that an interruption cut off does not count."""
    found: dict[str, dict[str, Any]] = {}
    for line in path.read_text("utf-8").splitlines() if path.is_file() else ():
        with contextlib.suppress(ValueError):
            one = json.loads(line)
            found[one["mutant"]] = one
    return found


def _sha256(path: str) -> str:
    return hashlib.sha256((ROOT / path).read_bytes()).hexdigest() if (ROOT / path).is_file() else ""


def _computed() -> float:
    """Seconds of computing of all processes that this one waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _files(area: str, folder: Path) -> list[str]:
    patterns = (f"{p}/**/test_*.py" if (folder / p).is_dir() else p for p in AREAS[area].tests)
    return sorted({str(p.relative_to(folder)) for pattern in patterns for p in folder.glob(pattern)})


def _file(test: str) -> str:
    return test.split("::")[0]


_FROM_A_TEST = re.compile(r"^\s*from \.[\w.]*\b(test_\w+) import ", re.MULTILINE)


def hashes(area: str) -> dict[str, str]:
    """The files of an area's tests as they are."""
    return {name: _sha256(name)[:12] for name in _files(area, ROOT)}


def digest(area: str) -> str:
    """Of all that may change an area's verdicts but the files of its tests: not this run, nor other areas'
    tests, but those of its own from which another test takes something."""
    own = set(_files(area, ROOT))
    taken = {name for file in own for name in _FROM_A_TEST.findall((ROOT / file).read_text("utf-8"))}
    found = hashlib.sha256()
    for name in sorted(tracked()):
        path = Path(name)
        is_test = path.parts[0] == "tests" and path.name.startswith("test_") and path.stem not in taken
        run = path.parts[0] == "scripts" and path.name.startswith("muta")
        if not (is_test or run or ROOT / name in (LISTED, PAGE)):
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
