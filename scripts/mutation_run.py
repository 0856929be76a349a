# ruff: noqa: T201 - a report for the terminal
"""Mutation run: does each area's own test suite notice when its code is wrong?

    make mutation                                 # 40 mutants each of perturb, score, parse, stats, audits
    python scripts/mutation_run.py --area score --mutants 10 --seed 1

Mutants are Cosmic Ray's (one changed operator, constant, condition …), drawn with a fixed seed: first a place
in the area's code, then one of the changes possible there; annotations are left out, since nothing runs them.
Each is written into a copy of the checkout, and the area's tests run there until the first failure: those
that run the changed line (as a run under `coverage` saw) before the others, which may reach it in another
process. A survivor is either killed by a new test or listed in `tests/equivalent_mutants.toml` with its
reason. Exit code 1 where an area kills less than 85 %, or where a survivor is not listed.
"""

import argparse
import ast
import difflib
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names
from coverage import CoverageData

ROOT = Path(__file__).resolve().parents[1]
LISTED = ROOT / "tests" / "equivalent_mutants.toml"
KILLED_AT_LEAST = 0.85
TIMEOUT_S = 900
"""A mutant whose tests run longer is killed: it loops."""

INTERNING = {f"core/ReplaceComparisonOperator_{a}_{b}" for a in ("Eq", "NotEq") for b in ("Is", "IsNot")}
"""`==` as `is`: whether it changes anything depends on what the interpreter interns."""


class Area(NamedTuple):
    """What is mutated, and the tests that have to notice."""

    code: tuple[str, ...]
    tests: tuple[str, ...]


AREAS = {
    "perturb": Area(("builders/perturb",), ("tests/builders",)),
    "score": Area(("eval/score",), ("tests/eval/test_score_*.py", "tests/eval/test_vectors.py")),
    "parse": Area(
        ("eval/parse",),
        ("tests/eval/test_parse_*.py", "tests/eval/test_replies*.py", "tests/eval/test_vectors.py"),
    ),
    "stats": Area(("eval/stats",), ("tests/eval/test_stats_*.py", "tests/eval/test_compare.py")),
    "audits": Area(("audits",), ("tests/audits",)),
}


class Mutant(NamedTuple):
    """One changed place of one file."""

    area: str
    path: str
    line: int
    operator: str
    source: str
    """The whole mutated file."""
    before: str
    after: str
    """The changed lines, white space trimmed."""

    @property
    def key(self) -> tuple[str, str, str]:
        """How the list of equivalent mutants names it: line numbers would not last."""
        return self.path, self.before, self.after


def drawn(area: str, number: int, seed: int) -> list[Mutant]:
    """`number` different mutants of the area's code, in the order of the draw."""
    rng = random.Random(f"{seed}|{area}")
    places: dict[tuple[str, int, int], list[tuple[str, int]]] = {}
    for path in (p for folder in AREAS[area].code for p in sorted((ROOT / folder).rglob("*.py"))):
        name = path.relative_to(ROOT).as_posix()
        for line, column, operator, occurrence in _possible(path.read_text("utf-8")):
            places.setdefault((name, line, column), []).append((operator, occurrence))
    chosen: list[Mutant] = []
    for place in rng.sample(sorted(places), len(places)):
        if len(chosen) == number:
            break
        made = _made(area, place, rng.choice(places[place]))
        if made is not None:
            chosen.append(made)
    return chosen


def _possible(code: str) -> Iterator[tuple[int, int, str, int]]:
    """Line, column, operator and occurrence of every change that can be made, annotations left out."""
    tree = get_ast(code)
    hints = _annotations(code)
    for name in sorted(operator_names()):
        kind = get_operator(name)
        if kind.arguments() or name in INTERNING:
            continue
        operator = kind()
        found = (at for node in ast_nodes(tree) for at in operator.mutation_positions(node))
        for occurrence, ((line, column), _) in enumerate(found):
            if not any(start <= (line, column) < end for start, end in hints):
                yield line, column, name, occurrence


def _annotations(code: str) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Where annotations and docstrings stand, as spans of (line, column)."""
    found: list[ast.expr] = []
    for node in ast.walk(ast.parse(code)):
        hints = (getattr(node, "annotation", None), getattr(node, "returns", None))
        found += [hint for hint in hints if isinstance(hint, ast.expr)]
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            found.append(node.value)
    return [((e.lineno, e.col_offset), (e.end_lineno or 0, e.end_col_offset or 0)) for e in found]


def _made(area: str, place: tuple[str, int, int], change: tuple[str, int]) -> Mutant | None:
    path, line, _ = place
    operator, occurrence = change
    code = (ROOT / path).read_text("utf-8")
    source = mutate_code(code, get_operator(operator)(), occurrence)
    if source is None or source == code:
        return None
    try:
        compile(source, path, "exec")
    except SyntaxError:  # `*` of a parameter list, say: not a mutant
        return None
    lines = list(difflib.unified_diff(code.splitlines(), source.splitlines(), lineterm="", n=0))[2:]
    before = " ".join(one[1:].strip() for one in lines if one.startswith("-"))
    after = " ".join(one[1:].strip() for one in lines if one.startswith("+"))
    return Mutant(area, path, line, operator.removeprefix("core/"), source, before, after)


def survives(mutant: Mutant, copy: Path, seen: CoverageData) -> bool:
    """Runs the area's tests with the mutant in place of its file."""
    target = copy / mutant.path
    original = target.read_text("utf-8")
    first = _covering(mutant, seen)
    target.write_text(mutant.source, "utf-8")
    try:
        if first and _tests(mutant.area, copy, first) != 0:
            return False
        return (
            _tests(mutant.area, copy, [*_files(mutant.area, copy), *(f"--deselect={t}" for t in first)]) == 0
        )
    finally:
        target.write_text(original, "utf-8")


def _covering(mutant: Mutant, seen: CoverageData) -> list[str]:
    """The tests that run the mutant's line; of a line run on import only, those that run its file."""
    by_line = seen.contexts_by_lineno(mutant.path)
    here = set(by_line.get(mutant.line, ())) - {""}
    return sorted(here or set().union(*by_line.values()) - {""})


def _files(area: str, copy: Path) -> list[str]:
    return sorted({str(p.relative_to(copy)) for pattern in AREAS[area].tests for p in copy.glob(pattern)})


def _tests(area: str, copy: Path, wanted: Sequence[str], *, under: Sequence[str] = ()) -> int:
    """The exit code of these tests in a copy, 5 (none collected) as 0; 124 where they do not end."""
    shared = os.environ.get("RBTC_SHARED", str(ROOT.parent / "shared"))
    paths = os.pathsep.join((str(copy / "src"), str(copy / "scripts")))
    environment = os.environ | {"PYTHONPATH": paths, "RBTC_SHARED": shared, "CI": "true"}
    arguments = copy / "mutation.args"  # thousands of tests are too much for a command line
    arguments.write_text("\n".join(wanted) + "\n", "utf-8")
    options = ["-x", "-q", "-p", "no:cacheprovider", f"@{arguments}"]
    command = [sys.executable, *(under or ("-m", "pytest")), *options]
    try:
        done = subprocess.run(
            command, cwd=copy, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S
        )
    except subprocess.TimeoutExpired:
        return 124
    if done.returncode not in (
        0,
        1,
        2,
        4,
        5,
    ):  # 4: a file that cannot be imported, so its tests are not found
        raise SystemExit(f"pytest ended with {done.returncode} for {area}:\n{done.stdout[-2000:]}")
    return done.returncode % 5


def coverage_of(area: str, copy: Path) -> CoverageData:
    """Which tests of the area run which lines of its code. Ends where a test fails without a mutant."""
    settings = copy / "mutation.coveragerc"
    places = "\n    ".join(AREAS[area].code)
    settings.write_text(f"[run]\nrelative_files = true\nsource =\n    {places}\n", "utf-8")
    under = ("-m", "coverage", "run", f"--rcfile={settings}", "-m", "pytest", "-p", "coverage_contexts")
    if _tests(area, copy, _files(area, copy), under=under) != 0:
        raise SystemExit(f"the tests of {area} fail without a mutant: fix them first")
    seen = CoverageData(str(copy / ".coverage"))
    seen.read()
    return seen


def listed() -> dict[tuple[str, str, str], str]:
    """Equivalent mutants with their reasons."""
    if not LISTED.is_file():
        return {}
    entries = tomllib.loads(LISTED.read_text("utf-8")).get("mutant", [])
    return {(one["path"], one["before"], one["after"]): one["reason"] for one in entries}


def copy_of_checkout(folder: Path) -> Path:
    """The tracked files as they are in the working tree, links kept."""
    names = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True
    ).stdout.split("\0")
    for name in filter(None, names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, folder / name, follow_symlinks=False)
    return folder


def main() -> int:
    """Prints the table and the survivors; the exit code is the verdict."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--area", action="append", choices=sorted(AREAS), help="default: every area")
    options.add_argument("--mutants", type=int, default=40)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--num-proc", type=int, default=2)
    given = options.parse_args()
    areas = given.area or list(AREAS)
    known = listed()
    failed = False
    with tempfile.TemporaryDirectory(prefix="rbtc-mutants-") as scratch:
        copies: SimpleQueue[Path] = SimpleQueue()
        for number in range(given.num_proc):
            copies.put(copy_of_checkout(Path(scratch) / f"copy{number}"))

        def judged(mutant: Mutant) -> tuple[Mutant, bool]:
            copy = copies.get()
            try:
                return mutant, survives(mutant, copy, seen)
            finally:
                copies.put(copy)

        for area in areas:
            start, copy = time.monotonic(), copies.get()
            seen = coverage_of(area, copy)
            copies.put(copy)
            print(
                f"{area}: the tests pass in {time.monotonic() - start:.0f} s under coverage",
                flush=True,
            )
            mutants = drawn(area, given.mutants, given.seed)
            survivors = []
            with ThreadPoolExecutor(given.num_proc) as pool:
                for done, (mutant, alive) in enumerate(pool.map(judged, mutants), 1):
                    if alive:
                        survivors.append(mutant)
                        print(f"  survived: {mutant.path}:{mutant.line} {mutant.operator}", flush=True)
                        print(f"    - {mutant.before}\n    + {mutant.after}", flush=True)
                    if done % 10 == 0:
                        print(f"  {done} of {len(mutants)}", flush=True)
            equivalent = [one for one in survivors if one.key in known]
            share = (len(mutants) - len(survivors)) / len(mutants)
            print(
                f"{area}: {len(mutants) - len(survivors)} of {len(mutants)} killed ({share:.1%}), "
                f"{len(survivors)} survived, {len(equivalent)} of them listed as equivalent; "
                f"{time.monotonic() - start:.0f} s",
                flush=True,
            )
            failed |= share < KILLED_AT_LEAST or len(equivalent) < len(survivors)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
